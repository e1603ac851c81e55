#!/usr/bin/env python3
"""Runs clang-tidy on every source that it has not found clean before with the same content.

usage: tidy.py --build-dir TREE [--clang-tidy PROGRAM] [--jobs N] SOURCE...

Each source is analysed alone, with all its headers. What was found clean is remembered (tools/unchanged.py)
by the content of the source and of all its headers, the compiler's options, the .clang-tidy files that
apply, and clang-tidy's version. A source with findings is analysed again each time.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import unchanged


def program(given):
    """PyPI's clang-tidy is a script that starts the real one, and takes longer to do so than we wait."""
    folder = pathlib.Path(given).absolute().parent.parent
    real = list(folder.glob("lib/python3*/site-packages/clang_tidy/data/bin/clang-tidy"))
    return str(real[0]) if real else given


def commands(build_dir):
    """The compiler's options of each source that the tree compiles."""
    with open(build_dir / "compile_commands.json", encoding="utf-8") as file:
        entries = json.load(file)
    result = {}
    for entry in entries:
        words = entry.get("arguments") or shlex.split(entry["command"])
        # One source may be compiled for several targets: all of them count.
        result.setdefault(entry["file"], []).append(" ".join(
            word for word in words if not word.endswith((".o", ".cpp"))))
    return result


def rules(source, root):
    folders = [folder for folder in source.parents if folder == root or root in folder.parents]
    files = [folder / ".clang-tidy" for folder in folders]
    return [file for file in files if file.exists()]


def analyse(tidy, build_dir, source):
    """(output, or None if the source is clean; the headers that were read; when it began)"""
    with tempfile.NamedTemporaryFile(prefix="dunlin-tidy.") as headers:
        extra = [f"--extra-arg={word}" for flag in (["-sys-header-deps"],
                 ["-header-include-file"], [headers.name]) for word in ("-Xclang", *flag)]
        began = time.time()
        result = subprocess.run([tidy, "--quiet", "-p", str(build_dir), *extra, str(source)],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        read = headers.read().decode().splitlines()
    return (result.stdout if result.returncode else None), read, began


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--clang-tidy", default="clang-tidy")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("sources", nargs="+", type=lambda text: pathlib.Path(text).resolve())
    options = parser.parse_args()

    tidy = program(options.clang_tidy)
    version = subprocess.run([tidy, "--version"], capture_output=True, text=True, check=True).stdout
    flags = commands(options.build_dir)
    # clang-tidy takes the options of a similar source for one that the tree does not compile.
    all_flags = [*{text: None for texts in flags.values() for text in texts}]
    passed = unchanged.Passed()

    keys, stale = {}, []
    for source in options.sources:
        keys[source] = passed.key("clang-tidy", version, passed.name(source),
                                  *map(passed.name, rules(source, passed.root)),
                                  *flags.get(str(source), all_flags))
        if not passed.has_passed(keys[source]):
            stale.append(source)
    # The longest ones first, so that none of them is alone in the end: those with rules of their own.
    stale.sort(key=lambda source: (-len(rules(source, passed.root)), -source.stat().st_size))

    failed = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(analyse, tidy, options.build_dir, source): source for source in stale}
        for number, done in enumerate(concurrent.futures.as_completed(running), 1):
            source = running[done]
            name = source.relative_to(passed.root)
            output, headers, began = done.result()
            print(f"[{number}/{len(stale)}] clang-tidy {name}", flush=True)
            if output is None:
                files = [source, *headers, *rules(source, passed.root)]
                passed.remember(keys[source], files, began)
            else:
                failed.append(name)
                print(output, flush=True)
    passed.forget_old()
    print(f"clang-tidy: {len(options.sources)} sources, "
          f"{len(options.sources) - len(stale)} of them clean before and unchanged")
    if failed:
        sys.exit(f"clang-tidy: findings in {', '.join(map(str, failed))}")


if __name__ == "__main__":
    main()
