#!/usr/bin/env bash
# Sourced by ./run: find out what is missing, say so, install it.
# shellcheck disable=SC2034  # used by ./run

# Some come from PyPI, into build/venv: NAME@pypi, as tools/NAME.txt pins it.
pypi_packages=(python3-venv ca-certificates)
build_packages=(g++ cmake ninja-build ccache pkgconf python3 libgtest-dev libcli11-dev
  nlohmann-json3-dev libfmt-dev libpugixml-dev libboost-graph-dev
  libxxhash-dev zlib1g-dev libzstd-dev liblz4-dev libhiredis-dev liblua5.4-dev libcpp-httplib-dev libsqlite3-dev
  libssl-dev libfabric-dev libibverbs-dev librdmacm-dev libpmix-dev)
# `dunlin routing` alone, for groups on this host.
demo_packages=(g++ cmake ninja-build ccache pkgconf python3 libcli11-dev nlohmann-json3-dev libfmt-dev
  libpugixml-dev libboost-graph-dev libxxhash-dev)
sanitizer_packages=(clang libclang-rt-14-dev mold)
lint_packages=(clang clang-format shellcheck "${pypi_packages[@]}" clang-tidy@pypi)
data_packages=("${pypi_packages[@]}" topohub@pypi)
hosts_packages=(iproute2) # hosts are network namespaces
launch_packages=(openmpi-bin)
redis_packages=(redis-tools "${pypi_packages[@]}" redis@pypi) # clients of `dunlin store serve`
# The tests of redis-py and of Redis, which fetch.sh brings.
suites_packages=(tcl ca-certificates "${redis_packages[@]}" pytest@pypi)
bag_packages=("${pypi_packages[@]}" mcap@pypi) # another reader and writer of MCAP files
# Of `dunlin gateway`, and applications of DDS that it is tested with.
gateway_packages=(cyclonedds-dev cyclonedds-tools libfastrtps-dev "${pypi_packages[@]}" cyclonedds@pypi)
python_packages=(python3-dev "${pypi_packages[@]}" nanobind@pypi mypy@pypi) # the Python package, and its tests
wheel_packages=("${python_packages[@]}" auditwheel@pypi) # a wheel of it
count_packages=(jellyfish gatb-core-testdata) # another counter of k-mers, and reads
model_packages=(spin) # explores models of protocols
checker_packages=(golang-go ca-certificates) # builds the checker of linearizability
# What boots a kernel with RDMA devices, and what runs in there.
machine_packages=(qemu-system-x86 busybox-static kmod cpio xz-utils binutils make gcc-12
  ibverbs-providers iproute2)
bench_packages=(openmpi-bin libopenmpi-dev liblmdb-dev libfastrtps-dev cyclonedds-tools)

topohub_data=build/topohub # a link into build/venv

installed_something=0

die() {
  echo "run: $*" >&2
  exit 1
}

missing_packages() { # PACKAGE...
  local status
  # Unknown packages make dpkg-query fail, and are missing all the same.
  status=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null) || true
  local package
  for package in "$@"; do
    grep -qx "$package installed" <<<"$status" || echo "$package"
  done
}

is_installed_from_pypi() { # NAME
  case $1 in
    mcap) compgen -G "build/venv/lib/python3*/site-packages/mcap/__init__.py" >/dev/null ;;
    cyclonedds) compgen -G "build/venv/lib/python3*/site-packages/cyclonedds/__init__.py" >/dev/null ;;
    nanobind)
      [[ -e build/venv/bin/hypothesis ]] && compgen -G "build/venv/lib/python3*/site-packages/nanobind/__init__.py" >/dev/null &&
        compgen -G "build/venv/lib/python3*/site-packages/trio/__init__.py" >/dev/null
      ;;
    pytest) [[ -e build/venv/bin/hatchling ]] ;; # what is only needed beside it comes last
    redis) compgen -G "build/venv/lib/python3*/site-packages/async_timeout/__init__.py" >/dev/null ;;
    topohub) [[ -e $topohub_data/topozoo/Abilene.json ]] ;;
    *) [[ -e build/venv/bin/$1 ]] ;;
  esac
}

# Names what is missing in one line, then installs it.
prepare() { # PACKAGE...
  command -v dpkg-query >/dev/null || die "this is not Debian, so nothing can be installed for you." \
    "Install the equivalents of the packages in tools/prepare.sh, then use: cmake --preset release"
  local package name packages=() wanted=() from_pypi=() plan=()
  for package in "$@"; do
    name=${package%@pypi}
    if [[ $name == "$package" ]]; then
      wanted+=("$package")
    elif ! is_installed_from_pypi "$name"; then
      from_pypi+=("$name")
    fi
  done
  mapfile -t packages < <(missing_packages "${wanted[@]}")
  if ((${#packages[@]})); then plan+=("apt packages ${packages[*]}"); fi
  for name in "${from_pypi[@]}"; do
    plan+=("$(pinned "$name") from PyPI into build/venv")
  done
  if ((${#plan[@]} == 0)); then
    echo "Nothing to install."
    return
  fi
  local line
  printf -v line '%s; ' "${plan[@]}"
  echo "Will install: ${line%; }"
  if ((${#packages[@]})); then install_packages "${packages[@]}"; fi
  for name in "${from_pypi[@]}"; do install_from_pypi "$name"; done
  installed_something=1
}

install_packages() { # PACKAGE...
  local as_root=(env)
  if ((EUID)); then
    command -v sudo >/dev/null ||
      die "installing needs root, and there is no sudo. As root: apt-get install $*"
    as_root=(sudo env)
  fi
  as_root+=(DEBIAN_FRONTEND=noninteractive)
  "${as_root[@]}" apt-get update --quiet || die "apt-get update failed: is there a network?"
  "${as_root[@]}" apt-get install --quiet --yes --no-install-recommends "$@" ||
    die "apt-get could not install these; is there a network? $*"
}

pinned() { # NAME
  cut -d' ' -f1 "tools/$1.txt" | paste -sd' '
}

install_from_pypi() { # NAME
  # Without what it depends on: of topohub, only the data is wanted. Where PyPI cannot be reached we hear
  # of it within seconds.
  /usr/bin/python3 -m venv build/venv
  build/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
    --retries 1 --timeout 10 --requirement "tools/$1.txt" || {
    if [[ $1 == clang-tidy ]]; then # which only takes longer
      install_packages clang-tidy
      return
    fi
    # A few tests ask for these.
    if [[ $1 =~ ^(redis|mcap|cyclonedds|pytest|nanobind|mypy|auditwheel)$ ]]; then
      echo "Without $(pinned "$1") from PyPI: the tests that need it are skipped."
      return
    fi
    die "pip could not fetch $(pinned "$1") from PyPI"
  }
  if [[ $1 == topohub ]]; then
    ln -sfn "$(cd build && echo venv/lib/python3*/site-packages/topohub/data)" "$topohub_data"
  fi
  is_installed_from_pypi "$1" || die "$(pinned "$1") from PyPI is not what it was"
}
