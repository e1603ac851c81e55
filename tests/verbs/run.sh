#!/usr/bin/env bash
# Everything about the verbs fabric that needs devices, in the emulated machine:
#
#     tests/verbs/run.sh FOLDER-OF-THE-BUILT-TESTS [--prepared]
#
# With --prepared, a machine that is not prepared yet is a reason to skip.
# The exit status is machine.sh's: 77 if there can be no such machine here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tests=$(cd "$1" && pwd)

"$here/machine.sh" "${2:---prepare}"
started=$SECONDS
status=0
"$here/machine.sh" --time-limit 1700 "$here/in_machine.sh" "$tests" || status=$?
((status == 77)) || echo "verbs: exit status $status after $((SECONDS - started)) s"
exit "$status"
