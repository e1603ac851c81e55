"""What a build says that lacks something, and the command of the package."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import dunlin

SOURCES = pathlib.Path(__file__).parents[2]


def said_by_configuring(folder: pathlib.Path, *options: str, path: str | None = None) -> str:
    """What CMake says, which must fail, in one line."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    if path is not None:
        environment["PATH"] = path
    cmake = shutil.which("cmake")
    assert cmake is not None
    run = subprocess.run(
        [cmake, "-G", "Ninja", "-S", SOURCES, "-B", folder / "build", f"-DCMAKE_MAKE_PROGRAM={shutil.which('ninja')}",
         "-DSKBUILD=ON", "-DDUNLIN_TESTS=OFF", "-DDUNLIN_APPS=OFF", "-DDUNLIN_INSTALL=OFF", *options],
        env=environment, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    return " ".join(run.stderr.split())


def test_a_build_without_a_compiler_says_what_to_install(tmp_path):
    said = said_by_configuring(tmp_path, path=str(tmp_path))
    assert "there is no C++ compiler: it needs g++ 12 or clang++ 14" in said
    assert "apt-get install g++" in said


@pytest.mark.parametrize("options, sentence", [
    (["-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON"], "needs the headers of OpenSSL 3. On Debian and Ubuntu: apt-get install libssl-dev"),
    (["-DCMAKE_IGNORE_PATH=/usr/include;/usr/local/include"], "xxhash.h. On Debian and Ubuntu: apt-get install libxxhash-dev"),
    (["-DCMAKE_DISABLE_FIND_PACKAGE_Python=ON"], "needs the headers of Python"),
    (["-DCMAKE_DISABLE_FIND_PACKAGE_nanobind=ON"], "and nanobind (pip install nanobind")])
def test_a_build_without_headers_says_what_to_install(tmp_path, options, sentence):
    assert sentence in said_by_configuring(tmp_path, *options, f"-DPython_EXECUTABLE={sys.executable}")


def run_command(package: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from dunlin._command import main; main()"
    return subprocess.run([sys.executable, "-B", "-c", program, *arguments], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(package)}, check=False)


def test_the_command_of_the_package(tmp_path):
    shutil.copytree(pathlib.Path(dunlin.__file__).parent, tmp_path / "dunlin")
    run = run_command(tmp_path)
    assert run.returncode == 1 and "was built without the command" in run.stderr
    (tmp_path / "dunlin/bin").mkdir()
    program = tmp_path / "dunlin/bin/dunlin"
    program.write_text("#!/bin/sh\necho \"$@\"\nexit 7\n", encoding="utf-8")
    program.chmod(0o755)
    run = run_command(tmp_path, "top", "a group")
    assert (run.returncode, run.stdout) == (7, "top a group\n")
