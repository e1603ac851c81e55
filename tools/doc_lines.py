#!/usr/bin/env python3
"""Checks that no line of the project's Markdown pages is longer than 120 characters. Tables are exempt.

usage: doc_lines.py ROOT
"""
import pathlib
import sys

LIMIT = 120


def long_lines(root):
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > LIMIT and not line.startswith("|"):
                yield f"{page.relative_to(root)}:{number}: {len(line)} characters; at most {LIMIT}"


if __name__ == "__main__":
    problems = list(long_lines(pathlib.Path(sys.argv[1])))
    sys.exit("\n".join(problems) or None)
