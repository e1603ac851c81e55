#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/fabric/node.hpp"

/// The operations of the fabric that each call needs, one after the other, and nothing else: no
/// keys, no states, no stamps, no styles. They use a region that is as large as the container's.
namespace dunlin::bench {

class BareContainer {
 public:
  static constexpr std::size_t kSlotBytes = 32;

  BareContainer(Node& node, std::uint32_t slots)
      : node_(node),
        slots_(slots),
        region_(node.fabric().allocate(
            {.name = "bare container", .bytes = kHead + std::size_t{slots} * kSlotBytes})) {
    node_.fabric().announce(region_);
  }
  BareContainer(const BareContainer&) = delete;
  BareContainer& operator=(const BareContainer&) = delete;
  ~BareContainer() { node_.fabric().abandon(done_); }

  [[nodiscard]] bool connected() const noexcept {
    return node_.fabric().connected(kTarget, region_.id());
  }
  /// Each lap over the slots counts on.
  void begin_lap(std::uint64_t lap) noexcept { lap_ = lap; }

  void insert(std::uint32_t slot) {
    swap(at(slot));
    publish(slot);
  }
  void insert_as_ready(std::uint32_t slot) {
    swap(at(slot));
    finish(write(kTarget, region_.id(), at(slot) + 8, &image_[1], kSlotBytes - 8)
               .notify(done_, Notify::remotely));
  }
  void find(std::uint32_t slot) { read_slot(slot); }
  void assign(std::uint32_t slot) {
    read_slot(slot);
    swap(at(slot));
    publish(slot);
  }
  void erase(std::uint32_t slot) {
    read_slot(slot);
    swap(at(slot));
  }
  void push(std::uint32_t slot) {
    finish(fetch_add(kTarget, region_.id(), 0, 1, &former_).notify(done_));
    finish(write(kTarget, region_.id(), at(slot), image_.data(), kSlotBytes)
               .notify(done_, Notify::remotely));
  }
  void pop(std::uint32_t slot) {
    finish(read(kTarget, region_.id(), at(slot), image_.data(), kSlotBytes).notify(done_));
    finish(compare_swap(kTarget, region_.id(), kCacheLineBytes, head_, head_ + 1, &former_)
               .notify(done_));
    head_ = former_ + 1;
  }
  /// As many reads at once as there are slots in `where`.
  void find_many(std::span<const std::uint32_t> where) {
    images_.resize(where.size());
    batch_.clear();
    for (std::size_t i = 0; i < where.size(); ++i)
      batch_.push_back(
          read(kTarget, region_.id(), at(where[i]), images_[i].data(), bytes_to_line_end(where[i]))
              .notify(done_));
    node_.post(batch_);
    settle();
  }

 private:
  static constexpr Rank kTarget = 1;
  static constexpr std::uint64_t kHead = 2 * kCacheLineBytes;

  [[nodiscard]] std::uint64_t at(std::uint32_t slot) const noexcept {
    return kHead + std::uint64_t{slot % slots_} * kSlotBytes;
  }
  [[nodiscard]] static std::size_t bytes_to_line_end(std::uint32_t slot) noexcept {
    return slot % 2 == 0 ? 2 * kSlotBytes : kSlotBytes;
  }
  void read_slot(std::uint32_t slot) {
    finish(read(kTarget, region_.id(), at(slot), image_.data(), bytes_to_line_end(slot))
               .notify(done_));
  }
  void swap(std::uint64_t offset) {
    finish(compare_swap(kTarget, region_.id(), offset, lap_, lap_, &former_).notify(done_));
  }
  void publish(std::uint32_t slot) {
    image_[0] = lap_;
    node_.post(std::array{
        write(kTarget, region_.id(), at(slot) + 8, &image_[1], kSlotBytes - 8),
        write(kTarget, region_.id(), at(slot), image_.data(), 8).notify(done_, Notify::remotely)});
    settle();
  }
  void finish(const Operation& operation) {
    node_.post(operation);
    settle();
  }
  void settle() {
    while (!done_.finished()) node_.poll();
  }

  Node& node_;
  std::uint32_t slots_;
  Region region_;
  std::uint64_t lap_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t former_ = 0;
  alignas(kCacheLineBytes) std::array<std::uint64_t, 8> image_{};
  struct alignas(kCacheLineBytes) Image {
    std::array<std::byte, kCacheLineBytes> bytes;
    std::byte* data() noexcept { return bytes.data(); }
  };
  std::vector<Image> images_;
  std::vector<Operation> batch_;
  Completion done_;
};

}  // namespace dunlin::bench
