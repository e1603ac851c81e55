"""The programs and the notebook of python/examples."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

SOURCES = pathlib.Path(__file__).parents[2]
EXAMPLES = SOURCES / "python/examples"

# Runs the cells of a notebook, whose sources it reads from standard input, as Jupyter does: `await` may stand outside of
# functions. In place of the lines for Jupyter alone (%pip), it has the package of the tests.
RUN_CELLS = """
import ast, asyncio, inspect, json, sys

async def run(cells):
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        code = compile(cell, f"<cell {number}>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            await result

asyncio.run(run(json.load(sys.stdin)))
"""


@pytest.fixture(autouse=True)
def keep_silent_members(monkeypatch):
    """A busy host may not run a member for the second of silence after which the others would give it up."""
    monkeypatch.setenv("DUNLIN_SILENCE_TIMEOUT_MS", "0")


def run(*command: str | pathlib.Path, given: str = "") -> str:
    ended = subprocess.run([sys.executable, "-B", *command], input=given, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("blocks", [32, 4])
def test_workers_share_the_blocks_of_a_cache(blocks):
    said = run(EXAMPLES / "cache_blocks.py", "--workers", "3", "--blocks", str(blocks))
    found = re.fullmatch(r"(\d+) blocks were in the cache, (\d+) were computed\n", said)
    assert found is not None
    # Each of three workers has eight prompts of six blocks.
    assert int(found[1]) + int(found[2]) == 3 * 8 * 6
    # The four blocks with which all prompts begin are computed once by each worker at most, if the cache has room for all.
    if blocks == 32:
        assert int(found[1]) >= 3 * 7 * 4


@pytest.mark.parametrize("readers, steps", [(1, 1), (3, 20)])
def test_readers_have_the_last_parameters(readers, steps):
    said = run(EXAMPLES / "parameters.py", "--readers", str(readers), "--steps", str(steps))
    assert sorted(said.splitlines()) == [f"reader {i + 1} has step {steps}" for i in range(readers)]


@pytest.mark.parametrize("by", ["torch", "multiprocessing"])
def test_each_row_comes_once_from_the_loader(by):
    if by == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    said = run(EXAMPLES / "loader.py", "--rows", "2000", "--workers", "2", "--by", by)
    assert said == f"2000 rows came from 2 workers by {by}\n"


def test_the_nodes_of_a_robot_answer_each_scan():
    # Each scan shows a wall, so each command turns the robot by pi / 100.
    assert run(EXAMPLES / "robot.py", "--scans", "50") == "after 50 scans: x 0.00, y 0.00, heading 90\n"


def test_the_progress_of_workers_is_a_data_frame():
    pytest.importorskip("pandas", reason="pandas is not installed")
    said = run(EXAMPLES / "progress.py", "--workers", "3", "--steps", "20")
    # The loss of worker i is (i + 1) / 20 after its last step, and each second worker has a large model.
    assert said.split() == ["model", "large", "0.10", "small", "0.05"]


def test_the_program_of_the_readme_runs():
    text = (SOURCES / "README.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert program is not None
    own = program[1].replace('"readme"', f'"readme-{os.getpid()}"')  # a group of its own
    others = [subprocess.Popen([sys.executable, "-B", "-c", own], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for other in others:
        # The row of a member that has left already is not printed.
        assert set(other.communicate()[0].split()) == {"0.7"} and other.returncode == 0


def test_the_notebook_runs():
    notebook = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    own = [cell for cell in cells if not cell.startswith("%")]
    assert len(own) == len(cells) - 1
    run("-c", RUN_CELLS, given=json.dumps(own))


def test_the_notebook_has_no_outputs():
    notebook = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
