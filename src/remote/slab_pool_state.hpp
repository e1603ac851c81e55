#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "fabric/backoff.hpp"
#include "remote/control_channel.hpp"

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
///
/// A pool needs no thread and no message for this: detached protocols begin with the pool, or with
/// the first use of a home, and go on in poll_part().
///
///     find_room()            for each home: gets what allocate() has not found
///     give_back_withdrawn()  for each home, in a pool that makes room: gives slabs back
///     give_back_requested()  the same at the request of homes, in another pool
///     answer_wants()         at a home, in another pool: looks for room
///     adopt_orphans()        at a home: takes over slabs of members that are gone
///     keep_to_limit()        at a home: withholds slabs
namespace dunlin::remote {

inline constexpr std::uint32_t kNoClass = UINT32_MAX;
inline constexpr std::uint32_t kNoSlab = UINT32_MAX;
inline constexpr std::size_t kBitsPerWord = 64;
inline constexpr std::size_t kWantWords = 3;  // wants, answer, request
/// Between two looks at a word of another member.
inline constexpr std::uint64_t kShortestPauseNs = 5'000;
inline constexpr std::uint64_t kLongestPauseNs = 1'000'000;

[[nodiscard]] constexpr std::uint64_t holder_word(Rank rank, std::uint32_t size_class) noexcept {
  return std::uint64_t{size_class + 1} << 16 | (rank + 1);
}
/// The holder of a slab that its home keeps empty: it has no size class.
[[nodiscard]] constexpr std::uint64_t withheld_word(Rank home) noexcept { return home + 1; }
/// A home asks for that slab of its memory.
[[nodiscard]] constexpr std::uint64_t request_word(Rank home, std::uint32_t slab) noexcept {
  return std::uint64_t{slab} << 16 | (home + 1);
}
/// The member that one of these words names.
[[nodiscard]] constexpr Rank rank_in(std::uint64_t word) noexcept {
  return static_cast<Rank>((word & 0xffff) - 1);
}

struct SlabPool::State {
  /// A slab that this process holds.
  struct Slab {
    std::uint32_t index = kNoSlab;
    std::uint32_t size_class = 0;
    std::uint32_t free_blocks = 0;
    bool is_withdrawn = false;        // nothing is allocated there any more
    std::vector<std::uint64_t> free;  // a bit for each block that this process may allocate
  };
  /// Slabs move between lists without memory.
  using SlabList = std::list<Slab>;
  using SlabAt = SlabList::iterator;
  /// The slabs of one size at one home.
  struct ClassSlabs {
    SlabList with_free;               // they have free blocks, and are not withdrawn
    SlabList others;                  // in the order in which they are searched for freed blocks
    std::deque<std::uint32_t> hints;  // slabs to look at next
  };
  /// A member's memory, as this process uses it.
  struct Home {
    Home(State& pool, Rank home);

