#!/usr/bin/env bash
# Runs the conformance suite of the fabric on RDMA devices; in the emulated machine, or on a host
# that has some:
#
#     tests/verbs/conformance.sh CONFORMANCE_TESTS DEVICE...
#
# Tests with processes of their own are run one by one: a child of a process that has used a device
# cannot use it.
set -uo pipefail
tests=$1
shift
failed=0

run() { # DEVICE FILTER
  DUNLIN_VERBS_DEVICES=$1 "$tests" --gtest_brief=1 --gtest_filter="$2" || failed=1
}

for device in "$@"; do
  echo "The conformance suite on $device"
  run "$device" 'Verbs/*-Verbs/Processes*'
  while read -r test _; do
    run "$device" "Verbs/Processes.$test"
  done < <(DUNLIN_VERBS_DEVICES=$device "$tests" --gtest_list_tests \
    --gtest_filter='Verbs/Processes*' | sed -n 's/^  //p')
done
exit "$failed"
