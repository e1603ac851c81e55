#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

/// Pools of remote memory: the member that owns the memory says which bytes are free. A pool is
/// plain private state, of offsets only, so that no peer can damage it; one thread uses it. Where
/// other members allocate by themselves, the pool is a SlabPool (slab_pool.hpp).
///
/// Invariants:
///  REM-6  Blocks that are allocated do not overlap, begin on cache lines, and lie in the pool.
///  REM-7  No two free blocks of a FirstFit touch: free() merges adjacent ones at once.
namespace dunlin::remote {

struct PoolUse {
  std::size_t bytes = 0;         // size of the pool
  std::size_t used = 0;          // in allocated blocks
  std::size_t held = 0;          // SlabPool only: in slabs that a member holds, used or not
  std::size_t blocks = 0;        // allocated blocks
  std::size_t largest_free = 0;  // the largest block that can be allocated now
  /// 0: all free bytes are in one block; towards 1: they lie in many small ones.
  [[nodiscard]] double fragmentation() const noexcept {
    const std::size_t free = bytes - used;
    return free == 0 ? 0 : 1 - static_cast<double>(largest_free) / static_cast<double>(free);
  }
};

/// Blocks of any size; an allocation gets the first free block that is large enough.
class FirstFit {
 public:
  explicit FirstFit(std::size_t bytes);

  /// Allocates a block, and returns its offset; none if no free block is large enough. Sizes go up
  /// to whole cache lines; 0 bytes take one line.
  [[nodiscard]] std::optional<std::uint64_t> allocate(std::size_t bytes);
  /// Requires that allocate() gave this offset, and that it has not been freed since; asserted.
  void free(std::uint64_t offset);
  [[nodiscard]] PoolUse use() const noexcept;

 private:
  std::size_t bytes_;
  std::map<std::uint64_t, std::size_t> free_;  // offset to bytes
  std::map<std::uint64_t, std::size_t> used_;
};

/// Blocks of a few sizes, taken from chunks of a FirstFit that keep their size. A slot is always
/// reused for the same size, so a late one-sided reader finds a block's header where a block's
/// header was.
class SizeClasses {
 public:
  /// Sizes ascend; each chunk has `blocks_per_chunk` blocks of one size.
  SizeClasses(std::size_t bytes, std::vector<std::size_t> sizes, std::size_t blocks_per_chunk);

  /// Allocates a block of the smallest size that holds so many bytes.
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

}  // namespace dunlin::remote
