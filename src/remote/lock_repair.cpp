#include <algorithm>
#include <map>

#include "assert.hpp"
#include "remote/lock_queue.hpp"

/// How queues are repaired when members are gone. All members do this, in rounds; each round begins
/// when the one before is over at all of them, and a further change begins anew:
///  1  Each expels the members that are gone (Progress), posts nothing for locks any more, and
///     sends `frozen` when its operations under way are done. When all are frozen, no lock's word
///     and no node changes any more, not even by operations that a dead member had under way.
///  2  Each reports its nodes to the homes of their locks.
///  3  Each home makes the queues of its locks from the reports alone: first the holder, then by
///     ticket. If no member holds the lock, the holder is dead, and the first one gets it (REM-12).
///  4  A home sends `placed` behind the last of its placements. A member that has `placed` of all
///     homes sends `resume`. A member that has `resume` of all members goes on: then no placement
///     can arrive late, and undo a newer link.
namespace dunlin::remote {

using Type = RepairMessage::Type;

void Locks::State::begin_repair() {
  DUNLIN_ASSERT_ALWAYS(progress.generation() > generation,
                       "REM-11: queues are repaired once for each change of the members");
  generation = progress.generation();
  frozen = true;
  ++repairs;
  parted = said_frozen = said_report = said_placed = said_resume = false;
  reports.clear();
}

/// Once those have been relocated whose lock has another home now.
void Locks::State::lose_nodes() noexcept {
  DUNLIN_ASSERT_ALWAYS(frozen, "REM-11: no node is lost while queues change");
  for (const std::uint32_t index : active)
    if (!progress.contains(nodes[index].home)) nodes[index].lost = true;
}

void Locks::relocate(Rank old_home, std::uint64_t old_offset, Rank home,
                     std::uint64_t offset) noexcept {
  DUNLIN_ASSERT_ALWAYS(state_->frozen && !state_->parted,
                       "REM-8: a lock moves while its queue rests, before its nodes are lost");
  DUNLIN_ASSERT_ALWAYS(!state_->progress.contains(old_home) && state_->progress.contains(home),
                       "REM-11: a lock moves from a member that is gone to one that is not");
  for (const std::uint32_t index : state_->active) {
    Node& node = state_->nodes[index];
    if (!node.is_at(old_home, old_offset)) continue;
    node.home = home;
    node.offset = offset;
    node.restarts = true;
    node.quiet = false;
  }
}

void Locks::park(Rank home, std::uint64_t offset) noexcept {
  DUNLIN_ASSERT_ALWAYS(state_->frozen, "REM-8: no node enters the queue while it is parked");
  for (const std::uint32_t index : state_->active)
    if (Node& node = state_->nodes[index]; node.is_at(home, offset) && node.word == 0)
      node.parked = true;
}

void Locks::unpark(Rank home, std::uint64_t offset, bool exists) noexcept {
  for (const std::uint32_t index : state_->active) {
    Node& node = state_->nodes[index];
    if (!node.is_at(home, offset) || !node.parked) continue;
    DUNLIN_ASSERT(node.word == 0, "REM-9: a node that is parked has yet to enter the queue");
    node.parked = false;
    node.lost = !exists;
    node.quiet = !exists && !state_->frozen;  // else in the end of the repair
  }
}

void Locks::State::tell_members(Type type) {
  DUNLIN_ASSERT_ALWAYS(frozen && generation == progress.generation(),
                       "REM-11: a member whose queues rest speaks of the present members");
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (counts(rank)) channel.send(rank, RepairMessage{.type = type, .generation = generation});
}

bool Locks::State::all_members(const std::vector<std::uint64_t>& have, bool exactly) const {
  DUNLIN_ASSERT(have.size() == progress.capacity() && said_frozen,
                "REM-11: a member waits for the others once it rests itself");
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (counts(rank) && (have[rank] < generation || (exactly && have[rank] != generation)))
      return false;
  return true;
}

std::size_t Locks::State::go_on_with_repair() {
  DUNLIN_ASSERT(
      said_frozen >= said_report && said_report >= said_placed && said_placed >= said_resume,
      "REM-11: each round of a repair begins when the one before is over");
  if (!parted) {
    parted = true;
    lose_nodes();
  }
  if (!said_frozen) {
    for (const std::uint32_t index : active)
      if (nodes[index].posted) return 0;
    said_frozen = true;
    tell_members(Type::frozen);
    return 1;
  }
  if (!said_report) {
    if (!all_members(frozen_in, false)) return 0;
    said_report = true;
    report_nodes();
    tell_members(Type::reported);
    return 1;
  }
  if (!said_placed) {
    if (!all_members(reported_in, true)) return 0;
    said_placed = true;
    rebuild();
    tell_members(Type::placed);
    return 1;
  }
  if (!said_resume) {
    if (!all_members(placed_in, true)) return 0;
    said_resume = true;
    tell_members(Type::resume);
    return 1;
  }
  if (!all_members(resumed_in, true)) return 0;
  end_repair();
  return 1;
}

void Locks::State::handle(Rank from, std::span<const std::byte> bytes) {
  RepairMessage message{};
  if (!parse(bytes, message)) return;
  DUNLIN_ASSERT(from < takes_part.size(), "REM-11: members alone repair queues");
  switch (message.type) {
    case Type::frozen:
      frozen_in[from] = std::max(frozen_in[from], message.generation);
      return;
    case Type::report:
      if (message.generation == generation) reports.emplace_back(from, message);
      return;
    case Type::reported:
      reported_in[from] = message.generation;
      return;
    case Type::place:
      if (message.generation == generation && message.node < nodes.size()) place(message);
      return;
    case Type::placed:
      placed_in[from] = message.generation;
      return;
    case Type::resume:
      resumed_in[from] = message.generation;
      return;
    case Type::enters:
      entered_in[from] = message.generation;
      anybody_enters = true;
      return;
    case Type::known:
      if (message.node < takes_part.size() && message.node != fabric.rank())
        takes_part[message.node] = true;
      return;
    case Type::admitted:
      admitted_in[from] = message.generation;
      return;
  }
}

void Locks::State::report_nodes() {
  for (const std::uint32_t index : std::vector(active)) {
    const Node& node = nodes[index];
    if (node.protocol != nullptr)  // it may have been granted the lock meanwhile
      protocols.advance(*node.protocol);
    if (!node.in_queue()) continue;
    DUNLIN_ASSERT(
        !node.posted && progress.contains(node.home),
        "REM-11: a node that is reported has no step under way, and its home is a member");
    channel.send(node.home, RepairMessage{.type = Type::report,
                                          .generation = generation,
                                          .node = index,
                                          .offset = node.offset,
                                          .ticket = ticket_of(node.word),
                                          .holds = node.answer == Answer::held ? 1U : 0U});
  }
}

void Locks::State::rebuild() {
  DUNLIN_ASSERT_ALWAYS(frozen && said_report, "REM-11: queues are made anew while all rest");
  std::map<std::uint64_t, std::vector<std::pair<Rank, RepairMessage>>> queues;
  for (auto& report : reports) queues[report.second.offset].push_back(report);
  for (const std::uint64_t offset : managed) rebuild(offset, queues[offset]);
  for (const auto& [from, report] : reports)
    if (!managed.contains(report.offset))
      channel.send(from, RepairMessage{.type = Type::place,
                                       .generation = generation,
                                       .node = report.node,
                                       .grant = kNoLock});
  reports.clear();
}

/// All are frozen, so plain stores do not collide with a compare-and-swap of any member.
void Locks::State::rebuild(std::uint64_t offset,
                           std::vector<std::pair<Rank, RepairMessage>>& queue) {
  DUNLIN_ASSERT_ALWAYS(offset + kWordBytes <= options.own_words.size(),
                       "REM-11: the home of a lock has its word");
  auto& word = *reinterpret_cast<std::uint64_t*>(options.own_words.data() + offset);
  if (queue.empty()) {
    if (!is_free(memory::load(word))) memory::store(word, kFreeAfterDeath);
    return;
  }
  std::sort(queue.begin(), queue.end(), [](const auto& a, const auto& b) {
    if (a.second.holds != b.second.holds) return a.second.holds > b.second.holds;
    return earlier(static_cast<std::uint32_t>(a.second.ticket),
                   static_cast<std::uint32_t>(b.second.ticket));
  });
  const auto address_of = [](const std::pair<Rank, RepairMessage>& report) {
    return NodeAddress{report.first, static_cast<std::uint32_t>(report.second.node)};
  };
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const bool last = i + 1 == queue.size();
    const bool takes_over = i == 0 && queue[i].second.holds == 0;
    channel.send(queue[i].first, RepairMessage{.type = Type::place,
                                               .generation = generation,
                                               .node = queue[i].second.node,
                                               .offset = offset,
                                               .next = last ? 0 : pack(address_of(queue[i + 1])),
                                               .grant = takes_over ? kGrantedAfterDeath : 0});
  }
  memory::store(word, lock_word(static_cast<std::uint32_t>(queue.back().second.ticket),
                                address_of(queue.back())));
}

void Locks::State::place(const RepairMessage& message) noexcept {
  const auto index = static_cast<std::uint32_t>(message.node);
  Node& node = nodes[index];
  if (!node.in_queue()) return;
  if (message.grant == kNoLock) {
    node.lost = true;
    return;
  }
  memory::store(own_word(index, kNextWord), message.next);
  if (message.grant != 0) memory::store(own_word(index, kGrantWord), message.grant);
}

void Locks::State::end_repair() noexcept {
  DUNLIN_ASSERT_ALWAYS(frozen && said_resume, "REM-11: a repair ends when all members resume");
  DUNLIN_ASSERT(std::ranges::none_of(active, [&](std::uint32_t i) { return nodes[i].posted; }),
                "REM-11: no lock step is under way while queues are repaired");
  frozen = false;
  for (const std::uint32_t index : active) {
    Node& node = nodes[index];
    node.quiet = node.quiet || node.lost || node.answer == Answer::lost;
    if (node.restarts && node.word == 0) reset_words(index);  // no member writes to it any more
    node.restarts = node.stranded = false;
  }
}

}  // namespace dunlin::remote
