#!/usr/bin/env bash
# Fails with the lines in which a layer includes a header of a layer that it is not built on
# (docs/architecture.md), or in which a layer above the fabric asks what kind of fabric it has; and with the sources
# that nobody compiles, because no CMakeLists.txt of their folder or above it names them.
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
  [node]='store container segment remote pubsub multicast group group_members table log join run fabric'
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
grep -rn '#include "bench/' include src apps && failed=1  # the benchmarks are no part of the command
# The client of relays is a library of its own: it knows no fabric and no group.
grep -nE "#include [\"<](dunlin/)?(group|multicast|table|fabric)([.]|/[a-z_]*[.]hpp)" \
  include/dunlin/relay.hpp include/dunlin/relay/client.hpp src/relay/client_state.hpp |
  grep -vE "fabric/(system|bytes|socket_address)[.]hpp" && failed=1
declare -A listed
while read -r source; do
  folder=$(dirname "$source")
  found=
  while [[ -z $found && $folder != . ]]; do
    [[ -v listed[$folder] ]] || listed[$folder]=$(cat "$folder"/CMakeLists.txt "$folder"/*/tests.cmake 2>/dev/null)
    [[ ${listed[$folder]} =~ (^|[^a-z_])${source##*/}($|[^a-z_]) ]] && found=1
    folder=$(dirname "$folder")
  done
  if [[ -z $found ]]; then
    echo "$source: no CMakeLists.txt names it"
    failed=1
  fi
done < <(find src apps bench tests -name '*.cpp' -not -path '*/compile_fail/*' -not -path '*/fuzz/*')
exit $failed
