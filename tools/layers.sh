#!/usr/bin/env bash
# Fails with the lines in which a layer includes a header of a layer that it is not built on
# (docs/architecture.md), or in which a layer above the fabric asks what kind of fabric it has.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

declare -A built_on=(
  [fabric]=''
  [table]='fabric'
  [log]='fabric'
  [group]='table fabric'
  [multicast]='group table log fabric'
  [pubsub]='multicast group table run fabric'
  [relay]='pubsub multicast group table run fabric'
  [remote]='fabric'
  [segment]='remote fabric'
  [container]='remote fabric'
  [store]='remote fabric'
  [daemon]='segment remote fabric'
  [run]='fabric'
)
failed=0
for layer in "${!built_on[@]}"; do
  others=()
  for other in "${!built_on[@]}"; do
    [[ " $layer ${built_on[$layer]} " == *" $other "* ]] || others+=("$other")
  done
  names=$(IFS='|' && echo "${others[*]}")
  grep -rnE "#include [\"<](dunlin/)?($names)[/.]" "src/$layer" "include/dunlin/$layer.hpp" \
    "include/dunlin/$layer" 2>/dev/null && failed=1
  [[ $layer == fabric ]] && continue
  grep -rnE '[.>]kind\(\) [!=]=' "src/$layer" && failed=1
done
grep -rnE '[.>]kind\(\) [!=]=' apps bench && failed=1
# The client of relays is a library of its own: it knows no fabric and no group.
grep -nE "#include [\"<](dunlin/)?(group|multicast|table|fabric)([.]|/[a-z_]*[.]hpp)" \
  include/dunlin/relay.hpp include/dunlin/relay/client.hpp src/relay/client_state.hpp |
  grep -vE "fabric/(system|bytes)[.]hpp" && failed=1
exit $failed
