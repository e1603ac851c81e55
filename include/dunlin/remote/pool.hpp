#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/remote/in_flight.hpp>

/// Pools of remote memory: the member that owns the memory says which bytes are free. A pool is
/// plain private state, of offsets only, so that no peer can damage it; one thread uses it.
///
/// Invariants:
///  REM-6  Blocks that are allocated do not overlap, begin on cache lines, and lie in the pool.
///  REM-7  No two free blocks of a FirstFit touch: free() merges adjacent ones at once.
/// and, of a ChunkPool, where other members allocate by themselves:
///  REM-14 A chunk has one holder. Only it allocates in the chunk, and no block is allocated twice.
///  REM-15 When a holder is gone, each of its blocks that was never linked, or was freed, is free
///         again, at the member whose memory it is; the others stay as they are.
namespace dunlin::remote {

struct PoolUse {
  std::size_t bytes = 0;         // of the pool
  std::size_t used = 0;          // in allocated blocks
  std::size_t blocks = 0;        // that are allocated
  std::size_t largest_free = 0;  // the largest block that can be allocated now
  /// 0: all that is free is in one block; towards 1: it lies in many small ones.
  [[nodiscard]] double fragmentation() const noexcept {
    const std::size_t free = bytes - used;
    return free == 0 ? 0 : 1 - static_cast<double>(largest_free) / static_cast<double>(free);
  }
};

/// Blocks of any size: the first free one that is large enough.
class FirstFit {
 public:
  explicit FirstFit(std::size_t bytes);

  /// The block's offset; none if no free block is large enough. Sizes go up to whole cache lines;
  /// 0 bytes take one line.
  [[nodiscard]] std::optional<std::uint64_t> allocate(std::size_t bytes);
  /// Requires that allocate() gave this offset, and that it was not freed since; asserted.
  void free(std::uint64_t offset);
  [[nodiscard]] PoolUse use() const noexcept;

 private:
  std::size_t bytes_;
  std::map<std::uint64_t, std::size_t> free_;  // offset, bytes
  std::map<std::uint64_t, std::size_t> used_;
};

/// Blocks of a few sizes, taken from chunks of a FirstFit that keep their size. A slot is always
/// reused for the same size, so a late one-sided reader finds a block's header where a block's
/// header was.
class SizeClasses {
 public:
  /// Sizes ascend; each chunk has `blocks_per_chunk` blocks of one size.
  SizeClasses(std::size_t bytes, std::vector<std::size_t> sizes, std::size_t blocks_per_chunk);

  /// A block of the smallest size that holds so many bytes.
  [[nodiscard]] std::optional<std::uint64_t> allocate(std::size_t bytes);
  void free(std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] PoolUse use() const noexcept;

 private:
  struct Class {
    std::size_t block_bytes;
    std::vector<std::uint64_t> free;
  };
  [[nodiscard]] Class* class_of(std::size_t bytes) noexcept;

  FirstFit chunks_;
  std::vector<Class> classes_;
  std::size_t blocks_per_chunk_;
  std::size_t used_ = 0;
  std::size_t blocks_ = 0;
};

/// A block of a ChunkPool: in the memory of `home`, at `offset` of the pool's region.
struct Block {
  Rank home = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

struct ChunkPoolOptions {
  std::string name;                     // the same at all members, as are the next ones
  std::size_t block_bytes = 0;          // up to whole cache lines
  std::uint32_t blocks_per_chunk = 32;  // at most 64
  std::size_t own_bytes = 0;            // that this member contributes; may differ
};

/// Blocks of one size in the memory of all members. A member that needs one takes a whole chunk of
/// the home, by one read and one compare-and-swap, and then allocates in it without any message.
///
///     if (const auto block = pool.allocate(home))
///       fabric.post(std::array{put(...), pool.link(*block), compare_swap(...)});  // and link it
///     ...
///     fabric.post(pool.free(*block));   // by the member that unlinked it
///
/// A block goes through: free, allocated, linked, freed. When a holder dies, its blocks that are
/// allocated and not linked become free (REM-15); linked blocks stay.
class ChunkPool final : public Part {
 public:
  /// All members make one. Throws Error.
  ChunkPool(Progress& progress, ChunkPoolOptions options);
  ~ChunkPool() override;

  /// A block there; none if this process holds no free one: then a chunk is being fetched, unless
  /// the home is full(). Its bytes keep their former content.
  [[nodiscard]] std::optional<Block> allocate(Rank home) noexcept;
  /// Whether the home had no free chunk when it was asked last; allocate() asks again.
  [[nodiscard]] bool full(Rank home) const noexcept;
  /// Gives back a block that was never linked.
  void cancel(Block block) noexcept;
  /// "It is in use": to be posted before, or in one batch with, the write by which others find the
  /// block.
  [[nodiscard]] Operation link(Block block) const noexcept;
  /// "No member finds it any more": to be posted once, by the member that unlinked it. Its place is
  /// used again for a block, so a reader that is late finds a block, and must check that it is the
  /// one.
  [[nodiscard]] Operation free(Block block) const noexcept;

  [[nodiscard]] RegionId region() const noexcept;
  [[nodiscard]] std::span<std::byte> own_memory() const noexcept;
  /// Of this member's memory, as far as it knows: chunks that others hold count as used.
  [[nodiscard]] PoolUse use() const noexcept;

  std::size_t poll_part() override;
  void members_changed() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin::remote
