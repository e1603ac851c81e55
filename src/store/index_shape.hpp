#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

/// Which main header a key's chain has, in an index that grows by one main header at a time: linear
/// hashing (W. Litwin, VLDB 1980), with chains in the order of positions (docs/store.md).
namespace dunlin::store {

/// Positions are below this.
inline constexpr std::uint64_t kAllPositions = std::uint64_t{1} << 32;

/// A key's position is the lower half of its hash. At depth d, the positions of a home are divided
/// into base * 2^d chains, which ascend; a chain that is split keeps the lower half of its
/// positions, and a new main header gets the upper half. At any moment, the first chains have one
/// level more than the others.
class IndexShape {
 public:
  static constexpr std::uint32_t kPositionBits = 32;

  IndexShape() = default;
  explicit IndexShape(std::uint64_t base) noexcept : base_(base), headers_(base) {}

  [[nodiscard]] static constexpr std::uint64_t position_of(std::uint64_t hash) noexcept {
    return hash & UINT32_MAX;
  }
  [[nodiscard]] std::uint64_t base() const noexcept { return base_; }
  [[nodiscard]] std::uint64_t headers() const noexcept { return headers_; }
  /// Whether another main header finds positions of its own.
  [[nodiscard]] bool can_grow() const noexcept {
    return base_ << level_ <= (std::uint64_t{1} << (kPositionBits - 1));
  }
  /// Does nothing if it has as many.
  void grow_to(std::uint64_t headers) noexcept {
    if (headers <= headers_) return;
    headers_ = headers;
    while (base_ << (level_ + 1) <= headers_) ++level_;
  }

  /// Of the chain that is split next, and its depth. The new main header's number is headers().
  [[nodiscard]] std::uint64_t next_to_split() const noexcept { return number(split(), level_); }
  [[nodiscard]] std::uint32_t depth_to_split() const noexcept { return level_; }

  [[nodiscard]] std::uint32_t depth_of(std::uint64_t position) const noexcept {
    return chain_of(position, level_) < split() ? level_ + 1 : level_;
  }
  [[nodiscard]] std::uint64_t number_of(std::uint64_t position) const noexcept {
    if (headers_ == base_) return chain_of(position, 0);
    return number_at(position, depth_of(position));
  }
  /// If its chain has that depth.
  [[nodiscard]] std::uint64_t number_at(std::uint64_t position,
                                        std::uint32_t depth) const noexcept {
    return number(chain_of(position, depth), depth);
  }
  /// For a position that `number` had once, and has no more at that depth: the chain that got it
  /// then. That one may have been split since.
  [[nodiscard]] std::uint64_t next_of(std::uint64_t position, std::uint64_t number,
                                      std::uint32_t depth) const noexcept {
    std::uint32_t since = depth;
    while (since > 0 && number_at(position, since - 1) != number) --since;
    return number_at(position, since);
  }
  /// The first position of that main header.
  [[nodiscard]] std::uint64_t begin_of(std::uint64_t number) const noexcept {
    if (number < base_) return ((number << kPositionBits) + base_ - 1) / base_;
    std::uint32_t depth = 1;
    while (base_ << depth <= number) ++depth;
    const std::uint64_t chain = 2 * (number - (base_ << (depth - 1))) + 1;
    return ((chain << (kPositionBits - depth)) + base_ - 1) / base_;
  }
  /// The first position behind the chain.
  [[nodiscard]] std::uint64_t end_of(std::uint64_t position, std::uint32_t depth) const noexcept {
    const std::uint64_t begin = (chain_of(position, depth) + 1) << (kPositionBits - depth);
    return (begin + base_ - 1) / base_;
  }
  /// Whether a word that a peer has written can be a depth.
  [[nodiscard]] bool is_depth(std::uint64_t word) const noexcept {
    return word < kPositionBits && base_ << word <= (std::uint64_t{1} << kPositionBits);
  }

 private:
  /// Chains of the present level that have been split.
  [[nodiscard]] std::uint64_t split() const noexcept { return headers_ - (base_ << level_); }
  [[nodiscard]] std::uint64_t chain_of(std::uint64_t position, std::uint32_t depth) const noexcept {
    return position * base_ >> (kPositionBits - depth);
  }
  /// A lower half has the number of what was split.
  [[nodiscard]] std::uint64_t number(std::uint64_t chain, std::uint32_t depth) const noexcept {
    const auto lower = static_cast<std::uint32_t>(std::countr_zero(chain));
    if (lower >= depth) return chain >> depth;
    return (base_ << (depth - lower - 1)) + (chain >> (lower + 1));
  }

  std::uint64_t base_ = 0;     // main headers at the beginning; at most 2^32
  std::uint64_t headers_ = 0;  // at least base, and at most base * 2^(level + 1)
  std::uint32_t level_ = 0;
};

}  // namespace dunlin::store
