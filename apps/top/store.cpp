#include "top/store.hpp"

#include <algorithm>
#include <utility>

#include "store/statistics_page_format.hpp"
#include "top/published_page.hpp"

namespace dunlin::top {
namespace {

bool contradicts_itself(const StoreMember::Part& part) {
  return std::max(part.used_bytes, part.held_bytes) > part.memory_bytes ||
         part.main_slots_used > part.main_slots;
}

StoreMember::Part read_part(const store_page::Part& part) {
  return {.keys = memory::load(part.keys),
          .value_bytes = memory::load(part.value_bytes),
          .memory_bytes = memory::load(part.memory_bytes),
          .used_bytes = memory::load(part.used_bytes),
          .held_bytes = memory::load(part.held_bytes),
          .limit_bytes = memory::load(part.limit_bytes),
          .main_slots = memory::load(part.main_slots),
          .main_slots_used = memory::load(part.main_slots_used),
          .indirect_headers = memory::load(part.indirect_headers),
          .indirect_headers_free = memory::load(part.indirect_headers_free),
          .locked_chains = memory::load(part.locked_chains),
          .evictions = {.total = memory::load(part.evictions)}};
}

}  // namespace

std::optional<double> StoreMember::hit_percent() const {
  const bool has_rates = cache_hits.per_s && cache_misses.per_s && cache_stale.per_s;
  const auto amount = [&](const Counter& counter) {
    return has_rates ? *counter.per_s : static_cast<double>(counter.total);
  };
  const double all = amount(cache_hits) + amount(cache_misses) + amount(cache_stale);
  if (all <= 0) return std::nullopt;
  return 100 * amount(cache_hits) / all;
}

void StoreMember::compare(const StoreMember& before, double seconds) {
  for (const auto counter :
       {&StoreMember::gets, &StoreMember::puts, &StoreMember::erases, &StoreMember::others,
        &StoreMember::lock_waits, &StoreMember::waits_for_room, &StoreMember::cache_hits,
        &StoreMember::cache_misses, &StoreMember::cache_stale})
    (this->*counter).compare((before.*counter).total, seconds);
  if (part && before.part) part->evictions.compare(before.part->evictions.total, seconds);
}

std::optional<std::string_view> store_of(std::string_view region) {
  if (!region.starts_with(store_page::kPrefix)) return std::nullopt;
  return region.substr(store_page::kPrefix.size());
}

std::optional<StoreMember> read_store(std::span<const std::byte> memory) {
  const auto* const page =
      page_at<store_page::Page>(memory, {store_page::kMagic, store_page::kVersion});
  if (page == nullptr) return std::nullopt;
  const auto count_at = [](const std::uint64_t& word) {
    return Counter{.total = memory::load(word)};
  };
  const auto begun = [&](store_page::Count what) {
    return count_at(page->begun[static_cast<std::size_t>(what)]);
  };
  StoreMember member{.gets = begun(store_page::Count::gets),
                     .puts = begun(store_page::Count::puts),
                     .erases = begun(store_page::Count::erases),
                     .others = begun(store_page::Count::others),
                     .lock_waits = count_at(page->lock_waits),
                     .waits_for_room = count_at(page->waits_for_room),
                     .cache_hits = count_at(page->cache_hits),
                     .cache_misses = count_at(page->cache_misses),
                     .cache_stale = count_at(page->cache_stale),
                     .cache_slots = memory::load(page->cache_slots),
                     .in_flight = memory::load(page->in_flight)};
  if (memory::load(page->is_home) == 0) return member;
  member.part = read_part(page->part);
  if (contradicts_itself(*member.part)) return std::nullopt;
  return member;
}

}  // namespace dunlin::top
