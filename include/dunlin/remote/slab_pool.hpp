#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote/pool.hpp>
#include <dunlin/remote/progress.hpp>

/// A SlabPool has blocks of several sizes in the memory of all members, where all members allocate
/// by themselves. The memory is a row of slabs of one size. A member takes a slab for blocks of one
/// size by one compare-and-swap, and then allocates in it without a message. One thread uses it,
/// the one that polls.
///
///     if (const auto block = pool.allocate(home, bytes))
///       fabric.post(std::array{put(...), pool.link(*block), compare_swap(...)});  // and link it
///     ...
///     fabric.post(pool.free(*block));   // by the member that unlinked it
///
/// A block goes through four states: free, allocated, linked, freed.
///
/// Invariants:
///  REM-14 A slab has one holder. Only it allocates in the slab, and no block is allocated twice.
///  REM-15 When a holder is gone, each of its blocks that was never linked, or was freed, is free
///         again, at the member whose memory it is; the others stay as they are.
///
/// A slab goes from member to member, and from size to size:
///  REM-16 A holder gives a slab back only when each block of it is free, and it allocates nothing
///         there from the moment when it learns that the slab is withdrawn. So the next holder
///         finds a slab in which no member has a block.
///  REM-17 No home is full() for a member while a slab there is empty, or while the home can free
///         blocks, if the home and the holders of its slabs poll. A pool that `makes_room` serves a
///         cache instead: its home frees blocks of others, says by hint() where, and moves slabs.
namespace dunlin::remote {

/// What the owner of memory has found when it looked there for blocks to free.
enum class Freed : std::uint8_t {
  looking,  // the owner has not gone through all of its memory yet
  some,
  nothing
};

struct SlabPoolOptions {
  std::string name;                      // equal at all members, as the next two are
  std::size_t slab_bytes = 0;            // whole cache lines
  std::vector<std::size_t> block_bytes;  // ascending, whole cache lines, at most slab_bytes
  std::size_t own_bytes = 0;             // this member's contribution; may differ
  /// Members with ranks below this may contribute memory; 0: the founders may.
  std::uint32_t homes = 0;
  /// Slabs have marks, and a member that has tried all of a home's slabs searches no more: it is
  /// full() until a hint() comes.
  bool makes_room = false;
  std::size_t limit_bytes = SIZE_MAX;  // most bytes in blocks, in whole slabs
  /// Called in poll() as long as a member finds no room in this member's memory: frees blocks
  /// there, a part at a time. Not with makes_room.
  std::function<Freed()> free_blocks = nullptr;
};

/// A block of a SlabPool: in the memory of `home`, at `offset` of the pool's region.
struct SlabBlock {
  Rank home = 0;
  std::uint32_t size_class = 0;  // index into SlabPoolOptions::block_bytes
  std::uint64_t offset = 0;
  friend bool operator==(const SlabBlock&, const SlabBlock&) = default;
};

/// The content of a slab's first word.
struct SlabHolder {
  std::uint64_t word = 0;
  bool is_free = false;
  bool is_held = false;
  bool is_withheld = false;  // its home withholds the slab
  Rank rank = 0;             // the holder, if it is held
  std::uint32_t size_class = 0;
};

class SlabPool final : public Part {
 public:
  /// All members make a pool of that name. Throws Error.
  SlabPool(Progress& progress, SlabPoolOptions options);
  ~SlabPool() override;

  /// Allocates a block of the smallest size that holds so many bytes. If this process holds no free
  /// block, the pool looks for freed ones, and for a slab. Where the home's memory is not mapped,
  /// that goes on in poll(), and this returns none. If there is no slab, the pool asks the home for
  /// room; once the home has none either, or has not answered for a second, it is full(). The
  /// block's bytes are whatever they were.
  [[nodiscard]] std::optional<SlabBlock> allocate(Rank home, std::size_t bytes) noexcept;
  /// Allocates a block of that class, as allocate() does; several classes may have one size.
  [[nodiscard]] std::optional<SlabBlock> allocate_class(Rank home,
                                                        std::uint32_t size_class) noexcept;
  /// Allocates a block of that or a larger size, among the slabs that this process holds.
  [[nodiscard]] std::optional<SlabBlock> allocate_held(Rank home, std::size_t bytes) noexcept;
  /// Whether the home had no room for so many bytes when it was last asked; allocate() asks again.
  [[nodiscard]] bool full(Rank home, std::size_t bytes) const noexcept;
  [[nodiscard]] bool full_class(Rank home, std::uint32_t size_class) const noexcept;
  /// Whether a search for a slab at that home waits until the home has looked for room.
  [[nodiscard]] bool asks(Rank home) const noexcept;
  /// Gives back a block that was never linked.
  void cancel(SlabBlock block) noexcept;
  /// An operation that says "the block is in use". To be posted before, or in one batch with, the
  /// write by which other members find the block.
  [[nodiscard]] Operation link(SlabBlock block) const noexcept;
  /// An operation that says "no member finds the block any more". To be posted once, by the member
  /// that unlinked it.
  [[nodiscard]] Operation free(SlabBlock block) const noexcept;

