#!/usr/bin/env bash
# Explores a model completely: tests/group/check_model.sh [--fails] MODEL [FLAG...], such as
# `view_change -DMISTAKES=2` (some minutes). With --fails, a promise must be found broken. Exit
# status 77: there is no spin here.
set -euo pipefail
fails=false
if [ "$1" = --fails ]; then
  fails=true
  shift
fi
model=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$1.pml
shift

for program in spin cc; do
  if ! command -v "$program" >/dev/null; then
    echo "skipped: there is no $program; ./run test installs it"
    exit 77
  fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
spin -a "$@" "$model"
cc -w -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o explore pan.c
./explore -m1000000 >report
cat report
# The exit status says nothing of what was found.
if $fails; then
  grep -q 'assertion violated' report
else
  grep -q 'errors: 0' report
  if grep -q 'Search not completed' report; then exit 1; fi
fi
