#!/usr/bin/env bash
# Runs tests on an RDMA device; in the emulated machine, or on a host that has one:
#
#     tests/verbs/on_device.sh DEVICE EXECUTABLE TOGETHER ALONE [LEFT-OUT]
#
# TOGETHER, ALONE and LEFT-OUT are filters of GoogleTest. What is to run alone has processes of its own, and
# gets one for each test: a child of a process that has used a device cannot use it.
set -uo pipefail
device=$1
tests=$2
failed=0

run() { # FILTER
  DUNLIN_VERBS_DEVICES=$device "$tests" --gtest_brief=1 --gtest_filter="$1" || failed=1
}

run "$3-$4${5:+:$5}"
suite=
while read -r name _; do
  case $name in
    *.) suite=$name ;;
    Running) ;;
    *) run "$suite$name" ;;
  esac
done < <(DUNLIN_VERBS_DEVICES=$device "$tests" --gtest_list_tests --gtest_filter="$4${5:+-$5}")
exit "$failed"
