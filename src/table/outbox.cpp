#include "table/outbox.hpp"

#include <memory>

#include <dunlin/limits.hpp>

namespace dunlin {
namespace {

constexpr std::size_t kManyBlocks = 8;
constexpr std::size_t kFewBlocks = 2;
constexpr std::size_t kLongRowBytes = std::size_t{1} << 20;

}  // namespace

Outbox::Outbox(Fabric& fabric, std::size_t stride_bytes)
    : fabric_(fabric), blocks_(stride_bytes < kLongRowBytes ? kManyBlocks : kFewBlocks) {
  memory_.resize(blocks_.size() * stride_bytes + kCacheLineBytes);
  void* at = memory_.data();
  std::size_t space = memory_.size();
  auto* first = static_cast<std::byte*>(
      std::align(kCacheLineBytes, blocks_.size() * stride_bytes, at, space));
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].row = first + i * stride_bytes;
}

Outbox::~Outbox() {
  for (Block& block : blocks_) fabric_.abandon(block.done);
}

Outbox::Block* Outbox::take() noexcept {
  for (Block& block : blocks_) {
    if (block.done.finished()) return &block;
  }
  return nullptr;
}

}  // namespace dunlin
