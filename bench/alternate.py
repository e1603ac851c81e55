#!/usr/bin/env python3
"""Compares two builds of the command: the same benchmark by one and the other, in alternating order.

usage: bench/alternate.py BEFORE AFTER ROUNDS NAME [OPTION ...]
  bench/alternate.py old/build/release/apps/dunlin build/release/apps/dunlin 5 fabric --fabric shm

Each line: a result, its medians before and after, and what it costs after, relative to before, by the value and by
the ratio to the raw limit, which was measured in the same processes and so hides less of the machine's moods. What
costs more than 1.03 is marked. Status 1 if BEFORE or AFTER fails.
"""
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def measure(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        ran = subprocess.run([program, "bench", *arguments, "--json", results], stdout=subprocess.DEVNULL)
        if not results.exists():
            sys.exit(f"{program}: `bench {' '.join(arguments)}` ended with status {ran.returncode} and without results")
        return json.loads(results.read_text(encoding="utf-8"))


def cost(before, after, better):
    """Relative; None if one of them was not measured."""
    if not before or not after:
        return None
    before, after = statistics.median(before), statistics.median(after)
    if not before or not after:
        return None
    return after / before if better == "lower" else before / after


def main():
    if len(sys.argv) < 5 or not sys.argv[3].isdigit():
        sys.exit(__doc__)
    builds, rounds, arguments = sys.argv[1:3], int(sys.argv[3]), sys.argv[4:]
    kinds = {}
    values = collections.defaultdict(lambda: ([], []))
    ratios = collections.defaultdict(lambda: ([], []))
    for i in range(rounds):
        for build in (0, 1) if i % 2 == 0 else (1, 0):
            for result in measure(builds[build], arguments):
                name = " ".join([result["name"], *(f"{key} {value}" for key, value in result["params"].items())])
                kinds[name] = (result["unit"], result["better"])
                values[name][build].append(result["value"])
                if result["ratio"]:
                    ratios[name][build].append(result["ratio"])
    for name, (unit, better) in kinds.items():
        by_value = cost(*values[name], better)
        if by_value is None:
            continue
        by_ratio = cost(*ratios[name], better)
        before, after = (statistics.median(of) for of in values[name])
        mark = " <<<" if (by_ratio or by_value) > 1.03 else ""
        by_ratio = f"{by_ratio:.2f}" if by_ratio else "-"
        print(f"{name:96} {before:10.4g} {after:10.4g} {unit:5} value {by_value:.2f}  ratio {by_ratio}{mark}")


if __name__ == "__main__":
    main()
