#include <algorithm>
#include <iterator>

#include <dunlin/limits.hpp>
#include <dunlin/remote/pool.hpp>

#include "assert.hpp"

namespace dunlin::remote {
namespace {

std::size_t whole_lines(std::size_t bytes) noexcept {
  const std::size_t lines = bytes / kCacheLineBytes + (bytes % kCacheLineBytes != 0 ? 1 : 0);
  return std::max<std::size_t>(lines, 1) * kCacheLineBytes;
}

/// Whether no free block touches, or overlaps, the one at that offset.
[[maybe_unused]] bool is_apart(const std::map<std::uint64_t, std::size_t>& free,
                               std::uint64_t offset) {
  const auto block = free.find(offset);
  const auto next = std::next(block);
  return (next == free.end() || block->first + block->second < next->first) &&
         (block == free.begin() ||
          std::prev(block)->first + std::prev(block)->second < block->first);
}

}  // namespace

FirstFit::FirstFit(std::size_t bytes) : bytes_(bytes / kCacheLineBytes * kCacheLineBytes) {
  if (bytes_ > 0) free_.emplace(0, bytes_);
}

std::optional<std::uint64_t> FirstFit::allocate(std::size_t bytes) {
  if (bytes > bytes_) return std::nullopt;
  const std::size_t wanted = whole_lines(bytes);
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& block) { return block.second >= wanted; });
  if (found == free_.end()) return std::nullopt;
  const auto [offset, there] = *found;
  free_.erase(found);
  if (there > wanted) free_.emplace(offset + wanted, there - wanted);
  const bool is_new = used_.emplace(offset, wanted).second;
  DUNLIN_ASSERT_ALWAYS(is_new && offset % kCacheLineBytes == 0 && offset + wanted <= bytes_,
                       "REM-6: a block was free, begins on a cache line, and lies in the pool");
  return offset;
}

void FirstFit::free(std::uint64_t offset) {
  const auto block = used_.find(offset);
  DUNLIN_ASSERT_ALWAYS(block != used_.end(),
                       "REM-6: a block is freed once: it may be another's now");
  std::size_t bytes = block->second;
  used_.erase(block);
  auto behind = free_.lower_bound(offset);
  DUNLIN_ASSERT_ALWAYS(behind == free_.end() || behind->first >= offset + bytes,
                       "REM-6: no byte of an allocated block is free");
  if (behind != free_.end() && behind->first == offset + bytes) {
    bytes += behind->second;
    behind = free_.erase(behind);
  }
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == offset) {
      before->second += bytes;
      DUNLIN_ASSERT_ALWAYS(is_apart(free_, before->first),
                           "REM-7: no two free blocks are adjacent");
      return;
    }
  }
  free_.emplace(offset, bytes);
  DUNLIN_ASSERT_ALWAYS(is_apart(free_, offset), "REM-7: no two free blocks are adjacent");
}

PoolUse FirstFit::use() const noexcept {
  PoolUse use{.bytes = bytes_, .used = bytes_, .blocks = used_.size()};
  for (const auto& [offset, bytes] : free_) {
    use.used -= bytes;
    use.largest_free = std::max(use.largest_free, bytes);
  }
  DUNLIN_ASSERT(use.used <= bytes_ && (use.used == 0) == used_.empty(),
                "REM-6: each byte is free, or in one block");
  return use;
}

SizeClasses::SizeClasses(std::size_t bytes, std::vector<std::size_t> sizes,
                         std::size_t blocks_per_chunk)
    : chunks_(bytes), blocks_per_chunk_(std::max<std::size_t>(blocks_per_chunk, 1)) {
  DUNLIN_ASSERT_ALWAYS(std::ranges::is_sorted(sizes), "the smallest size that fits is found first");
  for (const std::size_t size : sizes) classes_.push_back({whole_lines(size), {}});
}

SizeClasses::Class* SizeClasses::class_of(std::size_t bytes) noexcept {
  const auto found = std::find_if(classes_.begin(), classes_.end(),
                                  [&](const Class& one) { return one.block_bytes >= bytes; });
  return found == classes_.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> SizeClasses::allocate(std::size_t bytes) {
  Class* const fitting = class_of(bytes);
  if (fitting == nullptr) return std::nullopt;
  if (fitting->free.empty()) {
    const auto chunk = chunks_.allocate(fitting->block_bytes * blocks_per_chunk_);
    if (!chunk) return std::nullopt;
    for (std::size_t i = blocks_per_chunk_; i > 0; --i)
      fitting->free.push_back(*chunk + (i - 1) * fitting->block_bytes);
  }
  const std::uint64_t offset = fitting->free.back();
  fitting->free.pop_back();
  DUNLIN_ASSERT(fitting->block_bytes >= bytes && offset % kCacheLineBytes == 0,
                "REM-6: a block has room for what was asked, and begins on a line");
  used_ += fitting->block_bytes;
  ++blocks_;
  return offset;
}

void SizeClasses::free(std::uint64_t offset, std::size_t bytes) {
  Class* const fitting = class_of(bytes);
  DUNLIN_ASSERT_ALWAYS(fitting != nullptr && blocks_ > 0 && used_ >= fitting->block_bytes,
                       "REM-6: a block is freed once, as the size that it has");
  fitting->free.push_back(offset);
  used_ -= fitting->block_bytes;
  --blocks_;
}

PoolUse SizeClasses::use() const noexcept {
  PoolUse use = chunks_.use();
  use.used = used_;
  use.blocks = blocks_;
  for (const Class& one : classes_)
    if (!one.free.empty()) use.largest_free = std::max(use.largest_free, one.block_bytes);
  return use;
}

}  // namespace dunlin::remote
