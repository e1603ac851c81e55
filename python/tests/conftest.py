"""Groups of fresh names, and members in processes of their own."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap

import pytest

import dunlin

_numbers = itertools.count()

# A shell lets what it starts in the background ignore SIGINT, and so do the processes started from there. Those of
# tests that send SIGINT to a member would wait for its end for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def fresh_group() -> str:
    return f"py{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def group() -> str:
    return fresh_group()


@pytest.fixture(scope="module")
def node():
    with dunlin.join(fresh_group(), timeout=60, silence_timeout=0) as its_node:
        yield its_node


class Member:
    """A process that runs `program`, which is told things by lines, and tells things by lines.

    With `founders`, it joins the group of its first argument as one of so many, and has `node`.
    """

    def __init__(self, program: str, *arguments: str, founders: int = 0):
        head = "import sys, dunlin\ndef tell(*what): print(*what, flush=True)\n"
        if founders:
            head += f"node = dunlin.join(sys.argv[1], {founders}, timeout=60, silence_timeout=0)\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", head + textwrap.dedent(program), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, what: str = "go") -> None:
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        return code


@pytest.fixture
def start():
    members: list[Member] = []

    def start_member(program: str, *arguments: str, founders: int = 0) -> Member:
        members.append(Member(program, *arguments, founders=founders))
        return members[-1]

    yield start_member
    for member in members:
        if member.process.poll() is None:
            member.process.kill()
        if not member.process.stdin.closed:
            member.end()
