#!/usr/bin/env bash
# clang-format, clang-tidy and shellcheck over the project.
# usage: lint.sh [format] [tidy_changed] [tidy] [tidy_deep] [shell]
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

# Where a change begins: at the branch that it goes to; on that branch itself, a day before its last commit.
base_of_change() {
  local head base
  head=$(git rev-parse HEAD)
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == "$head" ]]; then
    base=$(git rev-list -1 --before="$(($(git show -s --format=%ct HEAD) - 24 * 3600))" HEAD)
  fi
  echo "$base"
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

# The sources that a change touches, and those of the headers that it touches. Not by the static analyzer, which takes
# half of the time.
lint_tidy_changed() {
  local base changed
  if ! base=$(base_of_change 2>/dev/null) || [[ -z $base ]]; then
    echo "skipped: git does not tell what has changed; ./run lint looks at all sources"
    exit 77
  fi
  find_tidy
  cmake --preset lint >build/lint.log || { cat build/lint.log; exit 1; }
  mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } |
    sed -n 's/\.[ch]pp$/.cpp/p' | sort -u)
  local sources=() source
  for source in "${changed[@]}"; do
    if grep -qF "\"file\": \"$PWD/$source\"" build/lint/compile_commands.json; then sources+=("$source"); fi
  done
  echo "clang-tidy: ${#sources[@]} sources that have changed since ${base:0:12}"
  if ((${#sources[@]} == 0)); then return; fi
  printf '%s\0' "${sources[@]}" |
    xargs -0 -n 2 -P "$(nproc)" clang-tidy --quiet -p build/lint "--checks=-clang-analyzer-*"
}

# All sources, as CMake's unity build puts them together: most of the time goes into headers. OPTION...: for clang.
tidy_all() {
  find_tidy
  cmake --preset lint-all >build/lint-all.log || { cat build/lint-all.log; exit 1; }
  local runner=(python3 "$(dirname "$(command -v clang-tidy)")/run-clang-tidy.py")
  [[ -e ${runner[1]} ]] || runner=(run-clang-tidy)
  local common=(-quiet -p build/lint-all -j "$(nproc)")
  for option in "$@"; do common+=(-extra-arg=-Xclang "-extra-arg=$option"); done
  # The library has more rules than the rest.
  local status=0
  "${runner[@]}" "${common[@]}" -config-file=src/.clang-tidy 'build/lint-all/src/|/src/[a-z/]*\.cpp$' || status=1
  "${runner[@]}" "${common[@]}" -config-file=.clang-tidy 'build/lint-all/(apps|bench|tests|examples)/' || status=1
  return "$status"
}

# The static analyzer's own bound of states of a function is 225,000. A few functions reach any bound.
lint_tidy() { tidy_all -analyzer-config -extra-arg=-Xclang max-nodes=8000; }
lint_tidy_deep() { tidy_all; }

lint_shell() {
  need shellcheck
  shellcheck --external-sources run .ci/run {tools,tests,examples}/**/*.sh
}

if (($# == 0)); then set -- format tidy_deep shell; fi
for part in "$@"; do "lint_$part"; done
