#!/usr/bin/env python3
"""Runs clang-tidy on every source that it has not found clean before with the same content.

usage: tidy.py --build-dir TREE [--clang-tidy PROGRAM] [--jobs N] [--analyzer-nodes N] SOURCE...

What was found clean is remembered (tools/unchanged.py) by the content of the source and of all its headers,
the compiler's options, the .clang-tidy files that apply, and clang-tidy's version. A source with findings is
analysed again each time.

Where several sources with the same options and rules are to be analysed, they are one text, up to 24 at a time
(tools/packing.py): reading the same headers again is the longer part of the work. The text has all of them in its
main file, where every check looks. If anything is found in it, or it is no valid text, those of its sources that this
is said of are a text, the others are one, and so on; if it is said of none, or of all, each half is one. What is found
in one source alone counts. A source that the tree does not compile has the options that most sources of its folder
have, or of the folder above.

--analyzer-nodes bounds how many states of a function clang's static analyzer looks at (its own bound is 225,000). A
few functions of each source reach any bound, and take most of the time. What was found clean without the option, or
with a higher bound that ./run test had before, counts as clean with it, too.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import packing
import unchanged

MOST_TOGETHER = 24
FORMER_NODES = (20000, 75000)  # of --analyzer-nodes in ./run test


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
        texts = result.setdefault(entry["file"], [])
        text = shlex.join(word for word in words if not word.endswith((".o", ".cpp")))
        if without_system_folders(text) not in map(without_system_folders, texts):
            texts.append(text)
    return result


def without_system_folders(command):
    """More folders of system headers make no other text of what compiles without them."""
    return re.sub(r" -isystem \S+", "", command)


def rules(source, root):
    folders = [folder for folder in source.parents if folder == root or root in folder.parents]
    files = [folder / ".clang-tidy" for folder in folders]
    return [file for file in files if file.exists()]


def run(tidy, nodes, source, *arguments):
    """(output, or None if the source is clean; the headers that were read)"""
    with tempfile.NamedTemporaryFile(prefix="dunlin-tidy.") as headers:
        words = ["-sys-header-deps", "-header-include-file", headers.name]
        if nodes:
            words += ["-analyzer-config", f"max-nodes={nodes}"]
        extra = [f"--extra-arg={word}" for flag in words for word in ("-Xclang", flag)]
        result = subprocess.run([tidy, "--quiet", *extra, str(source), *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        read = headers.read().decode().splitlines()
    return (result.stdout if result.returncode else None), read


def analyse(tidy, nodes, build_dir, source):
    return run(tidy, nodes, source, "-p", str(build_dir))


def analyse_together(tidy, nodes, sources, flags, root):
    """As analyse(), of one text made of all sources; and the sources that its findings are in."""
    with tempfile.TemporaryDirectory(prefix="dunlin-tidy.") as folder:
        # The rules of a source are those of the folders above it; all sources have the same.
        files = rules(sources[0], root)
        place = pathlib.Path(folder) / (files[0].parent.relative_to(root) if files else "")
        place.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, pathlib.Path(folder) / file.relative_to(root))
        text = place / "together.cpp"
        texts = [source.read_text(encoding="utf-8") for source in sources]
        text.write_text(packing.one_text(texts), encoding="utf-8")
        beside = [f"-I{parent}" for parent in dict.fromkeys(source.parent for source in sources)]
        # The folders of the sources come last, or one's text.hpp would be taken for that of all. And what
        # one source declares is hidden by another's variables, which is no fault of theirs. And the main() of a
        # program that shares its text is a function like others.
        programs = any(map(packing.is_program, texts))
        lenient = ["-Wno-shadow"] + (["-Wno-return-type"] if programs else [])
        output, read = run(tidy, nodes, text, "--", *flags, *beside, *lenient)
    lines = {int(line) for line in re.findall(r"/together\.cpp:(\d+):\d+: error:", output or "")}
    found_in = {packing.source_of_line(texts, line) for line in lines} - {None}
    return output, [file for file in read if not file.startswith(folder)], [sources[number] for number in found_in]


def options_of(command):
    return [word for word in shlex.split(command)[1:] if word not in ("-c", "-o")]


def options_of_most(source, flags, root):
    """The command that most compiled sources have in its folder, or else in the folder above, and so on; or none."""
    for folder in source.parents:
        if folder == root.parent:
            break
        below = f"{folder}{os.sep}"
        counts = collections.Counter(texts[0] for file, texts in sorted(flags.items())
                                     if len(texts) == 1 and file.startswith(below))
        if counts:
            return [counts.most_common(1)[0][0]]
    return []


def groups(stale, flags, root):
    """[(commands, sources that can be one text)]: with the same options, under the same rules."""
    alike, texts = {}, {source: source.read_text(encoding="utf-8") for source in stale}
    for source in sorted(stale):
        options = flags.get(str(source)) or options_of_most(source, flags, root)
        kind = (tuple(rules(source, root)), tuple(options), packing.is_program(texts[source]))
        alike.setdefault(kind, []).append(source)
    result = []
    for (_, commands_of, _), sources in alike.items():
        most = MOST_TOGETHER if len(commands_of) == 1 else 1  # each command of a source counts
        units = packing.units(most, [texts[source] for source in sources])
        result += [(commands_of, [sources[number] for number in unit]) for unit in units]
    return result


def analyse_all(sources, alone, as_one):
    """[(source, its findings or None, the headers that were read, when it began)]

    `alone` and `as_one` analyse a source and a text of several: (output or None, headers), and of a text the sources
    that the findings are in.
    """
    began = time.time()
    if len(sources) == 1:
        return [(sources[0], *alone(sources[0]), began)]
    output, read, found_in = as_one(sources)
    if output is None:
        return [(source, None, read, began) for source in sources]
    reason = next((line for line in output.splitlines() if "error:" in line), "no valid text")
    parts = [[source for source in sources if source not in found_in], found_in]
    if not all(parts):
        middle = len(sources) // 2
        parts = [sources[:middle], sources[middle:]]
    print(f"{len(sources)} sources as {len(parts[0])} and {len(parts[1])}, as in their one text: {reason}", flush=True)
    return [result for part in parts for result in analyse_all(part, alone, as_one)]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--clang-tidy", default="clang-tidy")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--analyzer-nodes", type=int)
    parser.add_argument("sources", nargs="+", type=lambda text: pathlib.Path(text).resolve())
    options = parser.parse_args()

    tidy = program(options.clang_tidy)
    version = subprocess.run([tidy, "--version"], capture_output=True, text=True, check=True).stdout
    flags = commands(options.build_dir)
    # clang-tidy takes the options of a similar source for one that the tree does not compile.
    all_flags = [*{text: None for texts in flags.values() for text in texts}]
    passed = unchanged.Passed()

    nodes = options.analyzer_nodes
    bound = [f"max-nodes={nodes}"] if nodes else []
    more = [[], *([f"max-nodes={former}"] for former in FORMER_NODES if nodes and nodes < former)]
    keys, stale = {}, []
    for source in options.sources:
        facts = ["clang-tidy", version, passed.name(source),
                 *map(passed.name, rules(source, passed.root)), *flags.get(str(source), all_flags)]
        keys[source] = passed.key(*facts, *bound)
        if not any(passed.has_passed(passed.key(*facts, *one)) for one in [bound, *more]):
            stale.append(source)
    # The longest ones first, so that none of them is alone in the end: those with rules of their own.
    work = groups(stale, flags, passed.root)
    work.sort(key=lambda group: (-len(rules(group[1][0], passed.root)),
                                 -sum(source.stat().st_size for source in group[1])))

    def check(commands_of, sources):
        return analyse_all(sources, lambda source: analyse(tidy, nodes, options.build_dir, source),
                           lambda together: analyse_together(tidy, nodes, together, options_of(commands_of[0]),
                                                             passed.root))

    failed, number = [], 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(check, *group) for group in work]):
            for source, output, headers, began in done.result():
                number += 1
                name = source.relative_to(passed.root)
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
