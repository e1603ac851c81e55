#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote/in_flight.hpp>
#include <dunlin/remote/pool.hpp>

/// A SlabPool has blocks of several sizes in the memory of all members, where all members allocate
/// by themselves. The memory is a row of slabs of one size. A member takes a slab for blocks of one
/// size by one compare-and-swap, and then allocates in it without a message. One thread uses it,
/// the one that polls.
///
/// A block goes through the states of a ChunkPool's: free, allocated, linked, freed. REM-14 and
/// REM-15 hold for slabs as they do for chunks.
namespace dunlin::remote {

struct SlabPoolOptions {
  std::string name;                      // the same at all members, as is what follows
  std::size_t slab_bytes = 0;            // whole cache lines
  std::vector<std::size_t> block_bytes;  // ascending, whole cache lines, at most slab_bytes
  std::size_t own_bytes = 0;             // that this member contributes; may differ
};

/// A block of a SlabPool: in the memory of `home`, at `offset` of the pool's region.
struct SlabBlock {
  Rank home = 0;
  std::uint32_t size_class = 0;  // an index of SlabPoolOptions::block_bytes
  std::uint64_t offset = 0;
  friend bool operator==(const SlabBlock&, const SlabBlock&) = default;
};

class SlabPool final : public Part {
 public:
  /// All members make one. Throws Error.
  SlabPool(Progress& progress, SlabPoolOptions options);
  ~SlabPool() override;

  /// A block of the smallest size that holds so many bytes; none if this process holds no free one:
  /// then a slab is being fetched, and once that has failed the home is full(). Its bytes are
  /// whatever they were.
  [[nodiscard]] std::optional<SlabBlock> allocate(Rank home, std::size_t bytes) noexcept;
  /// A block of that or a larger size, of those that this process holds.
  [[nodiscard]] std::optional<SlabBlock> allocate_held(Rank home, std::size_t bytes) noexcept;
  /// Whether the home had no room for so many bytes when it was asked last; allocate() asks again.
  [[nodiscard]] bool full(Rank home, std::size_t bytes) const noexcept;
  /// Gives back a block that was never linked.
  void cancel(SlabBlock block) noexcept;
  /// "It is in use": to be posted before, or in one batch with, what lets others find the block.
  [[nodiscard]] Operation link(SlabBlock block) const noexcept;
  /// "Nobody finds it any more": to be posted once, by the member that unlinked it.
  [[nodiscard]] Operation free(SlabBlock block) const noexcept;

  [[nodiscard]] std::size_t bytes_of(std::uint32_t size_class) const noexcept;
  /// None if no size is large enough.
  [[nodiscard]] std::optional<std::uint32_t> class_of(std::size_t bytes) const noexcept;
  [[nodiscard]] RegionId region() const noexcept;
  [[nodiscard]] std::span<std::byte> own_memory() const noexcept;
  /// Of this member's memory: blocks that are linked and not freed count as used.
  [[nodiscard]] PoolUse use() const noexcept;
  /// Whether a block could be there, of this member's memory: for what a peer has written.
  [[nodiscard]] bool is_block(std::uint64_t offset, std::uint32_t size_class) const noexcept;

  std::size_t poll_part() override;
  void members_changed() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin::remote
