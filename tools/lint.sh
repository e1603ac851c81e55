#!/usr/bin/env bash
# clang-format, clang-tidy and shellcheck over the project.
# usage: lint.sh [format] [tidy_changed] [tidy] [tidy_deep] [bench] [shell]
set -euo pipefail
shopt -s globstar nullglob
cd "$(dirname "${BASH_SOURCE[0]}")/.."

need() { # PROGRAM...
  local program
  for program in "$@"; do
    if ! command -v "$program" >/dev/null; then
      echo "skipped: there is no $program; ./run lint installs it"
      exit 77
    fi
  done
}

lint_format() {
  need clang-format
  clang-format --dry-run -Werror {include,src,apps,bench,examples,tests}/**/*.[ch]pp
}

# Where a change begins: at the branch that it goes to; on that branch itself, four hours before its last commit.
base_of_change() {
  local head base
  head=$(git rev-parse HEAD)
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == "$head" ]]; then
    base=$(git rev-list -1 --before="$(($(git show -s --format=%ct HEAD) - 4 * 3600))" HEAD)
  fi
  echo "$base"
}

# Sets `base`, and `changed`: the C++ files that a change touches.
find_change() { # WHERE-ALL-ARE-LOOKED-AT
  if ! base=$(base_of_change 2>/dev/null) || [[ -z $base ]]; then
    echo "skipped: git does not tell what has changed; $1"
    exit 77
  fi
  mapfile -t changed < <({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } |
    grep '\.[ch]pp$' | sort -u)
}

# The program itself: PyPI's is a script that takes longer to start it than clang-tidy takes for a small source.
find_tidy() {
  need clang++
  local inside=(build/venv/lib/python3*/site-packages/clang_tidy/data/bin)
  if ((${#inside[@]})); then
    PATH="$PWD/${inside[0]}:$PATH"
  else
    need clang-tidy
  fi
}

# All sources, as CMake's unity build puts them together: most of the time goes into headers.
prepare_tidy() {
  find_tidy
  cmake --preset lint >build/lint.log || { cat build/lint.log; exit 1; }
}

# Of the files whose names it reads, those in which more has changed than comments.
with_other_code() { # BASE
  python3 -c '
import re, subprocess, sys
def code(text):  # without comments and spaces
    pattern = r"(\"(?:\\.|[^\"\\\n])*\"|\x27(?:\\.|[^\x27\\\n])*\x27)|//[^\n]*|/\*.*?\*/"
    return "".join(re.sub(pattern, lambda found: found[1] or " ", text, flags=re.S).split())
for name in sys.stdin.read().split():
    before = subprocess.run(["git", "show", f"{sys.argv[1]}:{name}"], capture_output=True, text=True).stdout
    try:
        now = open(name).read()
    except FileNotFoundError:
        now = ""
    if code(before) != code(now):
        print(name)
' "$1"
}

# The units that have a source whose code a change touches, or whose header it touches; but for the tests and the
# benchmarks, which belong to the second tier. Not by the static analyzer, which takes half of the time.
lint_tidy_changed() {
  local base changed
  find_change "./run lint looks at all sources"
  prepare_tidy
  mapfile -t changed < <(printf '%s\n' "${changed[@]}" | grep -vE '^(bench|tests)/' | with_other_code "$base" |
    sed -n "s|^\(.*\)\.[ch]pp\$|$PWD/\1.cpp|p" | sort -u)
  local texts units
  mapfile -t texts < <(sed -n 's/^ *"file": "\(.*\)".*/\1/p' build/lint/compile_commands.json | sort -u)
  mapfile -t units < <(
    # Each may find none.
    printf '%s\n' "${texts[@]}" | grep -xFf <(printf '%s\n' "${changed[@]}") || true
    printf '%s\0' "${texts[@]}" | xargs -0 grep -lFf <(printf '#include "%s"\n' "${changed[@]}") || true
  )
  echo "clang-tidy: ${#units[@]} of ${#texts[@]} units have changed since ${base:0:12}"
  local unit
  for unit in "${units[@]}"; do
    # The library has more rules than the rest.
    printf '%s\0' "--config-file=$([[ $unit =~ ^$PWD/(build/lint/)?src/ ]] && echo src/).clang-tidy" "$unit"
  done | xargs -0 -r -n 2 -P "$(nproc)" clang-tidy --quiet -p build/lint "--checks=-clang-analyzer-*"
}

# The benchmarks, which `./run test` does not build: whether those that a change touches, or whose headers it touches,
# are what a compiler accepts.
lint_bench() {
  local base changed commands=build/release/compile_commands.json
  find_change "./run build compiles the benchmarks"
  if [[ ! -e $commands ]]; then
    echo "skipped: there is no $commands; cmake --preset release writes it"
    exit 77
  fi
  printf '%s\n' "${changed[@]}" | with_other_code "$base" | python3 -c '
import json, pathlib, re, sys
root = pathlib.Path.cwd()
changed = {root / name for name in sys.stdin.read().split()}
def is_touched(file, seen):
    if file in changed:
        return True
    seen.add(file)
    found = (folder / name for name in re.findall(r"^#include [<\"](.+)[>\"]", file.read_text(), re.M)
             for folder in (root / "include", root / "src", root / "apps", root / "bench", root))
    return any(is_touched(each, seen) for each in found if each not in seen and each.is_file())
units = [each for each in json.load(open(sys.argv[1])) if "/dunlin_bench.dir/" in each["command"]]
gone = any(not file.exists() for file in changed)
wanted = [each["command"] for each in units if gone or is_touched(pathlib.Path(each["file"]), set())]
print(f"the compiler reads {len(wanted)} of {len(units)} units of the benchmarks", file=sys.stderr)
for command in wanted:
    print(command, "-fsyntax-only", end="\0")
' "$commands" | (cd build/release && xargs -0 -r -n 1 -P 2 nice -n 19 bash -c)
}

tidy_all() { # OPTION-OF-CLANG...
  prepare_tidy
  local runner=(python3 "$(dirname "$(command -v clang-tidy)")/run-clang-tidy.py")
  [[ -e ${runner[1]} ]] || runner=(run-clang-tidy)
  local common=(-quiet -p build/lint -j "$(nproc)")
  for option in "$@"; do common+=(-extra-arg=-Xclang "-extra-arg=$option"); done
  local status=0
  "${runner[@]}" "${common[@]}" -config-file=src/.clang-tidy 'build/lint/src/|/src/[a-z/]*\.cpp$' || status=1
  "${runner[@]}" "${common[@]}" -config-file=.clang-tidy 'build/lint/(apps|bench|tests|examples)/' || status=1
  return "$status"
}

# The static analyzer's own bound of states of a function is 225,000. A few functions reach any bound.
lint_tidy() { tidy_all -analyzer-config max-nodes=8000; }
lint_tidy_deep() { tidy_all; }

lint_shell() {
  need shellcheck
  shellcheck --external-sources run .ci/run {tools,tests,examples}/**/*.sh
}

if (($# == 0)); then set -- format tidy_deep shell; fi
for part in "$@"; do "lint_$part"; done
