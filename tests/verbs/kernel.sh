# shellcheck shell=bash
# Sourced by machine.sh: what the emulated machine boots, made once: $cache/kernel, an uncompressed
# Linux of Debian's, and $cache/initial.cpio, its modules with the one that Debian leaves out.
# shellcheck disable=SC2154  # here, cache: of machine.sh

needed_tools=(qemu-system-x86_64 busybox modprobe depmod cpio xz strip make gcc-12 dpkg-deb apt-get)

# Prints the version of the stock kernel, such as 6.1.0-30-amd64.
stock_kernel() {
  apt-cache depends linux-image-amd64 2>/dev/null |
    sed -n 's/^ *Depends: linux-image-\([^ ]*\).*/\1/p' | head -1
}

fetch_packages() { # VERSION
  local series=${1%.*} # 6.1 of 6.1.0-30-amd64
  apt-get download --quiet "linux-image-$1" "linux-headers-$1" "linux-headers-${1%-amd64}-common" \
    "linux-kbuild-$series" "linux-source-$series"
  local package
  for package in linux-*.deb; do
    dpkg-deb --extract "$package" unpacked
    rm "$package"
  done
}

# Debian leaves soft-iWARP out of its kernel; its source is in the same version.
build_siw() { # VERSION
  local headers=unpacked/usr/src/linux-headers-$1
  mkdir siw
  tar --extract --xz --file "unpacked/usr/src/linux-source-${1%.*}.tar.xz" --directory siw \
    --wildcards --strip-components=5 '*/drivers/infiniband/sw/siw/*'
  sed -i "s#/usr/src/#$PWD/unpacked/usr/src/#" "$headers/Makefile"
  make --directory "$headers" M="$PWD/siw" CC=gcc-12 CONFIG_RDMA_SIW=m modules
  mkdir -p "unpacked/lib/modules/$1/extra"
  cp siw/siw.ko "unpacked/lib/modules/$1/extra/"
  depmod --basedir unpacked "$1"
}

# Uncompressed, because decompressing takes an emulated processor seconds.
unpack_kernel() { # VERSION
  local image=unpacked/boot/vmlinuz-$1 start
  start=$(LC_ALL=C grep --only-matching --byte-offset --binary --text --perl-regexp \
    '\xFD7zXZ\x00' "$image" | head -1 | cut -d: -f1)
  # What follows the compressed kernel in the image makes xz complain at the end.
  tail --bytes=+$((start + 1)) "$image" | xz --decompress --stdout >kernel 2>/dev/null || true
  [[ -s kernel ]]
}

guest_modules=(virtio_pci virtio_console 9pnet_virtio 9p overlay dummy
  crc32_generic crc32c_generic ib_uverbs rdma_ucm rdma_rxe siw
  veth bridge sch_netem) # for the hosts of tests/support/hosts.hpp

# Modules are stripped: less to copy, and a signature that no longer fits is not looked at.
pack_initial_files() { # VERSION
  mkdir -p initial/bin initial/modules initial/{proc,sys,dev,host,changes,all}
  cp "$(command -v busybox)" initial/bin/busybox
  cp "$here/guest-init.sh" initial/init
  chmod +x initial/init
  local module file
  for module in "${guest_modules[@]}"; do
    modprobe --dirname "$PWD/unpacked" --set-version "$1" --show-depends "$module"
  done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' |
    while read -r file; do
      strip --strip-debug -o "initial/modules/$(basename "$file")" "$file"
      basename "$file"
    done >initial/modules/order
  (cd initial && find . | cpio --create --format=newc --quiet) >initial.cpio
}

# Names what the cache was made from: another kernel or another init makes it anew.
cache_stamp() { # VERSION
  echo "$1 $(cat "$here/kernel.sh" "$here/guest-init.sh" | sha256sum)"
}

is_prepared() {
  [[ -e $cache/stamp && $(<"$cache/stamp") == "$(cache_stamp "$(cut -d' ' -f1 "$cache/stamp")")" ]]
}

prepare_machine() {
  local tool version
  [[ $(uname -m) == x86_64 ]] || skip "the emulated machine needs an x86-64 host"
  for tool in "${needed_tools[@]}"; do
    command -v "$tool" >/dev/null || skip "there is no $tool here (./run test installs it)"
  done
  mkdir -p "$cache"
  exec {lock}>"$cache/lock"
  flock "$lock"
  version=$(stock_kernel)
  if [[ -z $version && -e $cache/stamp ]]; then
    version=$(cut -d' ' -f1 "$cache/stamp") # no package lists, but a kernel from before
  fi
  [[ -n $version ]] || skip "apt knows no package linux-image-amd64 (apt-get update?)"
  if is_prepared && [[ $(cut -d' ' -f1 "$cache/stamp") == "$version" ]]; then return; fi
  echo "Preparing the emulated machine: Linux $version, downloaded and unpacked in $cache" >&2
  rm -rf "$cache/work" "$cache/stamp"
  mkdir "$cache/work"
  (cd "$cache/work" && fetch_packages "$version") >"$cache/log" 2>&1 ||
    skip "the packages of Linux $version cannot be had: $(tail -1 "$cache/log")"
  # Not as a condition, so that the first command that fails ends it.
  set +e
  (
    set -e
    cd "$cache/work"
    build_siw "$version"
    unpack_kernel "$version"
    pack_initial_files "$version"
    mv kernel initial.cpio "$cache/"
  ) >>"$cache/log" 2>&1
  local status=$?
  set -e
  ((status == 0)) || { tail -20 "$cache/log" >&2; fail "preparing the machine failed: $cache/log"; }
  rm -rf "$cache/work"
  cache_stamp "$version" >"$cache/stamp"
}