  [[nodiscard]] std::size_t bytes_of(std::uint32_t size_class) const noexcept;
  /// The smallest size class for so many bytes; none if no size is large enough.
  [[nodiscard]] std::optional<std::uint32_t> class_of(std::size_t bytes) const noexcept;
  [[nodiscard]] RegionId region() const noexcept;
  [[nodiscard]] std::span<std::byte> own_memory() const noexcept;
  /// How much of this member's memory is in use: blocks that are linked and not freed count as
  /// used, and slabs that have a holder as held.
  [[nodiscard]] PoolUse use() const noexcept;
  /// Whether a block of this member's memory could be at that offset: a check of values that a peer
  /// has written.
  [[nodiscard]] bool is_block(std::uint64_t offset, std::uint32_t size_class) const noexcept;
  /// Whether a block could be there in the memory of a member that has `own_bytes`.
  [[nodiscard]] bool is_block(std::uint64_t offset, std::uint32_t size_class,
                              std::size_t own_bytes) const noexcept;

  // --- in a pool that makes room: called by members when the home asks ---------------------------
  /// Says that the home has freed blocks of that size in the slab, or that the slab has no holder.
  void hint(Rank home, std::uint32_t size_class, std::uint32_t slab) noexcept;
  /// Allocates nothing in the slab any more, and gives it back if all of it is free; to be called
  /// again until the holder's word has changed.
  void withdraw(Rank home, std::uint32_t slab) noexcept;
  /// Undoes withdraw() of the slab.
  void keep(Rank home, std::uint32_t slab) noexcept;
  /// An operation that says "the block is used", to be posted now and then. If the block has
  /// another entry by then, that entry counts as used.
  [[nodiscard]] Operation mark(SlabBlock block) const noexcept;
  [[nodiscard]] std::uint32_t slab_of(std::uint64_t offset) const noexcept;

  // --- and called by the home, for its own memory ------------------------------------------------
  /// Asks for some slabs back that are empty, and were empty when they were looked at before. To be
  /// called every few milliseconds; slabs also come back without this call, when a member finds no
  /// room.
  void take_back_empty() noexcept;
  [[nodiscard]] std::uint32_t slabs() const noexcept;
  [[nodiscard]] std::size_t slab_bytes() const noexcept;
  [[nodiscard]] SlabHolder holder(std::uint32_t slab) const noexcept;
  /// The blocks of a slab as bits, 64 in a word: those in use, and those that were freed since the
  /// holder looked.
  [[nodiscard]] std::size_t bit_words() const noexcept;
  [[nodiscard]] std::uint64_t live_bits(std::uint32_t slab, std::size_t word) const noexcept;
  [[nodiscard]] std::uint64_t freed_bits(std::uint32_t slab, std::size_t word) const noexcept;
  [[nodiscard]] SlabBlock block(std::uint32_t slab, std::uint32_t size_class,
                                std::size_t number) const noexcept;
  [[nodiscard]] bool is_marked(std::uint32_t slab, std::size_t number) const noexcept;
  /// Whether the block has a mark; removes the mark.
  [[nodiscard]] bool take_mark(std::uint32_t slab, std::size_t number) noexcept;
  /// Keeps slabs empty that go beyond so many bytes. Slabs that are held stay until they are given
  /// back: then settle_limit().
  void limit(std::size_t bytes) noexcept;
  void settle_limit() noexcept;
  [[nodiscard]] std::uint32_t slabs_over_limit() const noexcept;

  std::size_t poll_part() override;
  void members_changed() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin::remote
