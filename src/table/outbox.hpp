#pragma once

#include <cstddef>
#include <vector>

#include <dunlin/fabric.hpp>

namespace dunlin {

/// Copies of pushed bytes that the fabric may not have read yet. A source that is too long to be
/// taken inline must stay as it is until its operation has completed, but the owner may write its
/// row at any time. Reading it late could bring a guard that is newer than the data sent before it.
class Outbox {
 public:
  struct Block {
    Completion done;           // finished once everything sent from the block is
    std::byte* row = nullptr;  // a row's bytes, at their offsets in the row
  };

  Outbox(Fabric& fabric, std::size_t stride_bytes);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /// A block that nothing under way reads from, or null: back-pressure.
  [[nodiscard]] Block* take() noexcept;

 private:
  Fabric& fabric_;
  std::vector<std::byte> memory_;
  std::vector<Block> blocks_;
};

}  // namespace dunlin
