#!/usr/bin/env bash
# Builds the checker of linearizability: build.sh FOLDER makes FOLDER/check. Fetches Porcupine, at the
# version and digest of go.sum, from the Go module proxy.
set -euo pipefail
into=$(mkdir -p "${1:?usage: build.sh FOLDER}" && cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! command -v go >/dev/null; then
  echo "build.sh: there is no go (apt-get install golang-go)" >&2
  exit 1
fi
if [[ -x $into/check && ! main.go -nt $into/check && ! transactions.go -nt $into/check && ! go.sum -nt $into/check ]]; then exit 0; fi
if ! timeout 120 go mod download; then
  echo "build.sh: the Go module proxy did not give $(awk '/^require/ { print $2, $3 }' go.mod);" \
    "is there a network?" >&2
  exit 1
fi
go build -o "$into/check" .
