#!/usr/bin/env bash
# Fails with the lines in which a layer includes a header of a layer above it (docs/architecture.md), or
# in which a layer above the fabric asks what kind of fabric it has.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

failed=0
above=(table log group multicast pubsub run)
for layer in fabric table log group multicast pubsub; do
  [[ $layer == fabric ]] || above=("${above[@]:1}")
  names=$(IFS='|' && echo "${above[*]}")
  grep -rnE "#include [\"<](dunlin/)?($names)[/.]" "src/$layer" && failed=1
done
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|run|segment|container|store|daemon)[/.]" src/remote && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|run|container|store|daemon)[/.]" src/segment && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|run|container|store)[/.]" src/daemon && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|run|segment|store|daemon)[/.]" src/container && failed=1
grep -rnE "#include [\"<](dunlin/)?(table|log|group|multicast|pubsub|run|segment|container|daemon)[/.]" src/store && failed=1
grep -rnE '[.>]kind\(\) [!=]=' src/{table,log,group,multicast,pubsub,run,remote,segment,container,daemon,store} apps bench && failed=1
exit $failed
