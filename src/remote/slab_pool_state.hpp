#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "fabric/backoff.hpp"

/// The state that slab_pool.cpp (allocation), slab_withdrawal.cpp (slabs that are given back) and
/// slab_return.cpp (homes that ask for them) share.
///
/// A region is a row of slabs, each a header and then its blocks. The header's words are changed
/// through the fabric only, by the home, too (docs/formats/store.md has the offsets).
///
///     0        holder: (size class + 1) << 16 | member + 1; 0: nobody; member + 1: withheld
///     8        linked: a bit for each block
///     8 + 8n   freed: a bit for each linked block that nobody finds any more; the slab's holder
///              takes both bits away, and allocates the block again
///     8 + 16n  of a pool that makes room: a mark for each block, a byte. Of another pool, in the
///              first slab: wants, answer, request (see below)
///
/// A member that finds no room at a home adds 1 to the home's `wants`, and reads `answer` until the
/// home has looked for room since: answer / 2 is the number of wants that it has answered, and bit
/// 0 says that it has found nothing. A home that asks for an empty slab back puts a request into
/// the word of the slab's holder, by compare-and-swap. The holder sets it to 0 once it has given
/// the slab back, or keeps it because a block there is allocated.
namespace dunlin::remote {

inline constexpr std::uint32_t kNoClass = UINT32_MAX;
inline constexpr std::size_t kBitsPerWord = 64;
inline constexpr std::uint32_t kHoldersRead = 16;
inline constexpr std::size_t kWantWords = 3;  // wants, answer, request
/// Between two looks at a word of another member.
inline constexpr std::uint64_t kShortestPauseNs = 5'000;
inline constexpr std::uint64_t kLongestPauseNs = 1'000'000;

[[nodiscard]] constexpr std::uint64_t holder_word(Rank rank, std::uint32_t size_class) noexcept {
  return std::uint64_t{size_class + 1} << 16 | (rank + 1);
}
/// Of a slab that its home keeps empty: no size class.
[[nodiscard]] constexpr std::uint64_t withheld_word(Rank home) noexcept { return home + 1; }
/// A home asks for that slab of its memory.
[[nodiscard]] constexpr std::uint64_t request_word(Rank home, std::uint32_t slab) noexcept {
  return std::uint64_t{slab} << 16 | (home + 1);
}

struct SlabPool::State {
  struct Slab {
    std::uint32_t index = kNoSlab;
    std::uint32_t size_class = 0;
    std::uint32_t free_blocks = 0;
    bool is_withdrawn = false;        // nothing is allocated there any more
    std::vector<std::uint64_t> free;  // a bit for each block that this process may allocate
  };
  static constexpr std::uint32_t kNoSlab = UINT32_MAX;
  struct Orphan {
    std::uint32_t slab;
    std::uint64_t holder;
    friend bool operator==(const Orphan&, const Orphan&) = default;
  };
  /// A member's memory, as this process uses it, and the one step that is under way there.
  struct Home {
    enum class Doing : std::uint8_t {
      nothing,
      look,
      clear,
      scan,
      try_take,
      take,
      adopt,
      try_release,
      release,
      withhold,
      ask,
      await
    };
    Doing doing = Doing::nothing;
    bool posted_step = false;                           // what is being done has been posted
    std::uint32_t wanted = kNoClass;                    // allocate() found nothing
    std::uint32_t searched = 0;                         // slabs, for what is wanted
    bool no_slabs = false;                              // when it was asked last
    std::uint64_t ticket = 0;                           // the want that it is to answer; 0: none
    bool has_nothing = false;                           // it has said, for what is wanted
    std::uint64_t asked_at_ns = 0;                      // for what is wanted, first; 0: not
    std::uint64_t look_at_ns = 0;                       // at its answer, next
    Backoff pauses{kShortestPauseNs, kLongestPauseNs};  // between two looks
    std::uint64_t silent_until_ns = 0;                  // it has not answered: not asked before
    std::uint64_t full = 0;                             // a bit for each class
    std::vector<Slab> slabs;                            // that this process holds
    std::vector<std::vector<std::uint32_t>> with_free;  // of each class, places in `slabs`
    std::vector<std::vector<std::uint32_t>> of_class;
    std::vector<std::size_t> turn;  // of each class: where to search next
    std::uint32_t taking = 0;       // the slab that is tried
    std::uint32_t place = 0;        // in `slabs`, of what is searched
    std::uint64_t before = 0;
    bool is_draining = false;           // what is looked at and cleared is to be given back
    bool is_exhausted = false;          // its slabs have all been tried: it is asked for room
    std::vector<std::uint32_t> vacant;  // places in `slabs` without a slab
    std::vector<std::deque<std::uint32_t>> hints;  // of each class: slabs to look at next
    std::deque<std::uint32_t> to_drain;            // slabs
    std::vector<std::uint64_t> words;              // linked, freed
    std::vector<std::uint64_t> bits;               // to be cleared
    std::size_t posted = 0;
    std::array<std::uint64_t, kHoldersRead> holders{};
    std::size_t reading = 0;
    Completion done;
  };

  /// An empty slab that this home asks for.
  struct Return {
    enum class Doing : std::uint8_t { nothing, try_ask, ask, wait, look };
    Doing doing = Doing::nothing;
    std::uint32_t slab = 0;
    std::uint64_t holder = 0;  // word
    std::uint64_t seen = 0;    // of the holder's request word
    std::uint64_t since_ns = 0;
    std::uint64_t look_at_ns = 0;
    Backoff pauses{kShortestPauseNs, kLongestPauseNs};
    Completion done;
    [[nodiscard]] Rank rank() const noexcept { return static_cast<Rank>((holder & 0xffff) - 1); }
  };

