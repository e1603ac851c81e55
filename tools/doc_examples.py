#!/usr/bin/env python3
"""Compiles, and where they are programs runs, the C++ examples of a Markdown page.

usage: doc_examples.py PAGE [--library=FILE|-lNAME ...] -- COMPILER FLAGS...

Every ```cpp block is preceded by a comment that says what it is:

    <!-- compile: program -->            has a main(), which is run and must return 0
    <!-- compile: program, 3 at once --> the same, with three copies running together
    <!-- compile: header -->             stands at namespace scope; later snippets see it
    <!-- compile: snippet -->            stands in a function, and sees the headers before it
    <!-- compile: none, REASON -->       is not compiled: pseudo code, another version, ...
    <!-- compile: part of FILE -->       these very lines stand in that file, which has tests of
                                         its own; its path is relative to the page

Programs stand alone. What headers and snippets need but the reader does not want to see
goes into a comment of its own:

    <!-- compile setup:
    #include <dunlin/table.hpp>
    extern dunlin::Fabric& fabric;
    -->

A block without such a comment is an error: no example goes unchecked by accident.
"""
import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

RUN_TIMEOUT_S = 60
COMMENT = re.compile(r"<!-- compile: (program|header|snippet|none|part of (\S+))"
                     r"(?:, (?:(\d+) at once|(.+)))? -->$")


class PageError(Exception):
    """What is wrong with the page, with its place."""


@dataclasses.dataclass
class Example:
    kind: str  # program, header, snippet, part, none; or setup
    line: int  # of the first line of its text
    text: str
    copies: int = 1
    file: str = ""  # of which it is a part


def parse(page, name="page"):
    """All examples of a page, in order."""
    examples = []
    announced = None
    lines = iter(enumerate(page.splitlines(), 1))
    for number, line in lines:
        if line.startswith("<!-- compile setup:"):
            examples.append(Example("setup", number + 1, body(lines, "-->", name, number)))
        elif line.startswith("<!-- compile"):
            announced = announcement(line, name, number)
        elif line.startswith("```cpp"):
            text = body(lines, "```", name, number)
            if not announced:
                raise PageError(f"{name}:{number}: no '<!-- compile: ... -->' before this block")
            examples.append(dataclasses.replace(announced, line=number + 1, text=text))
            announced = None
        elif line.startswith("```"):
            body(lines, "```", name, number)
        elif line and announced:
            raise PageError(f"{name}:{number}: a ```cpp block should follow '<!-- compile ... -->'")
    return examples


def announcement(line, name, number):
    match = COMMENT.match(line.strip())
    if not match:
        raise PageError(f"{name}:{number}: cannot understand {line.strip()}")
    kind, file, copies, remark = match.groups()
    kind = "part" if file else kind
    if (kind == "none") != bool(remark) or (copies and kind != "program"):
        raise PageError(f"{name}:{number}: 'none' and only it takes a reason, "
                        "'N at once' is for programs")
    return Example(kind, number, "", int(copies or 1), file or "")


def body(lines, end, name, start):
    text = []
    for _, line in lines:
        if line.strip() == end:
            return "\n".join(text) + "\n"
        text.append(line)
    raise PageError(f"{name}:{start}: this block has no end")


def translation_units(examples, name):
    """The (example, source) pairs to compile; compiler messages will name the page's lines."""
    before = ""
    for example in examples:
        source = f'#line {example.line} "{name}"\n{example.text}'
        if example.kind == "program":
            yield example, source
        elif example.kind == "snippet":
            yield example, f"{before}\nvoid example();\nvoid example() {{\n{source}}}\n"
        elif example.kind in ("setup", "header"):
            before += source
            yield example, before


def one_unit(examples, name):
    """All headers and snippets of a page in their order: each sees what it would see alone."""
    text = ""
    for number, example in enumerate(examples):
        source = f'#line {example.line} "{name}"\n{example.text}'
        if example.kind == "snippet":
            text += f"\nvoid example_{number}();\nvoid example_{number}() {{\n{source}}}\n"
        elif example.kind in ("setup", "header"):
            text += source
    return text


def stands_in(example, folder):
    """What is wrong with a part of a file, or None. It may be indented less than there."""
    file = pathlib.Path(folder) / example.file
    if not file.is_file():
        return f"there is no file {file}"
    lines = [line.rstrip() for line in file.read_text(encoding="utf-8").splitlines()]
    part = example.text.rstrip("\n").split("\n")
    for start in range(len(lines) - len(part) + 1):
        there = "\n".join(lines[start:start + len(part)])
        if textwrap.dedent(there) == textwrap.dedent("\n".join(part)):
            return None
    return f"these lines do not stand in {file}"


class Checker:
    def __init__(self, name, command, libraries, folder):
        self.name, self.command, self.libraries = name, command, libraries
        self.folder = pathlib.Path(folder)

    def problem(self, example, source):
        """What is wrong with one example, or None."""
        file = self.folder / f"line{example.line}.cpp"
        file.write_text(source, encoding="utf-8")
        if example.kind != "program":
            return self.no_syntax(file)
        program = file.with_suffix("")
        build = [*self.command, str(file), "-o", str(program)]
        return (self.run(build + list(self.libraries))
                or self.run_copies(program, example.copies))

    def compiles(self, text):
        file = self.folder / "unit.cpp"
        file.write_text(text, encoding="utf-8")
        return self.no_syntax(file) is None

    def no_syntax(self, file):
        # Examples show single expressions and values that are not used any further.
        return self.run([*self.command, "-fsyntax-only", "-Wno-unused", str(file)])

    @staticmethod
    def run(command):
        result = subprocess.run(command, capture_output=True, text=True)
        return result.stderr if result.returncode else None

    @staticmethod
    def run_copies(program, copies):
        running = [subprocess.Popen([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True) for _ in range(copies)]
        problems = []
        for process in running:
            try:
                output, _ = process.communicate(timeout=RUN_TIMEOUT_S)
                if process.returncode:
                    problems.append(f"exit status {process.returncode}\n{output}")
            except subprocess.TimeoutExpired:
                process.kill()
                problems.append(f"still runs after {RUN_TIMEOUT_S} s\n{process.communicate()[0]}")
        return "\n".join(problems) or None


def check(page, name, command, libraries=(), folder="."):
    """How many examples were checked; raises PageError with everything that is wrong. Files are
    looked for in `folder`."""
    examples = parse(page, name)
    checked, problems = 0, []
    for example in examples:
        if example.kind != "part":
            continue
        checked += 1
        if problem := stands_in(example, folder):
            problems.append(f"{name}:{example.line}: {problem}")
    with tempfile.TemporaryDirectory() as scratch:
        checker = Checker(name, command, libraries, scratch)
        # Most of the time goes into headers. Only where the unit is refused, it matters which example it is.
        unit = one_unit(examples, name)
        all_compile = bool(unit) and checker.compiles(unit)
        for example, source in translation_units(examples, name):
            if all_compile and example.kind != "program":
                problem = None
            else:
                print(f"{name}:{example.line}: {example.kind}", flush=True)  # if it takes too long
                problem = checker.problem(example, source)
            checked += example.kind != "setup"
            if problem:
                problems.append(f"{name}:{example.line}: {example.kind}: {problem}")
    if problems:
        raise PageError("\n".join(problems))
    return checked


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    page = options.page
    try:
        checked = check(page.read_text(encoding="utf-8"), str(page), options.command,
                        [one for one in options.library if one], page.parent)
    except PageError as error:
        sys.exit(str(error))
    print(f"{page}: {checked} examples")


if __name__ == "__main__":
    main()
