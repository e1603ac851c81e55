"""Writes the reference of the module `dunlin` from its type stubs and sources.

usage: reference.py [--check] PAGE

With --check, nothing is written: fails, and says how to write the page anew, if the page is not what would be written.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import sys
import textwrap
from collections.abc import Iterator

import dunlin

HEAD = """\
# Python reference

All that `import dunlin` has. [python](python.md) explains it. This page is made from the type stubs and the sources of
the package; `python/tools/reference.py` writes it, and a test compares it.

`Buffer` is whatever has the buffer protocol (`bytes`, `bytearray`, `memoryview`, `array`, numpy) or DLPack (torch, jax)
in the memory of the CPU, if its elements lie one after the other.
"""
WIDTH = 110

Function = ast.FunctionDef | ast.AsyncFunctionDef


def definitions() -> dict[str, ast.ClassDef | Function]:
    """The classes and functions of the package, by module and name."""
    package = pathlib.Path(dunlin.__file__).parent
    found: dict[str, ast.ClassDef | Function] = {}
    for file in [package / "_core.pyi", *sorted(package.glob("*.py"))]:
        module = "dunlin" if file.stem == "__init__" else f"dunlin.{file.stem}"
        for node in ast.parse(file.read_text(encoding="utf-8").replace("_Memory", "Buffer")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                found[f"{module}.{node.name}"] = node
    return found


def filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def text_of(node: ast.ClassDef | Function) -> str:
    """The text of a class or function, in lines of this page."""
    paragraphs = inspect.cleandoc(ast.get_docstring(node) or "").split("\n\n")
    return "\n\n".join(filled(paragraph) for paragraph in paragraphs)


def signature_of(node: Function) -> str:
    """The head of a function, without `self`, in lines of this page."""
    arguments = node.args
    for kind in (arguments.posonlyargs, arguments.args):
        if kind and kind[0].arg in ("self", "cls"):
            kind.pop(0)
    text = f"{node.name}({ast.unparse(arguments)})"
    if node.returns is not None:
        text += f" -> {ast.unparse(node.returns)}"
    if isinstance(node, ast.AsyncFunctionDef):
        text = "await " + text
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "```python\n" + "\n".join(lines) + "\n```"


def is_property(node: Function) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)


def members_of(node: ast.ClassDef) -> Iterator[Function]:
    for member in node.body:
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) and not member.name.startswith("_"):
            yield member


def class_lines(node: ast.ClassDef, twin: ast.ClassDef | None) -> Iterator[str]:
    """A class; `twin` has its calls as awaitables."""
    yield f"## {node.name}\n"
    yield text_of(node) + "\n"
    properties = [member for member in members_of(node) if is_property(member)]
    if properties:
        for member in properties:
            returns = f": {ast.unparse(member.returns)}" if member.returns is not None else ""
            line = f"- `{member.name}{returns}` {' '.join((ast.get_docstring(member) or '').split())}"
            yield textwrap.fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        yield ""
    awaited = {member.name for member in members_of(twin)} if twin is not None else set()
    for member in members_of(node):
        if is_property(member):
            continue
        yield signature_of(member) + "\n"
        text = text_of(member)
        if member.name in awaited:
            text = filled(f"{text} Also awaited, as `aio.{member.name}`.") if "\n\n" not in text else \
                f"{text}\n\nAlso awaited, as `aio.{member.name}`."
        if text:
            yield text + "\n"


def module_lines(name: str, known: dict[str, ast.ClassDef | Function]) -> Iterator[str]:
    """A module of functions."""
    yield f"## {name}\n"
    paragraphs = inspect.cleandoc(getattr(dunlin, name).__doc__ or "").split("\n\n")
    yield "\n\n".join(text if text.startswith(" ") else filled(text) for text in paragraphs) + "\n"
    for path, node in known.items():
        function = path.removeprefix(f"dunlin.{name}.")
        if function != path and not function.startswith("_") and not isinstance(node, ast.ClassDef):
            yield signature_of(node) + "\n"
            if text := text_of(node):
                yield text + "\n"


def error_lines(errors: list[ast.ClassDef]) -> Iterator[str]:
    yield "## Exceptions\n"
    yield "| class | bases | when |\n| --- | --- | --- |"
    for node in errors:
        bases = ", ".join(f"`{ast.unparse(base)}`" for base in node.bases)
        yield f"| `{node.name}` | {bases} | {' '.join((ast.get_docstring(node) or '').split())} |"
    yield ""


def page() -> str:
    known = definitions()
    names = ["join", "Node"] + [name for name in dunlin.__all__ if name not in ("join", "Node", "__version__")]
    lines, errors = [HEAD], []
    for name in names:
        if inspect.ismodule(getattr(dunlin, name)):
            lines += module_lines(name, known)
            continue
        module = getattr(dunlin, name).__module__
        node = known[f"{module}.{name}"]
        if isinstance(node, ast.ClassDef) and issubclass(getattr(dunlin, name), Exception):
            errors.append(node)
        elif isinstance(node, ast.ClassDef):
            twin = known.get(f"{module}.Async{name}")
            lines += class_lines(node, twin if isinstance(twin, ast.ClassDef) else None)
        else:
            lines += [f"## {name}\n", signature_of(node) + "\n", text_of(node) + "\n"]
    lines += error_lines(errors)
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    path = pathlib.Path(arguments[-1])
    made = page()
    if arguments[0] != "--check":
        path.write_text(made, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != made:
        raise SystemExit(f"{path} is not of this package. Write it anew: PYTHONPATH=build/release/python "
                         f"build/venv/bin/python python/tools/reference.py {path.parent.name}/{path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
