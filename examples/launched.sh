#!/bin/sh
# Starts N copies of launched_table by mpirun, with a secret or with what its PMIx server shares, or
# by hand, and looks at what they found. Exits with 77 where that cannot be had.
# usage: launched.sh mpirun|pmix|hand N PROGRAM
how=$1
copies=$2
program=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
umask 077
od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$folder/secret"
export DUNLIN_SECRET_FILE="$folder/secret"

case $how in
  mpirun | pmix)
    if [ "$how" = pmix ]; then unset DUNLIN_SECRET_FILE; fi
    if ! command -v mpirun >/dev/null; then
      echo "skipped: there is no mpirun here (Debian: openmpi-bin)"
      exit 77
    fi
    # It refuses root without these, and more processes than cores without the option.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun --oversubscribe --bind-to none -n "$copies" "$program" >"$folder/said" 2>&1
    ;;
  hand)
    export DUNLIN_MEMBERS="$copies" DUNLIN_RENDEZVOUS="unix:launched-by-hand-$$"
    "$(dirname "$0")/together.sh" "$copies" "$program" >"$folder/said" 2>&1
    ;;
esac
status=$?
cat "$folder/said"
if grep -q "this build of Dunlin has no " "$folder/said"; then
  echo "skipped: this build has no tcp fabric, or no PMIx"
  exit 77
fi
sum=0
rank=0
while [ "$rank" -lt "$copies" ]; do
  sum=$((sum + rank * rank))
  rank=$((rank + 1))
done
if ! grep -q "^$copies nodes, sum of squares $sum\$" "$folder/said"; then
  echo "nobody said: $copies nodes, sum of squares $sum"
  exit 1
fi
exit "$status"
