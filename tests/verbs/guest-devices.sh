# shellcheck shell=bash
# Run in the emulated machine: the two devices, each on a network interface that leads nowhere (what
# they carry turns round inside the device). Several addresses, so that members can have their own.
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
ip link set lo up
make_device() { # KIND NETWORK
  ip link add "$1-net" type dummy
  ip link set "$1-net" mtu 4200 up
  for host in 1 2 3 4 5 6 7 8; do ip address add "10.$2.0.$host/24" dev "$1-net"; done
  rdma link add "${1}0" type "$1" netdev "$1-net"
}
make_device rxe 77
make_device siw 78
