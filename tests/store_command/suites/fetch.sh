#!/usr/bin/env bash
# Fetches the tests that others wrote for Redis: fetch.sh FOLDER PIP makes FOLDER/redis-py of the sources of redis-py
# on PyPI, and FOLDER/redis of those of Debian's package redis. PIP belongs to a Python that has hatchling.
set -euo pipefail
into=$(mkdir -p "${1:?usage: fetch.sh FOLDER PIP}" && cd "$1" && pwd)
pip=$(realpath --no-symlinks "${2:?usage: fetch.sh FOLDER PIP}")
cd "$(dirname "${BASH_SOURCE[0]}")"
self=$PWD/fetch.sh

digest=4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982 # of Redis 7.0.15
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# Moves in what is complete, so that a half of it is never taken for the whole.
unpack() { # ARCHIVE NAME
  mkdir "$work/$2"
  tar --extract --file "$1" --directory "$work/$2" --strip-components 1
  rm -rf "${into:?}/$2"
  mv "$work/$2" "$into/$2"
  cp "$self" "$into/$2/fetched-by"
}

is_there() { # NAME
  cmp --silent "$self" "$into/$1/fetched-by"
}

# pip looks at the sources with what is installed, so it fetches nothing that has no digest.
fetch_redis_py() {
  "$pip" download --quiet --disable-pip-version-check --retries 1 --timeout 10 --no-deps --no-build-isolation \
    --no-binary redis --require-hashes --dest "$work" --requirement redis_py_sources.txt &&
    unpack "$work"/redis-*.tar.gz redis-py
}

# Lists of Debian's sources of our own, as most machines are set up without them.
fetch_redis() {
  local file list parts
  eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
  mkdir -p "$work"/apt/{parts,lists/partial,cache/archives/partial}
  for file in "$list" "$parts"/*.list; do
    if [[ -e $file ]]; then sed -n 's/^deb /deb-src /p' "$file" >"$work/apt/parts/$(basename "$file")"; fi
  done
  for file in "$parts"/*.sources; do
    if [[ -e $file ]]; then sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/apt/parts/$(basename "$file")"; fi
  done
  cat >"$work/apt/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/apt/parts";
Dir::State::lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "";
END
  (
    cd "$work"
    export APT_CONFIG="$work/apt/apt.conf"
    apt-get update --quiet=2 || true # a source that is of no interest may fail
    apt-get source --quiet=2 --download-only redis
    # The tests are another version's otherwise, and the list of what is expected to fail is wrong.
    sha256sum --quiet --check - <<<"$digest  redis_7.0.15.orig.tar.gz"
  ) && unpack "$work/redis_7.0.15.orig.tar.gz" redis
}

if ! is_there redis-py && ! fetch_redis_py; then
  echo "fetch.sh: PyPI did not give the sources of redis-py; is there a network?" >&2
  status=1
fi
if ! is_there redis && ! fetch_redis; then
  echo "fetch.sh: Debian did not give the sources of redis 7.0.15; is there a network?" >&2
  status=1
fi
exit "$status"
