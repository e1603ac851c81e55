#!/usr/bin/env bash
# What run.sh runs in the emulated machine: in_machine.sh FOLDER-OF-THE-BUILT-TESTS [--short]
# A further test is a further line at the end.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tests=$1
printed=$(mktemp -d)
failed=()

try() { # WHAT COMMAND...
  local what=$1 started=$SECONDS status=0
  shift
  echo "verbs: $what ..."
  "$@" 2>&1 | tee "$printed/last" || status=$?
  if ((status)); then
    cp "$printed/last" "$printed/${#failed[@]}"
    failed+=("$what")
  fi
  echo "verbs: $what: $( ((status == 0)) && echo passed || echo "failed ($status)"), $((SECONDS - started)) s"
}

# Two processors: six processes that spin would wait for each other. What counts as threads also counts
# as processes.
too_long='*Counting*AsThreads*Rdma*:*Counting*Rdma_spin6nodes*'

layers_on() { # DEVICE
  local layer alone=('*/SegmentFence*Rdma*' '*/StoreKills*Rdma*' '*/StoreJoins*Rdma*') # which have processes
  for layer in segment container store; do
    try "$layer on $1" "$here/on_device.sh" "$1" "$tests/${layer}_tests" '*Rdma*' "$(
      IFS=:
      echo "${alone[*]}"
    )"
  done
}

# A device, and one test of each thing that a layer asks of it.
short() {
  try "the conformance suite on rxe0" "$here/on_device.sh" rxe0 "$tests/conformance_tests" \
    'Verbs/Order*:Verbs/Atomics*:Verbs/Completions*:Verbs/Regions*' ''
  try "tables on rxe0" "$here/on_device.sh" rxe0 "$tests/table_tests" 'On/Counting*Threads/Rdma_block2*' ''
  try "segments on rxe0" "$here/on_device.sh" rxe0 "$tests/segment_tests" 'On/Space*Rdma*:On/SegmentLocks*Rdma*' ''
  try "containers on rxe0" "$here/on_device.sh" rxe0 "$tests/container_tests" 'On/Maps*Rdma*:On/Queues*Rdma*' ''
  try "the store on rxe0" "$here/on_device.sh" rxe0 "$tests/store_tests" 'On/Stores*Rdma*:On/Transactions*Rdma*' ''
}

full() {
  for device in rxe0 siw0; do
    try "joining, limits and deaths on $device" \
      "$here/on_device.sh" "$device" "$tests/fabric_tests" 'Verbs*' 'VerbsLimits*:VerbsMesh*:VerbsDeath*'
    try "the conformance suite on $device" \
      "$here/on_device.sh" "$device" "$tests/conformance_tests" 'Verbs/*:*Growing*/Verbs*' 'Verbs/Processes*'
    try "tables on $device" "$here/on_device.sh" "$device" "$tests/table_tests" '*Rdma*' \
      '*AsProcesses*Rdma*:*Death*Rdma*:*Silence*Rdma*' "$too_long"
    layers_on "$device"
    try "groups, and who comes in, on $device" \
      "$here/on_device.sh" "$device" "$tests/group_tests" '*Rdma*' ''
    try "multicast on $device" "$here/on_device.sh" "$device" "$tests/multicast_tests" '*Rdma*' 'On/ChangingProcesses*Rdma*'
    try "dunlin multicast on $device" \
      "$here/on_device.sh" "$device" "$tests/apps_tests" 'VerbsMulticast*' ''
    try "routing on $device" "$tests/../apps/dunlin" routing --topology hub-ring:8 --events 3 \
      --fabric verbs --device "$device" --join-timeout 60 --silence-timeout 0
    try "latency on $device" "$tests/verbs_latency" "$device"
    try "benchmarks on $device" "$tests/../apps/dunlin" bench table --fabric verbs --device "$device" \
      --only detection counting push --quick --rounds 2
  done
  try "shared memory within a host, rxe0 between hosts" \
    "$here/on_device.sh" rxe0 "$tests/conformance_tests" \
    'MixedVerbs/Order*:MixedVerbs/Atomics*:MixedVerbs/Regions*:MixedVerbs/Death*:MixedVerbs/Forming*' 'MixedVerbs/Processes*'
  # This kernel can delay and lose frames.
  try "hosts whose network delays and loses" \
    "$tests/fabric_tests" --gtest_brief=1 --gtest_filter='HostFaults.Delay*'
}

if [[ ${2:-} == --short ]]; then short; else full; fi
# A log is often read from its end, and cut: so what failed comes last, with the lines that tell why.
for i in "${!failed[@]}"; do
  echo "verbs: ${failed[i]} failed, and printed:"
  if ! grep --max-count=8 --after-context=3 -E '(Failure|Error|error|FAILED|Sanitizer|waited|what\(\))' "$printed/$i"; then
    tail -12 "$printed/$i"
  fi
done
((${#failed[@]} == 0))
