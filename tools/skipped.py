#!/usr/bin/env python3
"""Lists the tests of Google Test that were skipped in the last `./run test`, each with its reason.

usage: skipped.py BUILD-FOLDER

ctest lists a skipped test that is a process of its own. It does not list one in a suite that is one process
(SUITES in tests/CMakeLists.txt), because the rest of the suite has passed. This reads both from ctest's log.
"""
import collections
import pathlib
import re
import sys

TEST = re.compile(r"^\d+/\d+ Test: (.*)$")
SKIPPED = re.compile(r"^\[  SKIPPED \] ([^\s,]+).* \(\d+ ms\)$")
PLACE = re.compile(r"^\S+:\d+: Skipped$")


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


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    log = pathlib.Path(sys.argv[1]) / "all/Testing/Temporary/LastTest.log"
    found = skipped(log.read_text(encoding="utf-8", errors="replace")) if log.exists() else {}
    if not found:
        print("No test of Google Test was skipped.")
        return
    print(f"Skipped, of the tests of Google Test: {sum(map(len, found.values()))}")
    for (executable, reason), names in found.items():
        print(f"  {executable}: {reason}")
        for name in names:
            print(f"    {name}")


if __name__ == "__main__":
    main()
