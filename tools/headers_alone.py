#!/usr/bin/env python3
"""Checks that each public header compiles alone, and twice.

usage: headers_alone.py FOLDER -- COMPILER FLAGS...

Reading the standard library is most of the work, so several headers are one text where that proves the same: each
reads all that the one before it has read. A header whose #includes come first sees nothing more behind such another
than alone. Each header's #includes come first, or it is refused.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

CONDITION = re.compile(r"\s*#\s*(if|endif)")
INCLUDE = re.compile(r"\s*#\s*include [<\"](.+)[>\"]")
BEFORE_INCLUDES = re.compile(r"\s*(//|#|$)")


def includes_of(path):
    """(what it includes in any case, the line of an #include behind a declaration, or None)"""
    found, declared, conditions, goes_on = [], False, 0, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if include := INCLUDE.match(line):
            if declared:
                return found, number
            if conditions == 0:
                found.append(include[1])
        if condition := CONDITION.match(line):
            conditions += 1 if condition[1] == "if" else -1
        declared = declared or not (goes_on or BEFORE_INCLUDES.match(line))
        goes_on = line.endswith("\\")  # a line of the preprocessor, in which nothing is declared
    return found, None


def read_with(headers):
    """All that each of the headers reads, itself included: {name: names}"""
    result = {}

    def all_of(name):
        if name not in result:
            result[name] = {name}  # while a circle of headers is followed
            result[name] |= {more for include in headers.get(name, ()) for more in all_of(include)}
        return result[name]

    return {name: all_of(name) for name in headers}


def chains(read):
    """Lists of headers, each of which reads all that the one before it reads; as few lists as can be."""
    after = {}  # of each header, the one before it

    def place(name, tried):
        for other in sorted(read):
            if other not in tried and read[name] < read[other]:
                tried.add(other)
                if other not in after or place(after[other], tried):
                    after[other] = name
                    return True
        return False

    for name in sorted(read):
        place(name, set())
    before = {name: other for other, name in after.items()}
    result = []
    for first in sorted(read.keys() - after.keys()):
        chain = [first]
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        result.append(chain)
    return result


def complaint(command, chain):
    text = "".join(f"#include <{name}>\n" * 2 for name in chain)
    result = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=text, capture_output=True, text=True)
    return None if result.returncode == 0 else f"{', '.join(chain)}:\n{result.stderr}"


def main():
    if len(sys.argv) < 4 or sys.argv[2] != "--":
        sys.exit(__doc__)
    folder, command = pathlib.Path(sys.argv[1]), [*sys.argv[3:], f"-I{sys.argv[1]}"]
    headers, problems = {}, []
    for path in sorted(folder.rglob("*.hpp")):
        name = str(path.relative_to(folder))
        headers[name], late = includes_of(path)
        if late:
            problems.append(f"{name}:{late}: an #include behind a declaration")
    if not headers:
        sys.exit(f"there are no headers in {folder}")
    if not problems:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems += filter(None, pool.map(lambda chain: complaint(command, chain), chains(read_with(headers))))
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(headers)} headers")


if __name__ == "__main__":
    main()
