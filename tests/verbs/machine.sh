#!/usr/bin/env bash
# Runs a command of this host in an emulated machine whose kernel has RDMA devices made of software:
#
#     tests/verbs/machine.sh [--log FILE] [--time-limit SECONDS] COMMAND [ARGUMENT...]
#     tests/verbs/machine.sh --prepare | --prepared
#
# The machine sees this host's files as they are (what it writes is forgotten), its own devices rxe0
# (RoCE, 10.77.0.1 to .8) and siw0 (iWARP, 10.78.0.1 to .8), and the environment and folder of the
# caller. Output and exit status are the command's, but for
#     77   there can be no such machine here; the last line says why
#     124  the time limit was reached
#     125  the machine itself failed; its console follows
# The kernel is Debian's: downloaded and unpacked once, into build/machine, never installed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(cd "$here/../.." && pwd)/build/machine
readonly here cache
readonly processors=2 memory_mb=2048

skip() {
  echo "skipped: $*" >&2
  exit 77
}

fail() {
  echo "machine.sh: $*" >&2
  exit 125
}

# shellcheck source=tests/verbs/kernel.sh
source "$here/kernel.sh"

# The kernel's device for virtual machines is often there, and does not work; or a machine starts, and stands still
# at the first instruction that the host's own host does not know. So boot one, and remember until this host reboots.
readonly kvm_processor=host,-erms,-fsrm
kvm_works() {
  [[ -w /dev/kvm ]] || return 1
  local answer=$cache/kvm boot works=no
  boot=$(</proc/sys/kernel/random/boot_id)
  if [[ ! -e $answer || $(head -1 "$answer") != "$boot" ]]; then
    DUNLIN_MACHINE_ACCEL=untried timeout 40 "$here/machine.sh" --time-limit 20 true </dev/null &>/dev/null && works=yes
    printf '%s\n%s\n' "$boot" "$works" >"$answer"
  fi
  [[ $(tail -1 "$answer") == yes ]]
}

processor_options() {
  local accel=${DUNLIN_MACHINE_ACCEL:-kvm}
  if [[ $accel == untried ]] || { [[ $accel == kvm ]] && kvm_works; }; then
    echo -accel kvm -cpu "$kvm_processor"
  else
    # Without "enhanced rep movsb" the kernel copies 8 bytes at a time; the emulator does that
    # instruction byte by byte, and whoever polls a word would see it half written.
    echo -accel tcg,thread=multi,tb-size=512 -cpu max,-erms,-fsrm
  fi
}

write_job() { # COMMAND [ARGUMENT...]
  export -p
  printf 'cd %q\nexec' "$PWD"
  printf ' %q' "$@"
  echo
}

# On a loaded host, the machine has begun with its command within 25 s; or its emulated processors spin for ever while
# the kernel starts, as in 1 of 20 starts, which no test of this project can be the cause of.
readonly seconds_to_begin=120
await_begin() { # STATUS-FILE PROCESS
  local until=$((SECONDS + seconds_to_begin))
  while ((SECONDS < until)) && kill -0 "$2" 2>/dev/null; do
    if [[ -s $1 ]]; then return; fi
    sleep 0.1
  done
  ! kill -0 "$2" 2>/dev/null
}

# Exits as the command does. Returns if the machine stood still before it began with the command.
run_machine() { # TIME-LIMIT LOG COMMAND [ARGUMENT...]
  local limit=$1 log=$2 run status=0 stood_still=no last
  shift 2
  run=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$run'" EXIT
  write_job "$@" >"$run/job.sh"
  cp "$here/guest-devices.sh" "$run/devices.sh"
  : >"$run/console"
  : >"$run/status"
  mkfifo "$run/output"
  cat "$run/output" &
  local reader=$! processor
  read -ra processor < <(processor_options)
  local channel channels=()
  for channel in output status; do
    channels+=(-chardev "file,id=$channel,path=$run/$channel"
      -device "virtserialport,chardev=$channel,name=$channel")
  done
  # It shall not outlive us, not even if we are killed.
  setpriv --pdeathsig TERM timeout "$limit" qemu-system-x86_64 -machine pc "${processor[@]}" -smp "$processors" \
    -m "$memory_mb" -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$cache/kernel" -initrd "$cache/initial.cpio" \
    -append "console=ttyS0 no_timer_check quiet panic=-1 mitigations=off nokaslr audit=0 random.trust_cpu=on \
cryptomgr.notests nmi_watchdog=0 tsc=reliable job=$run" \
    -chardev "file,id=console,path=$run/console" -serial chardev:console \
    -device virtio-serial-pci "${channels[@]}" \
    -virtfs local,path=/,mount_tag=host,readonly=on,security_model=none,multidevs=remap \
    </dev/null 2>"$run/complaints" &
  local machine=$!
  if ! await_begin "$run/status" "$machine"; then
    kill "$machine" 2>/dev/null || true
    stood_still=yes
  fi
  wait "$machine" || status=$?
  # Should the machine never have opened its end, the reader still ends.
  : <>"$run/output"
  wait "$reader"
  if [[ -n $log ]]; then cat "$run/complaints" "$run/console" >"$log"; fi
  if [[ $stood_still == yes ]]; then
    cat "$run/complaints" "$run/console" >&2
    echo "machine.sh: the machine stands still $seconds_to_begin s after its start" >&2
    rm -rf "$run"
    return
  fi
  last=$(tail -1 "$run/status")
  if [[ $last == [0-9]* ]]; then exit "$last"; fi
  if ((status == 124)); then
    tail -5 "$run/console" >&2
    echo "machine.sh: not done after $limit s" >&2
    exit 124
  fi
  cat "$run/complaints" "$run/console" >&2
  fail "the machine ended without a status (qemu: $status)"
}

log=
limit=600
while (($#)); do
  case $1 in
    --log) log=$2 && shift 2 ;;
    --time-limit) limit=$2 && shift 2 ;;
    --prepare)
      prepare_machine
      exit 0
      ;;
    --prepared)
      is_prepared || skip "the machine is not prepared: tests/verbs/machine.sh --prepare, or ./run test"
      exit 0
      ;;
    --) shift && break ;;
    -*) fail "there is no option $1" ;;
    *) break ;;
  esac
done
(($#)) || fail "run what? COMMAND [ARGUMENT...]"
# Whoever tries whether the processor can be the host's own has prepared it, and holds the lock.
[[ ${DUNLIN_MACHINE_ACCEL:-} == untried ]] || prepare_machine
for _ in 1 2 3; do run_machine "$limit" "$log" "$@"; done
fail "the machine stood still three times"
