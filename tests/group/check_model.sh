#!/usr/bin/env bash
# Explores the model of the view change completely: tests/group/check_model.sh [FLAG...], flags of
# spin such as -DMISTAKES=2 (some minutes). Exit status 77: there is no spin here.
set -euo pipefail
model=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/view_change.pml

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
cc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o explore pan.c
./explore -m1000000 >report
cat report
# The exit status says nothing of what was found.
grep -q 'errors: 0' report
! grep -q 'Search not completed' report
