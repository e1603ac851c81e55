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
  void pop_beside_no_pushes(std::uint32_t slot) {
    finish(fetch_add(kTarget, region_.id(), kCacheLineBytes, 1, &former_).notify(done_));
    finish(read(kTarget, region_.id(), at(slot), image_.data(), kSlotBytes).notify(done_));
    head_ = former_ + 1;
  }

  // The same, as many at once as there are slots in `where`: a batch for each step.
  void find_many(std::span<const std::uint32_t> where) {
    images_.resize(where.size());
    post_each(where, [&](std::uint32_t slot, std::size_t i) {
      return read(kTarget, region_.id(), at(slot), images_[i].data(), bytes_to_line_end(slot))
          .notify(done_);
    });
  }
  void insert_many(std::span<const std::uint32_t> where) {
    swap_many(where);
    publish_many(where);
  }
  void insert_many_as_ready(std::span<const std::uint32_t> where) {
    swap_many(where);
    write_many(where);
  }
  void assign_many(std::span<const std::uint32_t> where) {
    find_many(where);
    swap_many(where);
    publish_many(where);
  }
  void erase_many(std::span<const std::uint32_t> where) {
    find_many(where);
    swap_many(where);
  }
  void push_many(std::span<const std::uint32_t> where) {
    formers_.resize(where.size());
    post_each(where, [&](std::uint32_t, std::size_t i) {
      return fetch_add(kTarget, region_.id(), 0, 1, &formers_[i]).notify(done_);
    });
    write_many(where);
  }
  /// Slots that follow each other, by one operation a step: what push_many() of a queue does.
  void push_row(std::uint32_t slot, std::uint32_t count) {
    images_.resize(count);
    slot = slot % (slots_ - count);
    finish(fetch_add(kTarget, region_.id(), 0, count, &former_).notify(done_));
    finish(write(kTarget, region_.id(), at(slot), images_.data(), count * kSlotBytes)
               .notify(done_, Notify::remotely));
  }
  void pop_row(std::uint32_t slot, std::uint32_t count) {
    images_.resize(count);
    slot = slot % (slots_ - count);
    finish(read(kTarget, region_.id(), at(slot), images_.data(), count * kSlotBytes).notify(done_));
    finish(compare_swap(kTarget, region_.id(), kCacheLineBytes, head_, head_ + count, &former_)
               .notify(done_));
    head_ = former_ + count;
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
    finish(compare_swap(kTarget, region_.id(), offset, 0, 0, &former_).notify(done_));
  }
  void publish(std::uint32_t slot) {
    image_[0] = 0;
    node_.post(std::array{
        write(kTarget, region_.id(), at(slot) + 8, &image_[1], kSlotBytes - 8),
        write(kTarget, region_.id(), at(slot), image_.data(), 8).notify(done_, Notify::remotely)});
    settle();
  }
  /// Posts operation(slot, place) for each slot as one batch. Where the compiler chose to inline
  /// this, a batch of 32 took 12 or 16 ns for one, by what else was in the file.
  template <class Of>
  [[gnu::noinline]] void post_each(std::span<const std::uint32_t> where, const Of& operation) {
    batch_.clear();
    for (std::size_t i = 0; i < where.size(); ++i) batch_.push_back(operation(where[i], i));
    node_.post(batch_);
    settle();
  }
  void swap_many(std::span<const std::uint32_t> where) {
    formers_.resize(where.size());
    post_each(where, [&](std::uint32_t slot, std::size_t i) {
      return compare_swap(kTarget, region_.id(), at(slot), 0, 0, &formers_[i]).notify(done_);
    });
  }
  void write_many(std::span<const std::uint32_t> where) {
    post_each(where, [&](std::uint32_t slot, std::size_t) {
      return write(kTarget, region_.id(), at(slot) + 8, &image_[1], kSlotBytes - 8)
          .notify(done_, Notify::remotely);
    });
  }
  void publish_many(std::span<const std::uint32_t> where) {
    image_[0] = 0;
    batch_.clear();
    for (const std::uint32_t slot : where) {
      batch_.push_back(write(kTarget, region_.id(), at(slot) + 8, &image_[1], kSlotBytes - 8));
      batch_.push_back(
          write(kTarget, region_.id(), at(slot), image_.data(), 8).notify(done_, Notify::remotely));
    }
    node_.post(batch_);
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
  std::uint64_t head_ = 0;
  std::uint64_t former_ = 0;
  alignas(kCacheLineBytes) std::array<std::uint64_t, 8> image_{};
  struct alignas(kCacheLineBytes) Image {
    std::array<std::byte, kCacheLineBytes> bytes;
    std::byte* data() noexcept { return bytes.data(); }
  };
  std::vector<Image> images_;
  std::vector<std::uint64_t> formers_;
  std::vector<Operation> batch_;
  Completion done_;
};

}  // namespace dunlin::bench
