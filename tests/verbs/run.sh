#!/usr/bin/env bash
# Everything about the verbs fabric that needs devices, in the emulated machine:
#
#     tests/verbs/run.sh FOLDER-OF-THE-BUILT-TESTS [--prepared] [--short]
#
# With --short, a part of it on one device. With --prepared, a machine that is not prepared yet is a reason to skip.
# The exit status is machine.sh's: 77 if there can be no such machine here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tests=$(cd "$1" && pwd)

shift
prepare=--prepare short=() limit=1700
for option in "$@"; do
  case $option in
    --prepared) prepare=$option ;;
    --short) short=("$option") limit=600 ;;
    *)
      echo "run.sh: there is no option $option" >&2
      exit 2
      ;;
  esac
done
"$here/machine.sh" "$prepare"
started=$SECONDS
status=0
"$here/machine.sh" --time-limit "$limit" "$here/in_machine.sh" "$tests" "${short[@]}" || status=$?
((status == 77)) || echo "verbs: exit status $status after $((SECONDS - started)) s"
exit "$status"
