#include "top/statistics_sample.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <dunlin/fabric/memory.hpp>

#include "fabric/shm/system.hpp"
#include "table/statistics_page_format.hpp"

namespace dunlin::top {
namespace {

/// Whether `count` things of `bytes` each lie within the memory from an aligned offset on.
bool fits(std::span<const std::byte> memory, std::uint64_t offset, std::uint64_t count,
          std::size_t bytes) {
  return offset % kWordBytes == 0 && offset <= memory.size() &&
         count <= (memory.size() - offset) / bytes;
}

bool plausible(const statistics_page::Header& header, std::span<const std::byte> memory) {
  return header.version == statistics_page::kVersion && header.rows > 0 &&
         header.rows <= kMaxMembers && header.my_row < header.rows && header.refresh <= 1 &&
         header.row_bytes <= kMaxRowBytes && header.stride_bytes >= header.row_bytes &&
         header.stride_bytes <= kMaxRowBytes + kCacheLineBytes &&
         header.stride_bytes % kCacheLineBytes == 0 && header.predicate_slots <= kMaxPredicates &&
         fits(memory, header.rows_offset, header.rows, sizeof(statistics_page::Row)) &&
         fits(memory, header.predicates_offset, header.predicate_slots,
              sizeof(statistics_page::PredicateSlot));
}

template <class T>
T fetch_at(std::span<const std::byte> memory, std::uint64_t offset) {
  T copy;
  memory::fetch(&copy, memory.data() + offset, sizeof copy);
  return copy;
}

RowStatus read_row(const statistics_page::Row& row) {
  const auto state = static_cast<RowState>(std::min<std::uint32_t>(row.state, UINT8_MAX));
  return {
      .rank = row.rank, .state = state, .since_ns = row.since_ns, .refreshed_ns = row.refreshed_ns};
}

/// The slot is reused for other predicates: the id, looked at before and after, tells.
std::optional<PredicateSample> read_predicate(std::span<const std::byte> memory,
                                              std::uint64_t offset) {
  const auto* slot =
      reinterpret_cast<const statistics_page::PredicateSlot*>(memory.data() + offset);
  const std::uint64_t id = memory::load(slot->id);
  if (id == 0) return std::nullopt;
  const auto copy = fetch_at<statistics_page::PredicateSlot>(memory, offset);
  if (memory::load(slot->id) != id) return std::nullopt;
  if (copy.kind > static_cast<std::uint32_t>(PredicateKind::transition)) return std::nullopt;
  PredicateSample predicate{.id = id};
  predicate.name.assign(copy.name.begin(), std::find(copy.name.begin(), copy.name.end(), '\0'));
  predicate.kind = static_cast<PredicateKind>(copy.kind);
  predicate.triggers = copy.triggers;
  predicate.first_pass = copy.first_pass;
  predicate.firings.total = copy.firings;
  return predicate;
}

void read_predicates(StatisticsSample& page, std::span<const std::byte> memory,
                     const statistics_page::Header& header) {
  for (std::uint64_t i = 0; i < header.predicate_slots; ++i) {
    const std::uint64_t offset =
        header.predicates_offset + i * sizeof(statistics_page::PredicateSlot);
    std::optional<PredicateSample> predicate = read_predicate(memory, offset);
    if (!predicate) continue;
    const std::uint64_t passes = page.passes.total;
    const bool evaluated = predicate->first_pass <= passes;
    predicate->evaluations.total = evaluated ? passes - predicate->first_pass + 1 : 0;
    page.predicates.push_back(std::move(*predicate));
  }
  std::sort(page.predicates.begin(), page.predicates.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
}

}  // namespace

std::optional<StatisticsSample> read_page(std::span<const std::byte> memory) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(memory.data()) % kWordBytes == 0;
  if (!aligned || memory.size() < sizeof(statistics_page::Header)) return std::nullopt;
  const auto* shared = reinterpret_cast<const statistics_page::Header*>(memory.data());
  // Written last: what we see behind it is complete.
  if (memory::load(shared->magic) != statistics_page::kMagic) return std::nullopt;
  const auto header = fetch_at<statistics_page::Header>(memory, 0);
  if (!plausible(header, memory)) return std::nullopt;
  StatisticsSample page{.taken_ns = shm::read_clock_ns(CLOCK_MONOTONIC),
                        .my_row = header.my_row,
                        .refresh = static_cast<Refresh>(header.refresh),
                        .row_bytes = header.row_bytes,
                        .stride_bytes = header.stride_bytes,
                        .created_ns = header.created_ns,
                        .predicates_registered = header.predicates,
                        .passes = {header.passes},
                        .pushes = {header.pushes},
                        .pulls = {header.pulls}};
  for (std::uint32_t i = 0; i < header.rows; ++i) {
    page.rows.push_back(read_row(fetch_at<statistics_page::Row>(
        memory, header.rows_offset + i * sizeof(statistics_page::Row))));
  }
  read_predicates(page, memory, header);
  return page;
}

std::string_view describe(PredicateKind kind) {
  switch (kind) {
    case PredicateKind::recurrent:
      return "recurrent";
    case PredicateKind::once:
      return "once";
    case PredicateKind::transition:
      return "transition";
  }
  return "unknown";
}

}  // namespace dunlin::top
