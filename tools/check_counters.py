#!/usr/bin/env python3
"""Checks that docs/top.md has a row for each counter, and none for a counter that is not there.

usage: check_counters.py ROOT

A counter is a string such as "store.lock_waits" in a source of src/ that uses the counters of
src/fabric/counters/. A name that is put together at run time is not found.

In docs/top.md, a table whose header begins with "| counter `store.` |" has the counters of that
layer. Their names, without the layer, are the code spans in the first cell of its rows.
"""
import pathlib
import re
import sys

PAGE = "docs/top.md"
USES_COUNTERS = re.compile(r"\b(?:CounterSet|CounterPages|SharedCounter)\b")
NO_CODE = re.compile(r"//.*|#include .*")
ADDED = re.compile(r'"([a-z]+\.[a-z0-9_]+)"')
HEADER = re.compile(r"\| counter `([a-z]+\.)` \|")
NAME = re.compile(r"`([a-z0-9_]+)`")


def added_in(texts):
    """texts: (name of a source, its text). Returns where each counter is added first."""
    added = {}
    for file, text in texts:
        if not USES_COUNTERS.search(text):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for name in ADDED.findall(NO_CODE.sub("", line)):
                added.setdefault(name, f"{file}:{number}")
    return added


def rows_of(page):
    """The names of the counters that have a row, with the number of its line."""
    layer = None
    for number, line in enumerate(page.splitlines(), 1):
        if header := HEADER.match(line):
            layer = header.group(1)
        elif not line.startswith("|"):
            layer = None
        elif layer:
            for name in NAME.findall(line.split("|")[1]):
                yield layer + name, number


def problems_of(texts, page):
    added = added_in(texts)
    rows = {}
    for name, number in rows_of(page):
        place = f"{PAGE}:{number}"
        if name in rows:
            yield f"{place}: {name} has a row at {rows[name]}, too"
        elif name not in added:
            yield f"{place}: {name} has a row, and no source adds such a counter"
        rows.setdefault(name, place)
    for name, place in sorted(added.items()):
        if name not in rows:
            layer, short = name.split(".")
            yield (
                f"{place}: {name} has no row in {PAGE}: add `{short}` to the table that begins"
                f" with | counter `{layer}.` |"
            )


def main(root):
    sources = sorted(f for f in (root / "src").rglob("*") if f.suffix in {".cpp", ".hpp"})
    texts = [(f.relative_to(root).as_posix(), f.read_text(encoding="utf-8")) for f in sources]
    return list(problems_of(texts, (root / PAGE).read_text(encoding="utf-8")))


if __name__ == "__main__":
    problems = main(pathlib.Path(sys.argv[1]))
    sys.exit("\n".join(problems) or None)
