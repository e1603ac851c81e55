#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <dunlin/fabric.hpp>
#include <dunlin/limits.hpp>

namespace dunlin::group {

/// Members of one view, by rank. A set is one bit for each rank, in words of 64: a reader of shared
/// memory must know that it has all words of one set (GRP-C9).
class MemberSet {
 public:
  static constexpr std::uint32_t kWordRanks = 64;
  static constexpr std::size_t kWords = kMaxViewMembers / kWordRanks;
  static_assert(kMaxViewMembers % kWordRanks == 0);

  constexpr MemberSet() = default;
  /// A set of ranks 0 to 63, with one bit for each.
  constexpr explicit MemberSet(std::uint64_t bits) noexcept : words_{bits} {}
  /// The set of ranks 0 to `members - 1`.
  [[nodiscard]] static constexpr MemberSet first(std::uint32_t members) noexcept {
    MemberSet set;
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint32_t before = static_cast<std::uint32_t>(i) * kWordRanks;
      if (members <= before) break;
      const std::uint32_t here = members - before;
      set.words_[i] = here >= kWordRanks ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    }
    return set;
  }
  [[nodiscard]] static constexpr MemberSet only(Rank rank) noexcept {
    MemberSet set;
    set.add(rank);
    return set;
  }
  /// How many words have bits for the members of a view of that size.
  [[nodiscard]] static constexpr std::size_t words_for(std::uint32_t members) noexcept {
    return (members + kWordRanks - 1) / kWordRanks;
  }

  [[nodiscard]] constexpr bool has(Rank rank) const noexcept {
    return rank < kMaxViewMembers && (words_[rank / kWordRanks] >> rank % kWordRanks & 1) != 0;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return *this == MemberSet(); }
  [[nodiscard]] constexpr std::uint32_t size() const noexcept {
    std::uint32_t members = 0;
    for (const std::uint64_t word : words_)
      members += static_cast<std::uint32_t>(std::popcount(word));
    return members;
  }
  /// The lowest rank. Requires that the set is not empty.
  [[nodiscard]] constexpr Rank lowest() const noexcept { return *begin(); }
  /// Adds a rank; ignores a rank that no view has.
  constexpr void add(Rank rank) noexcept {
    if (rank < kMaxViewMembers) words_[rank / kWordRanks] |= std::uint64_t{1} << rank % kWordRanks;
  }

  /// The bits of ranks `64 * i` to `64 * i + 63`.
  [[nodiscard]] constexpr std::uint64_t word(std::size_t i) const noexcept { return words_[i]; }
  constexpr void set_word(std::size_t i, std::uint64_t bits) noexcept { words_[i] = bits; }

  friend constexpr MemberSet operator|(MemberSet a, const MemberSet& b) noexcept {
    for (std::size_t i = 0; i < kWords; ++i) a.words_[i] |= b.words_[i];
    return a;
  }
  friend constexpr MemberSet operator&(MemberSet a, const MemberSet& b) noexcept {
    for (std::size_t i = 0; i < kWords; ++i) a.words_[i] &= b.words_[i];
    return a;
  }
  /// The members of `a` that are not in `b`.
  friend constexpr MemberSet operator-(MemberSet a, const MemberSet& b) noexcept {
    for (std::size_t i = 0; i < kWords; ++i) a.words_[i] &= ~b.words_[i];
    return a;
  }
  friend constexpr bool operator==(const MemberSet&, const MemberSet&) noexcept = default;

  /// `for (const Rank rank : set)` goes in ascending order over the set as it was at first.
  class Iterator {
   public:
    constexpr Iterator(const std::array<std::uint64_t, kWords>& words, std::size_t word) noexcept
        : left_(words), word_(word) {
      skip_empty_words();
    }
    constexpr Rank operator*() const noexcept {
      return static_cast<Rank>(word_ * kWordRanks) +
             static_cast<Rank>(std::countr_zero(left_[word_]));
    }
    constexpr Iterator& operator++() noexcept {
      left_[word_] &= left_[word_] - 1;
      skip_empty_words();
      return *this;
    }
    /// Requires two iterators over one set.
    friend constexpr bool operator==(const Iterator& a, const Iterator& b) noexcept {
      return a.word_ == b.word_ && (a.word_ == kWords || a.left_[a.word_] == b.left_[b.word_]);
    }

   private:
    constexpr void skip_empty_words() noexcept {
      while (word_ < kWords && left_[word_] == 0) ++word_;
    }

    std::array<std::uint64_t, kWords> left_;
    std::size_t word_;  // the first with a bit
  };
  [[nodiscard]] constexpr Iterator begin() const noexcept { return {words_, 0}; }
  [[nodiscard]] constexpr Iterator end() const noexcept { return {words_, kWords}; }

 private:
  std::array<std::uint64_t, kWords> words_{};
};

/// Whether `some` are enough of a view of so many members to speak for it: more than half, or half
/// with rank 0. Any two such sets have a member in common.
[[nodiscard]] constexpr bool is_quorum(const MemberSet& some, std::uint32_t members) noexcept {
  const std::uint32_t twice = 2 * some.size();
  return twice > members || (twice == members && some.has(0));
}

}  // namespace dunlin::group
