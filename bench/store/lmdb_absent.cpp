#include <dunlin/error.hpp>

#include "bench/store/lmdb.hpp"

/// In place of lmdb.cpp where the library was not found.
namespace dunlin::bench {

struct Lmdb::State {};

std::string Lmdb::missing() {
  return "LMDB was not measured: it was not found at build time (Debian: liblmdb-dev)";
}
Lmdb::Lmdb(std::size_t) { throw Error("bench: this build has no LMDB"); }
Lmdb::~Lmdb() = default;
void Lmdb::begin(bool) {}
void Lmdb::end() {}
void Lmdb::get(std::uint64_t, std::span<std::byte>) {}
void Lmdb::put(std::uint64_t, std::span<const std::byte>) {}

}  // namespace dunlin::bench
