#!/usr/bin/env python3
"""Checks the names of invariants, such as GRP-C5.

usage: check_invariants.py ROOT

CONTRIBUTING.md says what a name is and where it is defined: in a numbered comment of a source
(`///  MC-R1  A position ...`), in a list item of a page (`- **GRP-C5** When all ...`), or in one of
each, of which the page says why it holds. A name that is defined twice in sources, or twice in
pages, is an error; so is a name that is cited and defined nowhere, and a prefix that
CONTRIBUTING.md does not list.
"""
import pathlib
import re
import sys

PREFIX = re.compile(r"^\| `([A-Z]{2,3})` \|", re.MULTILINE)
IN_SOURCE = re.compile(r"^\s*//[/!]?  +([A-Z]{2,3}-[A-Z]?[0-9]+)  +\S")
IN_PAGE = re.compile(r"^\s*- \*\*([A-Z]{2,3}-[A-Z]?[0-9]+)\*\*")
NAME = re.compile(r"(?<![-\w])([A-Z]{2,3})-([A-Z]?)[0-9]+(?!\w)")
FOLDERS = ("apps", "bench", "docs", "examples", "include", "src", "tests", "tools")
SOURCES = {".cpp", ".hpp"}
OTHERS = {".md", ".pml", ".cmake", ".txt", ".sh"}


def files_of(root):
    files = [*root.glob("*.md")]
    for folder in FOLDERS:
        files += (f for f in (root / folder).rglob("*") if f.suffix in SOURCES | OTHERS)
    return sorted(files)


def problems_of(texts, prefixes):
    """texts: (name of a file, its lines)."""
    defined = {}
    cited = {}
    for file, lines in texts:
        is_source = pathlib.PurePath(file).suffix in SOURCES
        definition = IN_SOURCE if is_source else IN_PAGE if file.endswith(".md") else None
        for number, line in enumerate(lines, 1):
            place = f"{file}:{number}"
            found = definition.match(line) if definition else None
            if found:
                before = defined.setdefault(found.group(1), {}).setdefault(is_source, place)
                if before != place:
                    yield f"{place}: {found.group(1)} is defined at {before}, too"
            for name in NAME.finditer(line):
                # Without a letter it may be another's name, such as CRC-32.
                if name.group(2) or name.group(1) in prefixes or found:
                    cited.setdefault(name.group(0), place)
    for name, place in sorted(cited.items()):
        if name.split("-")[0] not in prefixes:
            yield f"{place}: {name} has a prefix that CONTRIBUTING.md does not list"
        elif name not in defined:
            yield f"{place}: {name} is cited, and defined nowhere"


def main(root):
    prefixes = set(PREFIX.findall((root / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    texts = [
        (f.relative_to(root).as_posix(), f.read_text(encoding="utf-8").splitlines())
        for f in files_of(root)
    ]
    return list(problems_of(texts, prefixes))


if __name__ == "__main__":
    problems = main(pathlib.Path(sys.argv[1]))
    sys.exit("\n".join(problems) or None)
