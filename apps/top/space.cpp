#include "top/space.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "segment/statistics_page.hpp"
#include "top/published_page.hpp"

namespace dunlin::top {
namespace {

constexpr std::uint32_t kHolds = 2;

bool contradicts_itself(const SpaceMember& member) {
  return member.used_bytes > member.pool_bytes ||
         member.largest_free_bytes > member.pool_bytes - member.used_bytes;
}

}  // namespace

void SpaceMember::compare(const SpaceMember& before, double seconds) {
  gets.compare(before.gets.total, seconds);
  puts.compare(before.puts.total, seconds);
  locks.compare(before.locks.total, seconds);
}

double SpaceMember::fragmentation() const {
  const std::uint64_t free = pool_bytes - used_bytes;
  return free == 0 ? 0 : 1 - static_cast<double>(largest_free_bytes) / static_cast<double>(free);
}

std::vector<SpaceLock> Space::locks() const {
  using Waiter = std::tuple<std::uint32_t, Rank>;
  std::map<std::pair<Rank, std::uint64_t>, std::vector<Waiter>> waiters;
  std::map<std::pair<Rank, std::uint64_t>, SpaceLock> all;
  for (const SpaceMember& member : members) {
    for (const SpaceMember::Lock& lock : member.queued) {
      const std::pair place(lock.home, lock.offset);
      SpaceLock& seen = all[place];
      seen.home = lock.home;
      seen.offset = lock.offset;
      if (lock.held) {
        seen.holder = member.rank;
      } else {
        waiters[place].emplace_back(lock.ticket, member.rank);
      }
    }
  }
  std::vector<SpaceLock> result;
  for (auto& [place, lock] : all) {
    auto& queue = waiters[place];
    // Tickets wrap around.
    std::sort(queue.begin(), queue.end(), [](const Waiter& a, const Waiter& b) {
      return static_cast<std::int32_t>(std::get<0>(a) - std::get<0>(b)) < 0;
    });
    for (const auto& [ticket, rank] : queue) lock.waiters.push_back(rank);
    result.push_back(std::move(lock));
  }
  return result;
}

std::optional<std::string_view> space_of(std::string_view region) {
  if (!region.starts_with(space_page::kPrefix)) return std::nullopt;
  return region.substr(space_page::kPrefix.size());
}

std::optional<SpaceMember> read_space(std::span<const std::byte> memory) {
  const auto* const found =
      page_at<space_page::Page>(memory, {space_page::kMagic, space_page::kVersion});
  if (found == nullptr) return std::nullopt;
  const space_page::Page& page = *found;
  const auto ended = [&](space_page::Count what) {
    return Counter{.total = memory::load(page.header.ended[static_cast<std::size_t>(what)])};
  };
  SpaceMember member{.pool_bytes = memory::load(page.header.pool_bytes),
                     .used_bytes = memory::load(page.header.used_bytes),
                     .blocks = memory::load(page.header.blocks),
                     .largest_free_bytes = memory::load(page.header.largest_free_bytes),
                     .gets = ended(space_page::Count::gets),
                     .puts = ended(space_page::Count::puts),
                     .locks = ended(space_page::Count::locks),
                     .in_flight = memory::load(page.header.in_flight)};
  if (contradicts_itself(member)) return std::nullopt;
  const std::uint64_t locks = memory::load(page.header.locks);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(locks, page.locks.size()); ++i) {
    const space_page::LockSlot& slot = page.locks[i];
    const std::uint64_t home = memory::load(slot.home);
    if (home >= kMaxMembers) continue;
    member.queued.push_back({.home = static_cast<Rank>(home),
                             .offset = memory::load(slot.offset),
                             .ticket = memory::load(slot.ticket),
                             .held = memory::load(slot.state) == kHolds});
  }
  return member;
}

}  // namespace dunlin::top
