#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/queue.hpp"
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

template <class See>
void QueueState::for_each_claim(const See& see) const {
  for (const Tickets& orphan : orphans) see(orphan);
  for (const HeldTickets* const held : holders)
    if (held->tickets.count > 0) see(held->tickets);
}

/// Behind all that this member has written, and with all tickets that it has: no fetch-and-add of
/// its own is under way, and none begins before this.
void QueueState::answer_claim_request() {
  DUNLIN_ASSERT(reserving == 0, "CON-Q3: an answer has the tickets of all own fetch-and-adds");
  if (is_host()) {
    for_each_claim([this](const Tickets& mine) { claimed.push_back(mine); });
    answered[spec.host] = true;
    return;
  }
  MessageHead head{.container = site.id(), .call = host_generation, .kind = MessageKind::claims};
  std::array<Tickets, kClaimsAtOnce> some{};
  std::size_t count = 0;
  const auto send = [&] {
    hub.send(spec.host, head, std::as_bytes(std::span(some).first(count)));
    count = 0;
  };
  for_each_claim([&](const Tickets& mine) {
    if (count == some.size()) send();
    some[count++] = mine;
  });
  head.flag = 1;
  send();
  host_waits = false;
}

// --- the host ------------------------------------------------------------------------------------

/// The host has expelled the gone members, so they take no ticket from here on.
void QueueState::members_changed() {
  if (!is_host()) return;
  must_collect = true;
  hub.look_again_soon();
}

void QueueState::collect_claims() {
  DUNLIN_ASSERT(is_host(), "CON-Q3: the host finds the tickets of the dead");
  collecting = true;
  marks_below = 0;
  ++generation;
  recovered_below = memory::load(own_word(kTailOffset));
  claimed.clear();
  answered.assign(answered.size(), false);
  for (Rank rank = 0; rank < hub.progress.capacity(); ++rank)
    if (rank != spec.host && !hub.gone(rank) && site.connected(rank))
      hub.send(rank,
               {.container = site.id(),
                .call = generation,
                .word = recovered_below,
                .kind = MessageKind::claim_request},
               {});
    else
      answered[rank] = rank != spec.host;
  must_collect = false;
}

void QueueState::handle_claims(Rank from, const MessageHead& head,
                               std::span<const std::byte> content) {
  if (!is_host() || !collecting || head.call != generation) return;
  for (; content.size() >= sizeof(Tickets); content = content.subspan(sizeof(Tickets))) {
    Tickets tickets{};
    std::memcpy(&tickets, content.data(), sizeof tickets);
    try {
      claimed.push_back(tickets);
    } catch (const std::bad_alloc&) {
      must_collect = true;  // the next poll asks all members again
      return;
    }
  }
  if (head.flag != 0) answered[from] = true;
}

/// A tail so far behind the head that no tickets of pushes could have led there is no tail.
bool QueueState::is_damaged(std::uint64_t head) noexcept {
  constexpr std::uint64_t kMostTickets = std::uint64_t{kMaxSlots} * kMaxRanks;
  if (recovered_below <= head || recovered_below - head <= kMostTickets) return false;
  hub.why_refused = "queue '" + spec.name + "': its tail is " + std::to_string(recovered_below) +
                    " and its head " + std::to_string(head) +
                    ": a member has damaged it, and tickets of dead members stay";
  return true;
}

/// The tickets that have a slot now; those behind them when the head has made room.
std::size_t QueueState::mark_unclaimed() {
  DUNLIN_ASSERT(is_host() && !collecting, "CON-Q3: the host marks when all members have answered");
  const std::uint64_t head = memory::load(own_word(kHeadOffset));
  if (is_damaged(head)) {
    marks_below = 0;
    return 1;
  }
  marks_from = std::max(marks_from, head);
  const std::uint64_t end = std::min(marks_below, head + spec.capacity);
  std::size_t done = 0;
  for (; marks_from < end; ++marks_from) {
    memory::fetch(image.data(), site.memory() + offset_of(marks_from), image.size());
    const std::uint64_t stamp = word_at(image.data()) & ~kSkip;
    if (stamp > marks_from + 1 || (stamp == marks_from + 1 && is_whole(shape, image.data())))
      continue;
    if (std::ranges::any_of(claimed,
                            [this](const Tickets& some) { return some.contains(marks_from); }))
      continue;
    encode_mark(marks_from, image.data());
    memory::place(site.memory() + offset_of(marks_from), image.data(), image.size());
    ++done;
  }
  if (marks_from < marks_below) hub.look_again_soon();
  return done;
}

std::size_t QueueState::poll_part() {
  std::size_t done = protocols.advance();
  if (checker != nullptr) done += checker->poll();
  const bool answers = reserving == 0 && (host_waits || (collecting && !answered[spec.host]));
  if (must_collect || answers) try {
      must_collect ? collect_claims() : answer_claim_request();
      ++done;
    } catch (const std::bad_alloc&) {
      hub.look_again_soon();  // the next poll asks, or says, all of it again
    }
  if (collecting) {
    for (Rank rank = 0; rank < answered.size(); ++rank)
      if (hub.gone(rank)) answered[rank] = true;
    if (std::all_of(answered.begin(), answered.end(), [](bool one) { return one; })) {
      collecting = false;
      marks_from = 0;
      marks_below = recovered_below;
      ++done;
    }
  }
  if (marks_from < marks_below) done += mark_unclaimed();
  return done;
}

}  // namespace dunlin::container
