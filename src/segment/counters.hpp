#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <dunlin/remote/lock.hpp>
#include <dunlin/remote/pool.hpp>

#include "fabric/counters/counters.hpp"
#include "segment/page_schedule.hpp"

namespace dunlin {

/// What a space shows to observers: this member's operations that have ended, its pool, and the
/// locks that it holds or waits for.
class SpaceCounters {
 public:
  SpaceCounters(Fabric& fabric, const std::string& space) : all_(fabric, "space=" + space) {}

  /// Called in each poll, with how much it has done.
  void show(std::size_t done, const remote::FirstFit& blocks, const remote::Locks& held,
            std::size_t in_flight) noexcept {
    if (!schedule_.is_due(done, [&] { return digest(held); })) return;
    const remote::PoolUse use = blocks.use();
    pool_bytes_.set(use.bytes);
    used_bytes_.set(use.used);
    blocks_.set(use.blocks);
    largest_free_.set(use.largest_free);
    in_flight_.set(in_flight);
    std::size_t shown = 0;
    held.each([&](const remote::LockView& lock) {
      if (shown == queue_.size()) return;
      memory::store(queue_[shown++], lock.home);
      memory::store(queue_[shown++], lock.offset);
      memory::store(queue_[shown++], lock.ticket);
      memory::store(queue_[shown++], lock.held ? 2 : 1);
    });
    for (std::size_t at = shown; at < shown_; at += kLockWords)
      memory::store(queue_[at + kLockWords - 1], 0);
    shown_ = shown;
  }

 private:
  static constexpr std::uint32_t kMaxLocks = 64;  // that one member shows
  /// The member that the lock's word is at; the offset in its pool; a ticket, in the order of which
  /// waiters get it; 1: this member waits for it, 2: it holds it, 0: these words are unused.
  static constexpr std::uint32_t kLockWords = 4;

  /// Differs once the locks that are held or waited for do, or an operation has ended.
  [[nodiscard]] std::uint64_t digest(const remote::Locks& held) const noexcept {
    std::uint64_t digest = gets.value() + puts.value() + locks.value() + others.value();
    held.each([&](const remote::LockView& lock) {
      digest = digest * 31 + lock.offset + lock.ticket * 2 + (lock.held ? 1 : 0);
    });
    return digest;
  }

  CounterSet all_;
  SharedCounter pool_bytes_ = all_.add_level("segment.pool_bytes", CounterUnit::bytes);
  SharedCounter used_bytes_ = all_.add_level("segment.used_bytes", CounterUnit::bytes);
  SharedCounter blocks_ = all_.add_level("segment.blocks");
  SharedCounter largest_free_ = all_.add_level("segment.largest_free_bytes", CounterUnit::bytes);

 public:
  SharedCounter gets = all_.add("segment.gets");
  SharedCounter puts = all_.add("segment.puts");
  SharedCounter locks = all_.add("segment.locks");
  SharedCounter others = all_.add("segment.others");

 private:
  SharedCounter in_flight_ = all_.add_level("segment.in_flight");
  std::span<std::uint64_t> queue_ =
      all_.add_words("segment.lock_queue", kMaxLocks* kLockWords, CounterKind::level);
  std::size_t shown_ = 0;  // words of the queue
  PageSchedule schedule_;
};

}  // namespace dunlin
