"""Writes the type stubs of `dunlin._core`, as its classes are after `import dunlin`.

usage: stubs.py FOLDER OUTPUT, where FOLDER has the package

nanobind's generator takes the methods that python/dunlin adds to the classes for functions of other modules. Here they
are written with the annotations of their sources.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
import sys
import textwrap
import types
import typing

from nanobind.stubgen import StubGen

HEAD = '''\
from collections.abc import (
    AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
)
from typing import Any, Protocol
from typing_extensions import Buffer, Self, TypeAlias

from .conditions import Condition

__version__: str

class _Tensor(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_Memory: TypeAlias = Buffer | _Tensor

'''


# What the generator knows too little about. A call of __reduce_ex__ only refuses.
KNOWN = {
    "__enter__": "def __enter__(self) -> Self: ...",
    "__exit__": "def __exit__(self, *args: object) -> None: ...",
    "__eq__": "def __eq__(self, other: object, /) -> bool: ...",
    "__reduce_ex__": "",
}


class Stubs(StubGen):
    """The generator, with functions that are written in Python."""

    def put_function(self, fn: typing.Any, name: str | None = None, parent: object = None) -> None:
        if name in KNOWN:
            self.write_ln(KNOWN[name])
            return
        if not isinstance(fn, types.FunctionType):
            super().put_function(fn, name, parent)
            return
        source = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
        assert isinstance(source, (ast.FunctionDef, ast.AsyncFunctionDef))
        positional = source.args.posonlyargs or source.args.args
        if parent is not None and positional:
            positional[0].annotation = None  # self
        arguments = ast.unparse(source.args)
        returns = ast.unparse(source.returns) if source.returns else "Any"
        head = "async def" if inspect.iscoroutinefunction(fn) else "def"
        signature = f"{head} {name or fn.__name__}({arguments}) -> {returns}:".replace("_core.", "")
        self.write_ln(signature)
        self.depth += 1
        self.put_docstr(inspect.getdoc(fn) or "")
        self.write_ln("...\n")
        self.depth -= 1


def stubs() -> str:
    import dunlin._core

    generator = Stubs(dunlin._core, include_docstrings=True, include_private=True, quiet=True)
    generator.put(dunlin._core)
    return HEAD + re.sub(r"\bBuffer\b", "_Memory", generator.get())


def main(folder: str, output: str) -> None:
    sys.path.insert(0, folder)
    pathlib.Path(output).write_text(stubs(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
