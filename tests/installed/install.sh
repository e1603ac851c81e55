#!/bin/sh
# Installs a build afresh, so that nothing of an earlier installation is left.
set -eu
cmake=$1 build=$2 root=$3
rm -rf "$root"
"$cmake" --install "$build" --prefix "$root"
