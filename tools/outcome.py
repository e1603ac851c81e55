#!/usr/bin/env python3
"""Says how the last `./run test` ended: what was skipped and why, then what failed and what that printed last.

usage: outcome.py BUILD-FOLDER [--names]

What matters most comes last, and all of it in some screens: whoever sees only the end of a long log sees what failed.
--names adds the names of the skipped tests.

A suite of Google Test is one test for ctest, and passes if some of its tests are skipped. This reads from ctest's log
what each of them did.
"""
import collections
import pathlib
import re
import sys

import ctest_log

TEST = re.compile(r"^\d+/\d+ Test: (.*)$")
SKIPPED = re.compile(r"^\[  SKIPPED \] ([^\s,]+).* \(\d+ ms\)$")
PLACE = re.compile(r"^\S+:\d+: Skipped$")
RUN = re.compile(r"^\[ RUN      \] (\S+)$")
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+).* \(\d+ ms\)$")

FAILURES_SHOWN = 10
LINES_SHOWN = 40


def skipped(log):
    """{(tree and executable, reason): names of tests}, in the order of the log."""
    found = collections.OrderedDict()
    test, reason, in_reason = "", [], False
    for line in log.splitlines():
        if match := TEST.match(line):
            test = match[1]
        elif PLACE.match(line):
            reason, in_reason = [], True
        elif match := SKIPPED.match(line):
            executable = test.split(".", 1)[0]
            text = " ".join(reason) or "no reason was given"
            found.setdefault((executable, text), []).append(match[1])
            reason, in_reason = [], False
        elif in_reason and line.strip():
            reason.append(line.strip())
    return found


def failed(log, names):
    """{name: the lines it printed}, of the tests in `names`, in the order of the log; none where it never ran."""
    found = collections.OrderedDict()
    test, output = None, None
    for line in log.splitlines():
        if output is not None and line != "<end of output>":
            output.append(line)  # whatever it looks like
        elif output is not None:
            if test in names:
                found[test] = output[1:]  # without the rule below "Output:"
            output = None
        elif match := TEST.match(line):
            test = match[1]
        elif line == "Output:":
            output = []
    for name in names:
        found.setdefault(name, [])
    return found


def telling(lines):
    """Of what a suite printed, the tests that failed, and one that never ended; all lines of anything else."""
    kept, block = [], []
    for line in lines:
        if RUN.match(line):
            block = [line]
        elif block:
            block.append(line)
            if FAILED.match(line):
                kept += block
            if FAILED.match(line) or line.startswith(("[       OK ]", "[  SKIPPED ]")):
                block = []
    if block:
        kept += block
    return kept or lines


def failures_in(lines):
    return max(1, sum(1 for line in lines if FAILED.match(line)))


def count(log):
    """How many tests ran, each of a suite counted."""
    return sum(test.tests for test in ctest_log.ran(log))


def print_skipped(found, with_names):
    if not found:
        print("No test of Google Test was skipped.")
        return
    print(f"Skipped, of the tests of Google Test: {sum(map(len, found.values()))}")
    for (executable, reason), names in found.items():
        print(f"  {len(names)} of {executable}: {reason}")
        for name in names if with_names else ():
            print(f"    {name}")


def print_failed(found):
    for number, (name, lines) in enumerate(found.items()):
        if number == FAILURES_SHOWN:
            break
        print(f"\nFailed: {name}")
        lines = telling(lines)
        if len(lines) > LINES_SHOWN:
            print(f"  ... {len(lines) - LINES_SHOWN} lines before these")
        for line in lines[-LINES_SHOWN:]:
            print(f"  {line[:240]}")
    if found:
        print("\nAll that failed:")
        for name in found:
            print(f"  {name}")


def main():
    arguments = sys.argv[1:]
    with_names = "--names" in arguments
    if with_names:
        arguments.remove("--names")
    if len(arguments) != 1:
        sys.exit(__doc__)
    temporary = pathlib.Path(arguments[0]) / "all/Testing/Temporary"
    if not (temporary / "LastTest.log").exists():
        sys.exit(f"outcome.py: there is no {temporary / 'LastTest.log'}: run ./run test first")
    log = (temporary / "LastTest.log").read_text(encoding="utf-8", errors="replace")
    failures = temporary / "LastTestsFailed.log"
    names = []
    if failures.exists():
        lines = failures.read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.split(":", 1)[1] for line in lines if ":" in line]
    print_skipped(skipped(log), with_names)
    found = failed(log, names)
    print_failed(found)
    # A suite that crashed names no test.
    print(f"\nTests: {count(log)}, failed: {sum(map(failures_in, found.values()))}")


if __name__ == "__main__":
    main()
