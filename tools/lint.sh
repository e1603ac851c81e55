#!/usr/bin/env bash
# clang-format, clang-tidy and shellcheck over the whole project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ -e build/lint/build.ninja ]] || cmake --preset lint
cmake --build build/lint --target format
cmake --build build/lint --target tidy -- -k 0
shellcheck --external-sources run .ci/run tools/*.sh
