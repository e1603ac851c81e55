#!/usr/bin/env python3
"""Prints what each part of the last `./run test` cost, in seconds.

usage: costs.py BUILD-FOLDER

Building: the steps that made what is in each tree, whenever that was, from ninja's log; out of ccache they take
next to nothing. Testing: the last run of all trees, from ctest's log. Both are times that passed, not times
of computing: on N processors, N steps and 3 N tests pass at once.
"""
import collections
import pathlib
import re
import sys

import ctest_log

TREES = {"release": "", "asan": "address: ", "tsan": "thread: "}


def part_of_output(output):
    """fabric, table, multicast, ...: the library's layer and its tests; apps/NAME, bench/NAME: a command's."""
    if match := re.search(r"/Unity/unity_(src|apps|bench|tests)_([a-z]+)", output):
        folder, name = match[1], match[2]
    elif match := re.match(r"tests/(?:CMakeFiles/)?(\w+?)_tests\b", output):
        folder, name = "tests", match[1]
    else:
        folder, name = "other", None
    if folder == "tests" and name == "conformance":
        name = "fabric"
    return name or folder if folder in ("src", "tests", "other") else f"{folder}/{name or ''}".rstrip("/")


def part_of_test(name):
    part = name.split(".", 1)[0]
    return {"conformance": "fabric"}.get(part, ".".join(name.split(".")[:2]) if part == "lint" else part)


def building(log):
    """Seconds of each part, by the last step that made each output."""
    steps = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if len(fields) == 5:  # begin, end, time of the file, output, hash of the command
            # Steps of several outputs have a line for each.
            steps[fields[3]] = (fields[4], int(fields[0]), int(fields[1]))
    parts, counted = collections.Counter(), set()
    for output, step in steps.items():
        if step not in counted:
            counted.add(step)
            parts[part_of_output(output)] += (step[2] - step[1]) / 1000
    return parts


def testing(log):
    """{tree: (seconds of each part, how many tests, each of a suite counted)}"""
    found = {tree: (collections.Counter(), collections.Counter()) for tree in TREES}
    for test in ctest_log.ran(log.read_text(encoding="utf-8", errors="replace")):
        tree = next((tree for tree, prefix in TREES.items() if prefix and test.name.startswith(prefix)),
                    "release")
        part = part_of_test(test.name.removeprefix(TREES[tree]))
        found[tree][0][part] += test.seconds
        found[tree][1][part] += test.tests
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    log = folder / "all/Testing/Temporary/LastTest.log"
    tested = testing(log) if log.exists() else {tree: ({}, {}) for tree in TREES}
    rows, tests = {}, collections.Counter()
    for at, tree in enumerate(TREES):
        built = folder / tree / ".ninja_log"
        columns = (building(built) if built.exists() else {}, tested[tree][0])
        for kind, column in enumerate(columns):
            for part, seconds in column.items():
                rows.setdefault(part, [0.0] * 6)[2 * at + kind] += seconds
        tests.update(tested[tree][1])
    if not rows:
        sys.exit(f"costs: there is nothing in {folder} yet; ./run test makes it")
    print(f"{'seconds':24}" + "".join(f"{tree:>16}" for tree in [*TREES, "all"]))
    print(f"{'part':24}" + "   build    test" * 4 + "   tests")
    total = [0.0] * 6

    def line(part, row, number):
        values = [*row, sum(row[0::2]), sum(row[1::2])]
        print(f"{part:24}" + "".join(f"{value:8.0f}" if value else f"{'–':>8}" for value in values)
              + f"{number or '–':>8}")

    for part, row in sorted(rows.items(), key=lambda entry: -sum(entry[1])):
        line(part, row, tests[part])
        total = [a + b for a, b in zip(total, row)]
    line("all", total, sum(tests.values()))
    print("A layer may cost 3 minutes with nothing in ccache, and 1 minute with nothing changed, in this table's\n"
          "last two columns of seconds, divided by the processors (docs/testing.md).")


if __name__ == "__main__":
    main()
