#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/queue.hpp"
#include "fault_injection.hpp"
#include "remote/control_channel.hpp"

/// Tickets that will never have an element: of members that have died, and of abandoned calls.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;
using remote::Until;

namespace {

constexpr std::size_t kClaimsAtOnce = (kMaxMessageBytes - kMessageHeader) / sizeof(Tickets);

}  // namespace

// --- orphans -------------------------------------------------------------------------------------

void QueueState::expect_orphans() {
  const std::size_t most = orphans.size() + may_be_orphans + 1;
  if (orphans.capacity() < most) orphans.reserve(2 * most);
}

void QueueState::take_orphans(Tickets tickets) noexcept {
  if (tickets.count == 0 || site.fault(spec.host) != Status::ok) return;
  DUNLIN_ASSERT(orphans.size() < orphans.capacity(), "REM-5: a destructor allocates nothing");
  orphans.push_back(tickets);
  hub.look_again_soon();
}

/// Runs as long as the queue, and marks one ticket at a time, once its slot is free. The head comes
/// to the lowest first, and no other has room before it has passed that.
Protocol<Status> QueueState::mark_orphans() {
  std::vector<std::byte> mark(shape.slot_bytes);
  const Patience for_ever(hub.fabric, remote::kForever);
  const auto lowest = [this] {
    return std::ranges::min_element(orphans, {}, &Tickets::first)->first;
  };
  for (;;) {
    co_await Until([this] { return !orphans.empty(); });
    Rests rests(hub);
    Status status = Status::ok;
    while (status == Status::ok && !has_room(lowest(), 1)) {
      status = co_await look(for_ever);
      if (status == Status::ok && !has_room(lowest(), 1)) co_await rests.pause();
    }
    if (status == Status::ok) {
      const std::uint64_t ticket = lowest();
      encode_mark(ticket, mark.data());
      status = co_await post(
          site, write(spec.host, site.region(), offset_of(ticket), mark.data(), mark.size()));
      const auto marked = std::ranges::find(orphans, ticket, &Tickets::first);
      DUNLIN_ASSERT(marked != orphans.end(), "CON-Q3: an orphan stays until it is marked");
      ++marked->first;
      if (--marked->count == 0) orphans.erase(marked);
    }
    if (site.fault(spec.host) != Status::ok)
      orphans.clear();
    else if (status != Status::ok)
      co_await rests.pause();  // there is no memory
  }
}

void QueueState::encode_mark(std::uint64_t ticket, std::byte* slot) const noexcept {
  encode(shape, nothing.data(), (ticket + 1) | kSkip, slot);
}

// --- a member that was asked ---------------------------------------------------------------------

/// Behind all that this member has written, and with all tickets that it has: no fetch-and-add of
/// its own is under way, and none begins before this.
void QueueState::answer_claim_request() {
  host_waits = false;
  std::vector<Tickets> mine = orphans;
  for (const HeldTickets* const held : holders)
    if (held->tickets.count > 0) mine.push_back(held->tickets);
  if (is_host()) {
    claimed.insert(claimed.end(), mine.begin(), mine.end());
    answered[spec.host] = true;
    return;
  }
  MessageHead head{.container = site.id(), .call = host_generation, .kind = MessageKind::claims};
  std::span<const Tickets> rest(mine);
  do {
    const auto now = rest.first(std::min(rest.size(), kClaimsAtOnce));
    rest = rest.subspan(now.size());
    head.flag = rest.empty() ? 1 : 0;
    hub.send(spec.host, head, std::as_bytes(now));
  } while (!rest.empty());
}

// --- the host ------------------------------------------------------------------------------------

/// The host has expelled the gone members, so they take no ticket from here on.
void QueueState::members_changed() {
  if (!is_host()) return;
  collecting = true;
  generation = hub.progress.members().generation();
  recovered_below = memory::load(own_word(kTailOffset));
  claimed.clear();
  answered.assign(answered.size(), false);
  for (Rank rank = 0; rank < hub.progress.size(); ++rank)
    if (rank != spec.host && !hub.gone(rank) && site.connected(rank))
      hub.send(rank,
               {.container = site.id(),
                .call = generation,
                .word = recovered_below,
                .kind = MessageKind::claim_request},
               {});
    else
      answered[rank] = rank != spec.host;
}

void QueueState::handle_claims(Rank from, const MessageHead& head,
                               std::span<const std::byte> content) {
  if (!is_host() || !collecting || head.call != generation) return;
  for (; content.size() >= sizeof(Tickets); content = content.subspan(sizeof(Tickets))) {
    Tickets tickets{};
    std::memcpy(&tickets, content.data(), sizeof tickets);
    claimed.push_back(tickets);
  }
  if (head.flag != 0) answered[from] = true;
}

void QueueState::find_unclaimed() {
  collecting = false;
  unclaimed.clear();
  for (std::uint64_t ticket = memory::load(own_word(kHeadOffset)); ticket < recovered_below;
       ++ticket) {
    memory::fetch(image.data(), site.memory() + offset_of(ticket), image.size());
    const std::uint64_t stamp = word_at(image.data()) & ~kSkip;
    if (stamp > ticket + 1 || (stamp == ticket + 1 && is_whole(shape, image.data()))) continue;
    const bool is_claimed = std::any_of(claimed.begin(), claimed.end(),
                                        [&](const Tickets& some) { return some.contains(ticket); });
    if (!is_claimed && !is_injected(FaultInjection::dead_tickets_stay)) unclaimed.push_back(ticket);
  }
}

std::size_t QueueState::mark_unclaimed() {
  std::size_t done = 0;
  const std::uint64_t head = memory::load(own_word(kHeadOffset));
  while (done < unclaimed.size() && unclaimed[done] < head + spec.capacity) {
    encode_mark(unclaimed[done], image.data());
    memory::place(site.memory() + offset_of(unclaimed[done]), image.data(), image.size());
    ++done;
  }
  unclaimed.erase(unclaimed.begin(), unclaimed.begin() + static_cast<std::ptrdiff_t>(done));
  if (!unclaimed.empty()) hub.look_again_soon();
  return done;
}

std::size_t QueueState::poll_part() {
  std::size_t done = protocols.advance();
  if (checker != nullptr) done += checker->poll();
  if (reserving == 0 && (host_waits || (collecting && !answered[spec.host]))) {
    answer_claim_request();
    ++done;
  }
  if (collecting) {
    for (Rank rank = 0; rank < answered.size(); ++rank)
      if (hub.gone(rank)) answered[rank] = true;
    if (std::all_of(answered.begin(), answered.end(), [](bool one) { return one; })) {
      find_unclaimed();
      ++done;
    }
  }
  if (!unclaimed.empty()) done += mark_unclaimed();
  return done;
}

}  // namespace dunlin::container
