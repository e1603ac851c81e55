#!/usr/bin/env bash
# clang-format, clang-tidy and shellcheck over the project. usage: lint.sh [format] [tidy] [tidy_deep] [shell]
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

run_tidy() { # TARGET
  [[ -e build/venv/bin/clang-tidy ]] || need clang-tidy
  need clang++
  [[ -e build/lint/build.ninja ]] || cmake --preset lint
  cmake --build build/lint --target "$1"
}

lint_tidy() { run_tidy tidy; }
lint_tidy_deep() { run_tidy tidy_deep; }

lint_shell() {
  need shellcheck
  shellcheck --external-sources run .ci/run {tools,tests,examples}/**/*.sh
}

if (($# == 0)); then set -- format tidy_deep shell; fi
for part in "$@"; do "lint_$part"; done