  State(Progress& its_progress, SlabPoolOptions its_options);
  [[nodiscard]] std::uint64_t stride() const noexcept { return header_bytes + options.slab_bytes; }
  [[nodiscard]] std::size_t blocks(std::uint32_t size_class) const noexcept {
    return options.slab_bytes / options.block_bytes[size_class];
  }
  [[nodiscard]] std::size_t number_of(const SlabBlock& block) const noexcept {
    return (block.offset % stride() - header_bytes) / options.block_bytes[block.size_class];
  }
  [[nodiscard]] Operation add(const SlabBlock& block, bool to_freed) const noexcept {
    const std::size_t number = number_of(block);
    const std::uint64_t at = block.offset / stride() * stride() + kWordBytes +
                             ((to_freed ? words : 0) + number / kBitsPerWord) * kWordBytes;
    return fetch_add(block.home, region.id(), at, std::uint64_t{1} << number % kBitsPerWord,
                     nullptr);
  }
  [[nodiscard]] std::uint64_t own_word(std::uint32_t slab, std::size_t which) const noexcept {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(
        region.memory().data() + slab * stride() + which * kWordBytes));
  }
  // Offsets in the first slab's header.
  [[nodiscard]] std::uint64_t wants_at() const noexcept { return (1 + 2 * words) * kWordBytes; }
  [[nodiscard]] std::uint64_t answer_at() const noexcept { return wants_at() + kWordBytes; }
  [[nodiscard]] std::uint64_t request_at() const noexcept { return wants_at() + 2 * kWordBytes; }
  [[nodiscard]] std::uint64_t& own_word_at(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<std::uint64_t*>(region.memory().data() + offset);
  }
  [[nodiscard]] std::uint8_t& own_mark(std::uint32_t slab, std::size_t number) const noexcept {
    return *reinterpret_cast<std::uint8_t*>(region.memory().data() + slab * stride() +
                                            (1 + 2 * words) * kWordBytes + number);
  }
  void open(Home& home) const;
  void all_free(Slab& slab) const;
  std::uint32_t hold(Home& home, std::uint32_t index, std::uint32_t size_class);
  void give(Home& home, std::uint32_t place, std::size_t word, std::uint64_t bits);
  std::optional<SlabBlock> from(Rank rank, Home& home, std::uint32_t size_class) noexcept;
  Refusal post(Home& home, const Operation& operation) noexcept;
  bool begin_step(Rank rank, Home& home) noexcept;
  bool begin_clear(Rank rank, Home& home) noexcept;
  bool begin_scan(Rank rank, Home& home) noexcept;
  void no_more_slabs(Home& home) noexcept;
  void end_step(Home& home);
  void adopt(Home& home);
  void satisfied(Home& home) noexcept;
  // slab_withdrawal.cpp
  void stop_offering(Home& home, std::uint32_t place) noexcept;
  [[nodiscard]] std::optional<std::uint32_t> place_of(const Home& home,
                                                      std::uint32_t slab) const noexcept;
  bool begin_drain(Rank rank, Home& home) noexcept;
  void drained(Home& home) noexcept;
  bool begin_release(Rank rank, Home& home) noexcept;
  void released(Home& home) noexcept;
  bool begin_hint(Rank rank, Home& home) noexcept;
  void withhold_now() noexcept;
  bool begin_withholding(Home& home) noexcept;
  void withheld_one(const Home& home) noexcept;
  bool begin_look(Rank rank, Home& home) noexcept;
  void keep(Home& home, std::uint32_t place) noexcept;
  // slab_return.cpp
  [[nodiscard]] bool may_ask(const Home& home) const noexcept;
  bool begin_ask(Rank rank, Home& home) noexcept;
  bool begin_await(Rank rank, Home& home) noexcept;
  void answered(Home& home) noexcept;
  std::size_t answer_request() noexcept;
  std::size_t answer_wants() noexcept;
  [[nodiscard]] bool is_empty(std::uint32_t slab) const noexcept;
  std::size_t look_for_empty() noexcept;
  void begin_return(std::uint32_t slab) noexcept;
  std::size_t step_return() noexcept;
  void end_return(bool is_answered) noexcept;
  std::size_t answer(bool has_found) noexcept;
  std::size_t take_next_back() noexcept;

  Progress& progress;
  Fabric& fabric;
  SlabPoolOptions options;
  std::size_t words = 0;  // of each bit map
  std::uint64_t header_bytes = 0;
  std::uint32_t own_slabs = 0;
  Region region;
  std::deque<Home> homes;       // up to the last one in whose memory this process has allocated
  std::vector<Orphan> orphans;  // own slabs
  // of own slabs, which are to be kept empty
  std::uint32_t withheld = 0;
  std::uint32_t to_withhold = 0;
  bool looks_for_withheld = false;
  // a holder: the request that it goes after
  std::uint64_t request = 0;
  // a home: what it answers, and the slabs that it asks for
  std::uint64_t answered_wants = 0;
  std::uint64_t answering = 0;     // so many wants; if as many have been answered, none
  bool has_freed_nothing = false;  // for these, so far
  bool is_uncertain = false;       // a holder may be dead, and the members have not agreed on it
  bool has_got_back = false;       // a slab
  std::uint32_t looked_at = 0;     // slabs, for these
  std::uint64_t look_not_before_ns = 0;
  std::vector<Rank> silent;  // holders that have not answered
  Return returning;
  std::uint32_t next_look = 0;  // take_back_empty()
  std::vector<bool> was_empty;
  std::deque<std::uint32_t> to_take_back;
};

}  // namespace dunlin::remote
