#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote/lock.hpp>
#include <dunlin/remote/pool.hpp>

#include "fabric/page_schedule.hpp"

/// The statistics that a space publishes for observers such as `dunlin top`: the figures of this
/// member's pool, its operations, and the locks that it holds or waits for. Written by its own
/// thread only, read by any process that may map it, never read back.
/// docs/formats/space-statistics.md describes it.
namespace dunlin::space_page {

inline constexpr std::uint64_t kMagic = 0x31434150534E5544;  // "DUNSPAC1", little-endian
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::string_view kPrefix = "space:";
inline constexpr std::uint32_t kMaxLocks = 64;  // that one member shows

enum class Count : std::uint8_t { gets, puts, locks, others };
inline constexpr std::size_t kCounts = 4;

struct LockSlot {
  std::uint64_t home;    // the member that the lock's word is at
  std::uint64_t offset;  // in its pool
  std::uint32_t state;   // 1: waits for it; 2: holds it
  std::uint32_t ticket;  // waiters of a lock get it in the order of these
};

struct Header {
  std::uint64_t magic;  // written last
  std::uint32_t version;
  std::uint32_t max_locks;
  // From here on, words that change.
  alignas(kCacheLineBytes) std::uint64_t pool_bytes;
  std::uint64_t used_bytes;
  std::uint64_t blocks;
  std::uint64_t largest_free_bytes;
  std::array<std::uint64_t, kCounts> ended;  // operations, by what they are
  std::uint64_t in_flight;
  std::uint64_t locks;  // slots that are filled
};

struct Page {
  Header header;
  std::array<LockSlot, kMaxLocks> locks;
};

static_assert(sizeof(LockSlot) == 24);
static_assert(offsetof(Header, ended) == 96);
static_assert(offsetof(Header, locks) == 136);
static_assert(offsetof(Page, locks) == 192);

}  // namespace dunlin::space_page

namespace dunlin {

class SpaceStatistics {
 public:
  SpaceStatistics(Fabric& fabric, const std::string& space)
      : region_(fabric.publish(
            {.name = std::string(space_page::kPrefix) + space, .bytes = sizeof(space_page::Page)})),
        page_(reinterpret_cast<space_page::Page*>(region_.memory().data())) {
    page_->header.version = space_page::kVersion;
    page_->header.max_locks = space_page::kMaxLocks;
    memory::store(page_->header.magic, space_page::kMagic);
  }

  /// An operation has ended.
  void count(space_page::Count what) noexcept {
    ++ended_[static_cast<std::size_t>(what)];
    schedule_.note_change();
  }
  /// Called in each poll, with how much it has done.
  void show(std::size_t done, const remote::FirstFit& blocks, const remote::Locks& locks,
            std::size_t in_flight) noexcept {
    if (!schedule_.is_due(done, [&] { return digest(locks); })) return;
    space_page::Header& header = page_->header;
    const remote::PoolUse use = blocks.use();
    memory::store(header.pool_bytes, use.bytes);
    memory::store(header.used_bytes, use.used);
    memory::store(header.blocks, use.blocks);
    memory::store(header.largest_free_bytes, use.largest_free);
    for (std::size_t i = 0; i < ended_.size(); ++i) memory::store(header.ended[i], ended_[i]);
    memory::store(header.in_flight, in_flight);
    std::uint64_t shown = 0;
    locks.each([&](const remote::LockView& lock) {
      if (shown == space_page::kMaxLocks) return;
      space_page::LockSlot& slot = page_->locks[shown++];
      memory::store(slot.home, lock.home);
      memory::store(slot.offset, lock.offset);
      memory::store(slot.ticket, lock.ticket);
      memory::store(slot.state, lock.held ? 2 : 1);
    });
    memory::store(header.locks, shown);
  }

 private:
  /// Differs once the locks that are held or waited for do.
  [[nodiscard]] static std::uint64_t digest(const remote::Locks& locks) noexcept {
    std::uint64_t digest = 0;
    locks.each([&](const remote::LockView& lock) {
      digest = digest * 31 + lock.offset + lock.ticket * 2 + (lock.held ? 1 : 0);
    });
    return digest;
  }

  Region region_;
  space_page::Page* page_;
  std::array<std::uint64_t, space_page::kCounts> ended_{};
  PageSchedule schedule_;
};

}  // namespace dunlin
