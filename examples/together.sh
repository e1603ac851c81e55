#!/bin/sh
# Starts N copies of a program at once; fails if one of them fails. usage: together.sh N PROGRAM...
copies=$1
shift
started=
while [ "$copies" -gt 0 ]; do
  "$@" &
  started="$started $!"
  copies=$((copies - 1))
done
status=0
for copy in $started; do
  wait "$copy" || status=$?
done
exit "$status"
