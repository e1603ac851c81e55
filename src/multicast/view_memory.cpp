#include "multicast/view_memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/hash.hpp"

namespace dunlin::multicast {
namespace {

[[nodiscard]] SubgroupViewOptions checked(SubgroupViewOptions options, Rank own_rank) {
  check(options, own_rank);
  return options;
}

[[nodiscard]] std::vector<SenderRank> sender_ranks(const SubgroupViewOptions& options) {
  std::vector<SenderRank> by_member(options.members.size());
  for (std::size_t sender_rank = 0; sender_rank < options.senders.size(); ++sender_rank)
    by_member[options.senders[sender_rank]] = sender_rank;
  return by_member;
}

}  // namespace

ViewMemory::ViewMemory(Fabric& fabric, SubgroupViewOptions options)
    : fabric_(fabric),
      options_(checked(std::move(options), fabric.rank())),
      me_(static_cast<std::size_t>(std::ranges::find(options_.members, fabric.rank()) -
                                   options_.members.begin())),
      sender_rank_of_(sender_ranks(options_)),
      shape_{.memory = nullptr,
             .bytes = options_.ring_bytes,
             .slot_bytes = options_.switches.used_bytes_only ? 0 : options_.switches.slot_bytes},
      rings_(allocate_rings()),
      table_(
          fabric, row::layout(senders(), options_.mode),
          [bytes = row::layout(senders(), options_.mode).row_bytes](std::byte* row) {
            std::memset(row, 0, bytes);
          },
          table_options()) {
  subscription_ = fabric_.subscribe([this](const Event& event) { handle(event); });
  fabric_.announce(rings_, options_.members);
  connect_rings();
}

Region ViewMemory::allocate_rings() const {
  const std::string text = describe(options_);
  return fabric_.allocate({.name = "ring:" + options_.name,
                           .bytes = std::max<std::size_t>(senders() * shape_.bytes, kWordBytes),
                           .generation = options_.generation,
                           .layout_hash = fnv1a(text),
                           .layout_text = text});
}

TableOptions ViewMemory::table_options() const {
  return {.name = "cast:" + options_.name,
          .members = options_.members,
          .generation = options_.generation};
}

void ViewMemory::handle(const Event& event) {
  if (event.kind == Event::Kind::region_refused && event.region == rings_.id()) {
    const bool first = event.peer == options_.members.front();
    if (refusal_.empty() || first) refusal_ = event.text;
    differs_from_first_ |= first;
  }
  if (!rings_connected_) connect_rings();
}

void ViewMemory::connect_rings() noexcept {
  rings_connected_ = std::ranges::all_of(options_.members, [&](Rank rank) {
    return rank == fabric_.rank() || fabric_.failed(rank) || fabric_.connected(rank, rings_.id());
  });
}

void ViewMemory::check() const {
  if (!refusal_.empty()) refuse(options_, refusal_);
  table_.check();
}

}  // namespace dunlin::multicast
