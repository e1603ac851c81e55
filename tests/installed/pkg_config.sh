#!/bin/sh
# Builds each example with nothing but the compiler and what pkg-config says, and runs them all as
# their CMakeLists says: example(NAME COPIES).
set -eu
root=$1 work=$2 compiler=$3 examples=$4

PKG_CONFIG_PATH=$(dirname "$(find "$root" -name dunlin.pc)")
export PKG_CONFIG_PATH
pkg-config --exact-version="$("$root"/bin/dunlin --version | cut -d ' ' -f 2)" dunlin

rm -rf "$work"
mkdir -p "$work"
sed -n 's/^example(\([a-z_]*\) \([0-9]*\))$/\1 \2/p' "$examples/CMakeLists.txt" >"$work/list"
test -s "$work/list"
while read -r name copies; do
  # shellcheck disable=SC2046  # words are what is wanted
  "$compiler" -std=c++20 "$examples/$name.cpp" -o "$work/$name" $(pkg-config --cflags --libs dunlin)
  "$examples/together.sh" "$copies" "$work/$name"
done <"$work/list"
