#pragma once

#include <cstdint>
#include <vector>

#include <dunlin/container/map_scan.hpp>

#include "container/value_pool.hpp"

namespace dunlin::container {

/// The long values of a piece of a scan, by the place of their slot in the piece.
struct PieceValues {
  struct Value {
    ValueReference reference;  // the last
    std::size_t line = 0;      // of `blocks`
    bool is_read = false;
  };
  PieceValues(ValuePool& its_pool, std::uint32_t places) : pool(its_pool), values(places) {}
  [[nodiscard]] std::byte* at(const Value& value) noexcept {
    return std::as_writable_bytes(std::span(blocks)).data() + value.line * kCacheLineBytes;
  }

  ValuePool& pool;
  std::vector<Value> values;
  std::vector<CacheLine> blocks;
  std::size_t lines = 0;              // of `blocks` that are used
  std::vector<std::uint32_t> wanted;  // places whose block is read
  std::vector<std::byte> content;     // of the value that was asked for last
};

}  // namespace dunlin::container
