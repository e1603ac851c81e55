"""The programs and the notebook of python/examples."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"

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


def test_each_row_comes_once_from_the_loader():
    assert run(EXAMPLES / "loader.py", "--rows", "2000", "--workers", "2") == "2000 rows came from 2 workers\n"


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
