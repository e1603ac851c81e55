#!/usr/bin/env python3
"""Checks that every relative link in the project's Markdown pages leads to a file.

usage: doc_links.py ROOT
"""
import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def broken_links(root):
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for target in LINK.findall(line):
                if ":" not in target and not (page.parent / target).exists():
                    yield f"{page.relative_to(root)}:{number}: there is no {target}"


if __name__ == "__main__":
    problems = list(broken_links(pathlib.Path(sys.argv[1])))
    sys.exit("\n".join(problems) or None)
