#!/bin/sh
# Prints how many instructions each operation of the data path takes, by callgrind: the difference
# between two runs of different length, so that what both do besides does not count.
#   bench/instructions/count.sh build/release/bench/instructions/count_instructions
set -eu
program=${1:?usage: count.sh PROGRAM}
command -v valgrind >/dev/null || {
  echo "count.sh: this needs valgrind (apt-get install valgrind)" >&2
  exit 2
}

instructions() { # OPERATION TIMES
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 |
    sed -n 's/.*Collected : //p'
}

for_one() { # OPERATION
  echo "$(instructions "$1" 30000) $(instructions "$1" 10000)" | awk '{ print ($1 - $2) / 20000 }'
}

nothing=$(for_one nothing)
for operation in post post-4 poll table-poll push view-poll view-8 view-1000 view-16x100 \
  view-unordered multicast-poll multicast-8 segment:get segment:put segment:get-write \
  segment:put-write segment:get-strict segment:lock-unlock map:find map:assign map:insert-erase \
  queue:push-pop counter:add map:add-message map:update function:call; do
  for_one "$operation" |
    awk -v name="$operation" -v nothing="$nothing" '{ printf "%-20s %8.1f\n", name, $1 - nothing }'
done
