#!/bin/busybox sh
# shellcheck shell=dash
# The first process of the emulated machine: loads the modules, puts a throw-away layer over the
# host's files, runs the job in there, tells its status and switches the machine off.
b=/bin/busybox
say() { echo "guest: $*" >/dev/kmsg; }
switch_off() {
  echo o >/proc/sysrq-trigger
  $b sleep 60
}
give_up() {
  say "$*"
  switch_off
}

$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
while read -r module; do
  $b insmod "/modules/$module" 2>/dev/null || say "module $module does not load"
done </modules/order

job=
for word in $($b cat /proc/cmdline); do
  case $word in job=*) job=${word#job=} ;; esac
done

$b mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /host ||
  give_up "the host's files are not there"
$b mount -t tmpfs tmpfs /changes
$b mkdir /changes/upper /changes/work
$b mount -t overlay -o lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work overlay /all ||
  give_up "no overlay"
cd /all || give_up "no overlay"
$b mount -t proc proc proc
$b mount -t sysfs sysfs sys
$b mount -o bind /dev dev
$b mkdir -p dev/shm dev/pts
$b mount -t tmpfs tmpfs dev/shm
$b mount -t devpts devpts dev/pts
$b mount -t tmpfs tmpfs run
$b ln -sf /proc/self/fd dev/fd
$b ln -sf fd/0 dev/stdin
$b ln -sf fd/1 dev/stdout
$b ln -sf fd/2 dev/stderr

channel() { # NAME
  for port in /sys/class/virtio-ports/*; do
    read -r name <"$port/name"
    [ "$name" = "$1" ] && echo "/dev/${port##*/}"
  done
}
output=$(channel output)
status=$(channel status)

$b hostname machine
ulimit -l unlimited
ulimit -n 65536
$b chroot . /bin/bash "$job/devices.sh" >/dev/kmsg 2>&1 || say "the devices could not be made"
echo begins >"$status"
$b chroot . /bin/bash "$job/job.sh" </dev/null >"$output" 2>&1
echo $? >"$status"
$b sync
switch_off
