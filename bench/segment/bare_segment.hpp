#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "bench/fabric/node.hpp"

/// The operations of the fabric that the protocol of each coherence needs, one after the other, and
/// nothing else: no metadata, no checks, no queue behind the lock. They use the region of a Node,
/// which is laid out like a segment.
namespace dunlin::bench {

class BareSegment {
 public:
  BareSegment(Node& node, std::size_t bytes) : node_(node), data_(bytes / 8 + 1) { bytes_ = bytes; }
  BareSegment(const BareSegment&) = delete;
  BareSegment& operator=(const BareSegment&) = delete;
  ~BareSegment() {
    node_.fabric().abandon(done_);
    node_.fabric().abandon(unlocked_);
  }

  void read_data() { finish(read(kTarget, node_.box(), kData, data_.data(), bytes_)); }
  void write_data() {
    node_.post(data());
    settle();
  }
  void read_version() { finish(read(kTarget, node_.box(), kVersion, &version_, 8)); }

  /// Version, data, version.
  void read_whole() {
    read_version();
    read_data();
    read_version();
  }
  void read_locked() {
    lock();
    read_data();
    unlock();
  }
  /// Under the lock, between two steps of the version.
  void write_whole() {
    lock();
    change(std::array{step(), data(), step()});
    unlock();
  }
  /// Under the lock: the version is read, then the data and a step of the version.
  void write_next() {
    lock();
    finish(fetch_add(kTarget, node_.box(), kVersion, 0, &version_));
    change(std::array{data(), step()});
    unlock();
  }
  /// A clock and a copy within this process.
  void copy_of_a_copy() {
    if (node_.fabric().now_ns() == 0) return;
    copy_.resize(data_.size());
    std::memcpy(data_.data(), copy_.data(), bytes_);
    asm volatile("" : : "r"(data_.data()) : "memory");
  }

  /// Compare-and-swap, until it is won.
  void lock() {
    while (!unlocked_.finished()) node_.poll();
    do {
      finish(compare_swap(kTarget, node_.box(), kLock, 0, 1, &former_));
    } while (former_ != 0);
  }
  /// Not waited for.
  void unlock() {
    node_.post(compare_swap(kTarget, node_.box(), kLock, 1, 0, nullptr).notify(unlocked_));
  }

 private:
  static constexpr Rank kTarget = 1;
  static constexpr std::uint64_t kLock = kRoom;
  static constexpr std::uint64_t kVersion = kRoom + 8;
  static constexpr std::uint64_t kData = kRoom + 64;

  Operation step() {
    return fetch_add(kTarget, node_.box(), kVersion, 1, &version_).notify(done_, Notify::remotely);
  }
  Operation data() {
    return write(kTarget, node_.box(), kData, data_.data(), bytes_).notify(done_, Notify::remotely);
  }
  /// One batch, or two if the fabric sends the data later than it takes it.
  template <std::size_t Steps>
  void change(const std::array<Operation, Steps>& steps) {
    const bool captured = bytes_ <= node_.fabric().properties().max_inline_bytes;
    node_.post(std::span(steps).first(captured ? Steps : Steps - 1));
    settle();
    if (captured) return;
    node_.post(steps.back());
    settle();
  }
  void finish(const Operation& operation) {
    node_.post(operation.notify(done_));
    settle();
  }
  void settle() {
    while (!done_.finished()) node_.poll();
  }

  Node& node_;
  std::size_t bytes_ = 0;
  std::vector<std::uint64_t> data_;
  std::vector<std::uint64_t> copy_;
  std::uint64_t version_ = 0;
  std::uint64_t former_ = 0;
  Completion done_;
  Completion unlocked_;
};

}  // namespace dunlin::bench
