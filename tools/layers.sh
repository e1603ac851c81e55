#!/usr/bin/env bash
# Fails with the lines in which a layer includes a header of a layer above it (docs/architecture.md), or
# in which a layer above the fabric asks what kind of fabric it has.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

failed=0
above=(table log group multicast pubsub relay run)
for layer in fabric table log group multicast pubsub relay; do
  [[ $layer == fabric ]] || above=("${above[@]:1}")
  names=$(IFS='|' && echo "${above[*]}")
  grep -rnE "#include [\"<](dunlin/)?($names)[/.]" "src/$layer" && failed=1
done
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|relay|run|segment|container|store|daemon)[/.]" src/remote && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|relay|run|container|store|daemon)[/.]" src/segment && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|relay|run|container|store)[/.]" src/daemon && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|relay|run|segment|store|daemon)[/.]" src/container && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|relay|run|segment|container|daemon)[/.]" src/store && failed=1
grep -rnE '[.>]kind\(\) [!=]=' src/{table,log,group,multicast,pubsub,relay,run,remote,segment,container,daemon,store} apps bench && failed=1
# The client of relays is a library of its own: it knows no fabric and no group.
grep -nE "#include [\"<](dunlin/)?(group|multicast|table|fabric)([.]|/[a-z_]*[.]hpp)" include/dunlin/relay.hpp \
  include/dunlin/relay/client.hpp src/relay/client_state.hpp | grep -vE "fabric/(system|bytes)[.]hpp" && failed=1
exit $failed
