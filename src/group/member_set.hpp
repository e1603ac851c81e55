#pragma once

#include <bit>
#include <cstdint>

#include <dunlin/fabric.hpp>

namespace dunlin::group {

/// Members of one view, by rank: one word, so that it is published at once.
class MemberSet {
 public:
  constexpr MemberSet() = default;
  constexpr explicit MemberSet(std::uint64_t bits) noexcept : bits_(bits) {}
  /// Ranks 0 to `members - 1`.
  [[nodiscard]] static constexpr MemberSet first(std::uint32_t members) noexcept {
    return MemberSet(members == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << members) - 1);
  }

  [[nodiscard]] constexpr bool has(Rank rank) const noexcept { return (bits_ >> rank & 1) != 0; }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(std::popcount(bits_));
  }
  /// Of a set that is not empty.
  [[nodiscard]] constexpr Rank lowest() const noexcept {
    return static_cast<Rank>(std::countr_zero(bits_));
  }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  constexpr void add(Rank rank) noexcept { bits_ |= std::uint64_t{1} << rank; }

  friend constexpr MemberSet operator|(MemberSet a, MemberSet b) noexcept {
    return MemberSet(a.bits_ | b.bits_);
  }
  /// Those of `a` that are not in `b`.
  friend constexpr MemberSet operator-(MemberSet a, MemberSet b) noexcept {
    return MemberSet(a.bits_ & ~b.bits_);
  }
  friend constexpr bool operator==(MemberSet, MemberSet) noexcept = default;

  /// In ascending order: `for (const Rank rank : set)`.
  class Iterator {
   public:
    constexpr explicit Iterator(std::uint64_t left) noexcept : left_(left) {}
    constexpr Rank operator*() const noexcept { return MemberSet(left_).lowest(); }
    constexpr Iterator& operator++() noexcept {
      left_ &= left_ - 1;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) noexcept = default;

   private:
    std::uint64_t left_;
  };
  [[nodiscard]] constexpr Iterator begin() const noexcept { return Iterator(bits_); }
  [[nodiscard]] constexpr Iterator end() const noexcept { return Iterator(0); }

 private:
  std::uint64_t bits_ = 0;
};

/// Whether these are enough of a view of so many members to speak for it: more than half, or half
/// with rank 0. Of two such sets at least one member is in both.
[[nodiscard]] constexpr bool is_quorum(MemberSet some, std::uint32_t members) noexcept {
  const std::uint32_t twice = 2 * some.size();
  return twice > members || (twice == members && some.has(0));
}

}  // namespace dunlin::group
