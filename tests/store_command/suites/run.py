#!/usr/bin/env python3
"""Runs a test suite that others wrote for Redis against `dunlin store serve`.

    run.py redis_py PROGRAM SUITES PYTHON      the tests of redis-py, with a Python that has pytest
    run.py redis_units PROGRAM SUITES          the units of Redis's own tests, in Tcl

PROGRAM is `dunlin`, and SUITES the folder that fetch.sh has made. The list of what is expected to fail, and why, is
redis_py.txt or redis_units.txt beside this file. The exit status is 1 if a test fails that is not in the list, or a
test of the list passes or is gone; and 77 if the suite is not there.
"""

import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
# Of redis-py, what talks to a server alone, without modules, replicas or a cluster.
PY_FILES = ["commands", "pipeline", "lock", "scripting", "encoding"]
# Of Redis, the units about commands that the store has.
UNITS = ["type/string", "type/incr", "type/hash", "type/zset", "keyspace", "scan", "expire", "multi", "quit",
         "protocol", "info-command", "scripting"]

Result = collections.namedtuple("Result", "name verdict detail")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


class Server:
    """A member of a store of its own, on a port that the kernel chooses."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program, "store", "serve", "--group", f"suites-{os.getpid()}", "--memory", "256", "--resp", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            found = re.search(r"serves Redis clients at 127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                return
        sys.exit("`dunlin store serve` ended before it served clients")

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        ended = self.process.poll()
        if ended is not None:
            sys.exit(f"`dunlin store serve` ended during the tests, with status {ended}")
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=30)
        if status:
            sys.exit(f"`dunlin store serve` ended with status {status}")


def read_list(path):
    """Names by reason: a reason is lines that begin with #, and the names follow it up to an empty line.

    A test whose reason begins with "Sometimes" may pass, too.
    """
    reasons = {}
    reason = []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            reason.append(line.lstrip("# "))
        elif line:
            if line in reasons:
                sys.exit(f"{path.name} names this twice: {line}")
            if not reason:
                sys.exit(f"{path.name} has no reason for: {line}")
            reasons[line] = " ".join(reason)
        else:
            reason = []
    return reasons


def redis_py_results(server, suites, python):
    folder = suites / "redis-py"
    if not (folder / "tests").is_dir():
        skip("the tests of redis-py are not there; `./run test --all` fetches them where it can")
    if subprocess.run([python, "-c", "import pytest, pytest_asyncio, pytest_timeout, redis"], capture_output=True,
                      check=False).returncode:
        skip("redis-py and pytest are not in build/venv; `./run test --all` installs them where it can")
    # The suite imports the redis-py of its own folder. The variants with and without a pool are one to the server.
    runs = [("3", [f"tests/test_{name}.py" for name in PY_FILES]),
            ("2", [f"tests/test_asyncio/test_{name}.py" for name in PY_FILES])]
    with tempfile.TemporaryDirectory() as reports:
        for protocol, files in runs:
            report = f"{reports}/{protocol}.xml"
            output = subprocess.run(
                [python, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", "-o", "timeout=20",
                 "-k", "not pool", "-m", "not onlycluster and not redismod", f"--protocol={protocol}",
                 f"--junitxml={report}", f"--redis-url=redis://127.0.0.1:{server.port}/0", *files],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if output.returncode not in (0, 1):
                sys.exit(f"pytest ended with status {output.returncode}:\n{output.stdout[-4000:]}")
            for case in xml.etree.ElementTree.parse(report).iter("testcase"):
                yield redis_py_result(case)


def redis_py_result(case):
    # As `asyncio/commands: test_client_list`: without class and parameters.
    parts = [part.removeprefix("test_") for part in case.get("classname").split(".")[1:] if part.startswith("test_")]
    name = "/".join(parts) + ": " + case.get("name").split("[")[0]
    failures = [case.find(kind) for kind in ("failure", "error")]
    failure = next((one for one in failures if one is not None), None)
    if failure is not None:
        return Result(name, "failed", failure.get("message", "").replace("\n", " ")[:400])
    return Result(name, "left_out" if case.find("skipped") is not None else "ok", "")


def redis_units_results(server, suites):
    folder = suites / "redis"
    if not (folder / "tests").is_dir():
        skip("the tests of Redis are not there; `./run test --all` fetches them where it can")
    if not shutil.which("tclsh"):
        skip("there is no tclsh; `./run test --all` installs tcl")
    try:
        output = subprocess.run(["tclsh", HERE / "redis_units.tcl", folder, str(server.port), *UNITS], text=True,
                                errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400,
                                check=False)
    except subprocess.TimeoutExpired as late:
        sys.exit("a unit hangs; its last lines:\n" + (late.stdout or b"").decode(errors="replace")[-2000:])
    if output.returncode:
        sys.exit(f"tclsh ended with status {output.returncode}:\n{output.stdout[-4000:]}")
    result = None
    for line in output.stdout.splitlines():
        found = re.match(r"(ok|failed|left_out) (.*)", line)
        if found:
            if result:
                yield result
            result = Result(found.group(2), found.group(1), "")
        elif result and line.startswith(" "):
            result = result._replace(detail=(result.detail + " |" + line)[:600])
    if result:
        yield result


def compare(results, reasons):
    """The same test can come in several forms, such as with each protocol: it is expected to fail in one at least."""
    verdicts = collections.defaultdict(set)
    wrong = []
    count = collections.Counter()
    by_reason = collections.Counter()
    for result in results:
        verdicts[result.name].add(result.verdict)
        count[result.verdict] += 1
        if result.verdict == "failed":
            if result.name in reasons:
                by_reason[reasons[result.name]] += 1
            else:
                wrong.append(f"fails, and is not expected to: {result.name}\n    {result.detail}")
    for name in reasons:
        if name not in verdicts:
            wrong.append(f"is expected to fail, and is not there: {name}")
        elif "failed" not in verdicts[name] and not reasons[name].startswith("Sometimes"):
            wrong.append(f"is expected to fail, and does not: {name} ({', '.join(sorted(verdicts[name]))})")
    for reason, number in by_reason.most_common():
        print(f"{number:4} fail as expected: {reason}")
    print(f"{count['ok']} passed, {sum(by_reason.values())} failed as expected, "
          f"{count['left_out']} left out by the suite")
    print("\n".join(wrong))
    return 1 if wrong else 0


def main():
    suite, program, suites = sys.argv[1:4]
    with Server(program) as server:
        if suite == "redis_py":
            results = list(redis_py_results(server, pathlib.Path(suites), sys.argv[4]))
        else:
            results = list(redis_units_results(server, pathlib.Path(suites)))
    if os.environ.get("DUNLIN_PRINT_RESULTS"):
        for result in results:
            print(result.verdict, result.name, result.detail, sep="\t")
    if not any(result.verdict == "ok" for result in results):
        sys.exit("no test passed")
    return compare(results, read_list(HERE / f"{suite}.txt"))


if __name__ == "__main__":
    sys.exit(main())
