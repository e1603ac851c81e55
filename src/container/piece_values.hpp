#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <dunlin/container/map_scan.hpp>

#include "container/value_pool.hpp"

namespace dunlin::container {

/// The long values of a piece of a scan, by the place of their slot in the piece.
class PieceValues {
 public:
  PieceValues(ValuePool& pool, std::uint32_t places) : pool_(pool), values_(places) {}

  /// A new piece.
  void begin() noexcept;
  /// Notes the reference of an element that has not been read yet; whether it can be one.
  [[nodiscard]] bool want(std::uint32_t place, const ValueReference& reference) noexcept;
  /// Makes room for what is wanted, which is then read from the first on.
  void begin_batch() noexcept;
  [[nodiscard]] bool has_batch() const noexcept { return !batch_.empty(); }

  struct Block {
    std::uint32_t place;
    ValueReference reference;
    std::byte* to;
  };
  /// The next block to read.
  [[nodiscard]] std::optional<Block> next() noexcept;
  void posted() noexcept { ++posted_; }
  /// Ends the batch. Places whose block has another value by now, which are no longer known.
  [[nodiscard]] std::vector<std::uint32_t> end_batch() noexcept;

  [[nodiscard]] bool is_read(std::uint32_t place) const noexcept { return values_[place].is_read; }
  /// The value of a place that is read, until the next call of this.
  [[nodiscard]] std::span<const std::byte> value(std::uint32_t place) noexcept;
  [[nodiscard]] ValuePool& pool() const noexcept { return pool_; }

 private:
  struct Value {
    ValueReference reference;  // the last
    std::size_t line = 0;      // of blocks_
    bool is_read = false;
  };
  [[nodiscard]] std::byte* at(const Value& value) noexcept;

  ValuePool& pool_;
  std::vector<Value> values_;
  std::vector<CacheLine> blocks_;
  std::size_t lines_ = 0;  // of blocks_ that are used
  std::vector<std::uint32_t> batch_;
  std::size_t posted_ = 0;  // of the batch
  std::vector<std::byte> content_;
};

}  // namespace dunlin::container
