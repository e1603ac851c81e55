#include "top/counters.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

#include <dunlin/limits.hpp>

namespace dunlin::top {
namespace {

/// The value of a counter of one word; nothing if it is not there, or unknown.
std::optional<double> value_of(const CounterBlock::Row& row, std::string_view name) {
  const auto found = row.counters.find(name);
  if (found == row.counters.end()) return std::nullopt;
  const std::uint64_t value = found->second->view.words.front();
  if (value == SharedCounter::kUnknown) return std::nullopt;
  return static_cast<double>(value);
}

/// How much it has grown between the two samples; all of it, if there is only one sample.
std::optional<double> growth_of(const CounterBlock::Row& row, std::string_view name) {
  const auto found = row.counters.find(name);
  if (found == row.counters.end()) return std::nullopt;
  return found->second->per_s ? found->second->per_s : value_of(row, name);
}

/// The share of lookups that the location cache answered, in percent.
std::optional<double> hit_percent(const CounterBlock::Row& row) {
  const auto hits = growth_of(row, "cache_hits");
  const auto misses = growth_of(row, "cache_misses");
  const auto stale = growth_of(row, "cache_stale");
  if (!hits || !misses || !stale || *hits + *misses + *stale == 0) return std::nullopt;
  return 100 * *hits / (*hits + *misses + *stale);
}

/// How far the free memory of a pool is from being one piece, in percent.
std::optional<double> fragmentation(const CounterBlock::Row& row) {
  const auto all = value_of(row, "pool_bytes");
  const auto used = value_of(row, "used_bytes");
  const auto largest = value_of(row, "largest_free_bytes");
  if (!all || !used || !largest || *all <= *used) return std::nullopt;
  return std::max(0.0, 100 * (1 - *largest / (*all - *used)));
}

std::vector<std::string> keys_of(const CounterView& view) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : view.split_labels()) keys.emplace_back(key);
  return keys;
}

CounterBlock& block_of(std::vector<CounterBlock>& blocks, const CounterView& view) {
  std::vector<std::string> keys = keys_of(view);
  for (CounterBlock& block : blocks)
    if (block.layer == view.layer() && block.keys == keys) return block;
  return blocks.emplace_back(
      CounterBlock{.layer = std::string(view.layer()), .keys = std::move(keys)});
}

}  // namespace

std::vector<CounterBlock> blocks_of(const std::vector<MemberCounter>& counters) {
  std::vector<CounterBlock> blocks;
  std::map<std::tuple<std::string_view, std::string_view, std::uint64_t>, std::size_t> rows;
  for (const MemberCounter& counter : counters) {
    const CounterView& view = counter.view;
    if (view.layer() == "table" || view.words.size() != 1) continue;
    CounterBlock& block = block_of(blocks, view);
    const auto [row, is_new] =
        rows.try_emplace({view.layer(), view.labels, counter.incarnation}, block.rows.size());
    if (is_new) block.rows.push_back({.any = &counter});
    block.rows[row->second].counters[view.short_name()] = &counter;
    if (std::ranges::find(block.names, view.short_name()) == block.names.end())
      block.names.emplace_back(view.short_name());
  }
  for (CounterBlock& block : blocks)
    std::ranges::stable_sort(block.rows, {}, [](const CounterBlock::Row& row) {
      return std::tie(row.any->view.labels, row.any->rank);
    });
  std::ranges::stable_sort(
      blocks, {}, [](const CounterBlock& block) { return std::tie(block.layer, block.keys); });
  return blocks;
}

CounterIndex::CounterIndex(const std::vector<MemberCounter>& counters) {
  for (const MemberCounter& counter : counters) {
    const CounterView& view = counter.view;
    if (view.layer() != "table" && view.layer() != "multicast") continue;
    const std::size_t more = view.labels.find("\nid=");  // a predicate's label
    counters_[{counter.incarnation, view.labels.substr(0, more)}].push_back(&view);
  }
}

std::span<const CounterView* const> CounterIndex::of(std::uint64_t incarnation,
                                                     const std::string& object) const {
  const auto found = counters_.find({incarnation, object});
  return found == counters_.end() ? std::span<const CounterView* const>() : found->second;
}

void compare(const std::vector<MemberCounter>& before, std::vector<MemberCounter>& after,
             double seconds) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const MemberCounter*> known;
  for (const MemberCounter& counter : before)
    known[{counter.incarnation, counter.view.serial}] = &counter;
  for (MemberCounter& counter : after) {
    const auto then = known.find({counter.incarnation, counter.view.serial});
    if (then == known.end() || counter.view.kind == CounterKind::level ||
        then->second->view.words.size() != 1 || counter.view.words.size() != 1)
      continue;
    const std::uint64_t was = then->second->view.words.front();
    const std::uint64_t is = counter.view.words.front();
    if (was <= is && seconds > 0) counter.per_s = static_cast<double>(is - was) / seconds;
  }
}

std::vector<LockSample> locks_of(const std::vector<MemberCounter>& counters) {
  constexpr std::size_t kLockWords = 4;  // home, offset, ticket, 1: waits or 2: holds
  constexpr std::uint64_t kWaits = 1, kHolds = 2;
  struct Seen {
    LockSample lock;
    std::vector<std::pair<std::uint32_t, Rank>> queue = {};  // by ticket
  };
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, Seen> all;
  for (const MemberCounter& counter : counters) {
    if (counter.view.name != "segment.lock_queue") continue;
    const auto labels = counter.view.split_labels();
    const std::string space = labels.empty() ? "" : std::string(labels.front().second);
    const std::vector<std::uint64_t>& words = counter.view.words;
    for (std::size_t at = 0; at + kLockWords <= words.size(); at += kLockWords) {
      const std::uint64_t home = words[at], offset = words[at + 1], state = words[at + 3];
      if ((state != kWaits && state != kHolds) || home >= kMaxMembers) continue;
      Seen& seen = all[{space, home, offset}];
      seen.lock.space = space;
      seen.lock.home = static_cast<Rank>(home);
      seen.lock.offset = offset;
      if (state == kHolds)
        seen.lock.holder = counter.rank;
      else
        seen.queue.emplace_back(static_cast<std::uint32_t>(words[at + 2]), counter.rank);
    }
  }
  std::vector<LockSample> result;
  for (auto& [place, seen] : all) {
    // Tickets wrap around. All that wait lie within half a turn of any one of them.
    const std::uint32_t base = seen.queue.empty() ? 0 : seen.queue.front().first - (1U << 31U);
    std::ranges::sort(seen.queue, {}, [base](const auto& one) { return one.first - base; });
    for (const auto& [ticket, rank] : seen.queue) seen.lock.waiters.push_back(rank);
    result.push_back(std::move(seen.lock));
  }
  return result;
}

const std::vector<Reckoned>& reckoned() {
  static const std::vector<Reckoned> all{
      {.layer = "store", .name = "hit_percent", .value = hit_percent},
      {.layer = "segment", .name = "fragmentation_percent", .value = fragmentation}};
  return all;
}

}  // namespace dunlin::top