    Rank rank;
    std::uint32_t wanted = kNoClass;    // what allocate() has not found
    std::uint64_t full = 0;             // a bit for each class
    bool is_exhausted = false;          // only a hint can lead to room there
    std::uint64_t asks_until_ns = 0;    // it is asked for what is wanted, until then; 0: it is not
    std::uint64_t silent_until_ns = 0;  // it has not answered, and is not asked before
    std::uint32_t next = 0;             // the slab that is tried next
    std::uint32_t end = UINT32_MAX;     // it has no such slab, as far as is known
    std::vector<ClassSlabs> classes;
    std::deque<std::uint32_t> withdrawn;
    bool is_collecting = false;        // a protocol has its CollectLock
    std::vector<std::uint64_t> words;  // linked and freed of the slab that is collected
    Runs protocols;
    ProtocolState* searcher = nullptr;  // find_room(), which ends with `protocols`
  };
  /// While a protocol has its turn at a home, no other one collects there or forgets a slab.
  struct CollectLock {
    explicit CollectLock(Home& at) noexcept : home(at) { home.is_collecting = true; }
    ~CollectLock() { home.is_collecting = false; }
    Home& home;
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
  [[nodiscard]] std::uint64_t& own_word_at(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<std::uint64_t*>(region.memory().data() + offset);
  }
  [[nodiscard]] std::uint64_t own_word(std::uint32_t slab, std::size_t which) const noexcept {
    return memory::load(own_word_at(slab * stride() + which * kWordBytes));
  }
  [[nodiscard]] std::uint64_t linked(std::uint32_t slab, std::size_t word) const noexcept {
    return own_word(slab, 1 + word);
  }
  [[nodiscard]] std::uint64_t freed(std::uint32_t slab, std::size_t word) const noexcept {
    return own_word(slab, 1 + words + word);
  }
  [[nodiscard]] std::uint64_t live(std::uint32_t slab, std::size_t word) const noexcept {
    return linked(slab, word) & ~freed(slab, word);
  }
  // Offsets in the first slab's header.
  [[nodiscard]] std::uint64_t wants_at() const noexcept { return (1 + 2 * words) * kWordBytes; }
  [[nodiscard]] std::uint64_t answer_at() const noexcept { return wants_at() + kWordBytes; }
  [[nodiscard]] std::uint64_t request_at() const noexcept { return wants_at() + 2 * kWordBytes; }
  [[nodiscard]] std::uint8_t& own_mark(std::uint32_t slab, std::size_t number) const noexcept {
    return *reinterpret_cast<std::uint8_t*>(region.memory().data() + slab * stride() +
                                            (1 + 2 * words) * kWordBytes + number);
  }
  [[nodiscard]] auto swap_holder(Rank home, std::uint32_t slab, std::uint64_t from,
                                 std::uint64_t to, std::uint64_t& before) noexcept {
    return post(fabric, compare_swap(home, region.id(), slab * stride(), from, to, &before));
  }
  /// What awaits this goes on in the next poll, which is soon.
  [[nodiscard]] NextPoll soon() noexcept {
    fabric.wake_at(fabric.now_ns());
    return {};
  }
  /// Waits for the turn of the protocol that makes a CollectLock then.
  [[nodiscard]] static auto may_collect(const Home& home) noexcept {
    return Until([&home] { return !home.is_collecting; });
  }
  /// Null if it is not open.
  [[nodiscard]] Home* home_of(Rank rank) const noexcept {
    return rank < homes.size() ? homes[rank].get() : nullptr;
  }
  /// Null if the rank has no memory, or there is no memory for this.
  Home* open(Rank rank) noexcept;
  [[nodiscard]] std::optional<SlabBlock> from(Home& home, std::uint32_t size_class) noexcept;
  [[nodiscard]] std::optional<SlabAt> find(Home& home, std::uint32_t slab) const noexcept;
  [[nodiscard]] SlabList whole_slab(std::uint32_t index, std::uint32_t size_class) const;
  void give(Home& home, SlabAt slab, std::size_t word, std::uint64_t bits) noexcept;
  Protocol<Status> find_room(Home& home);
  Protocol<Status> search(Home& home, std::uint32_t size_class);
  Protocol<Status> collect_some(Home& home, ClassSlabs& of, std::size_t most);
  Protocol<Status> collect(Home& home, SlabAt slab);
  Protocol<Status> take_any(Home& home, std::uint32_t size_class);
  Protocol<Status> take(Home& home, std::uint32_t size_class, std::uint32_t slab);
  Protocol<Status> adopt_orphans();
  Protocol<Status> adopt(std::uint32_t slab);
  // slab_withdrawal.cpp
  void withdraw(Home& home, SlabAt slab) noexcept;
  void keep(Home& home, SlabAt slab) noexcept;
  Protocol<Status> give_back_withdrawn(Home& home);
  Protocol<Status> drain(Home& home, std::uint32_t index);
  Protocol<Status> follow_hint(Home& home, std::uint32_t size_class);
  void withhold_now() noexcept;
  void settle_limit() noexcept;
  Protocol<Status> keep_to_limit();
  // slab_return.cpp
  Protocol<Status> ask(Home& home);
  Protocol<Status> give_back_requested();
  [[nodiscard]] bool is_empty(std::uint32_t slab) const noexcept;
  Protocol<Status> answer_wants();
  Protocol<Status> look_for_room();
  Protocol<Status> ask_holder(std::uint32_t slab);

  Progress& progress;
  Fabric& fabric;
  SlabPoolOptions options;
  std::size_t words = 0;  // of each bit map
  std::uint64_t header_bytes = 0;
  std::uint32_t own_slabs = 0;
  Region region;
  bool has_orphans = false;  // own slabs whose holders are gone
  // How many own slabs are kept empty, and how many should be.
  std::uint32_t withheld = 0;
  std::uint32_t to_withhold = 0;
  bool looks_for_withheld = false;
  std::vector<bool> silent;     // members that do not answer a home
  std::uint32_t next_look = 0;  // take_back_empty()
  std::vector<bool> was_empty;
  std::deque<std::uint32_t> to_take_back;
  std::vector<std::unique_ptr<Home>>
      homes;  // that this process has opened: those of the first ranks
  Runs protocols;
};

}  // namespace dunlin::remote
