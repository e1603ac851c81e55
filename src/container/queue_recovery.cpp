#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>

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
  const bool follows =
      !orphans.empty() && orphans.back().first + orphans.back().count == tickets.first;
  if (follows)
    orphans.back().count += tickets.count;
  else
    orphans.push_back(tickets);
  hub.look_again_soon();
}

/// Runs as long as the queue, and marks one ticket at a time, once its slot is free. The head comes
/// to the lowest first, and no other has room before it has passed that.
Protocol<Status> QueueState::mark_orphans() {
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
      status = co_await mark(ticket);
      if (status == Status::ok) {
        const auto marked = std::ranges::find(orphans, ticket, &Tickets::first);
        DUNLIN_ASSERT(marked != orphans.end(), "CON-Q3: an orphan stays until it is marked");
        ++marked->first;
        if (--marked->count == 0) orphans.erase(marked);
      }
    }
    if (site.fault(spec.host) != Status::ok)
      orphans.clear();
    else if (status != Status::ok)
      co_await rests.pause();  // there is no memory
  }
}

/// A mark is the slot's first word alone, as a pop may still have to read the former element
/// (CON-Q7). It takes the place of earlier turns only: a pop that sees a later one knows enough.
Protocol<Status> QueueState::mark(std::uint64_t ticket) {
  const std::uint64_t turn = ticket + 1, wanted = turn | kSkip;
  std::uint64_t seen = turn > spec.capacity ? turn - spec.capacity : 0;  // as most slots have
  Status status = Status::ok;
  while (status == Status::ok && seen != wanted && turn_of(seen) <= turn) {
    std::uint64_t before = 0;
    status = co_await post(
        site, compare_swap(spec.host, site.region(), offset_of(ticket), seen, wanted, &before));
    seen = before == seen ? wanted : before;
  }
  co_return status;
}

// --- a member that was asked ---------------------------------------------------------------------

template <class See>
void QueueState::for_each_claim(const See& see) const {
  for (const Tickets& orphan : orphans) see(orphan);
  for (const HeldTickets* const held : holders)
    if (held->tickets.count > 0 && held->call.pushes) see(held->tickets);
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
  may_take_head = false;
  if (!is_host()) return;
  memory::store(own_word(kGenerationOffset), hub.progress.generation());
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
  must_collect = false;
  must_ask = true;
  hub.look_again_soon();
}

/// In a poll behind the one that has noted the tail: a member announces its queue before it takes
/// a ticket, so those that have one below that tail are known here now.
void QueueState::ask_for_claims() {
  for (Rank rank = 0; rank < hub.progress.capacity(); ++rank) {
    if (rank == spec.host) continue;
    if (!hub.gone(rank) && site.connected(rank))
      hub.send(rank,
               {.container = site.id(),
                .call = generation,
                .word = recovered_below,
                .kind = MessageKind::claim_request},
               {});
    else
      answered[rank] = true;
  }
  must_ask = false;
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

/// Those that have a slot now become the host's orphans; those behind them when the head has made
/// room. Pops may have taken tickets that nobody will write (CON-Q7), so it begins one turn
/// earlier.
std::size_t QueueState::mark_unclaimed() {
  DUNLIN_ASSERT(is_host() && !collecting, "CON-Q3: the host marks when all members have answered");
  const std::uint64_t head = memory::load(own_word(kHeadOffset));
  if (is_damaged(head)) {
    marks_below = 0;
    return 1;
  }
  const std::uint64_t taken = std::min(head, marks_below);  // the head may be beyond the tail still
  marks_from = std::max(marks_from, taken - std::min<std::uint64_t>(taken, spec.capacity));
  const std::uint64_t end = std::min(marks_below, head + spec.capacity);
  std::size_t done = 0;
  for (; marks_from < end; ++marks_from) {
    memory::fetch(image.data(), site.memory() + offset_of(marks_from), image.size());
    const std::uint64_t stamp = word_at(image.data());
    const bool is_used = turn_of(stamp) > marks_from + 1 || stamp == ((marks_from + 1) | kSkip) ||
                         (stamp == marks_from + 1 && is_whole(shape, image.data()));
    if (is_used || std::ranges::any_of(
                       claimed, [this](const Tickets& some) { return some.contains(marks_from); }))
      continue;
    expect_orphans();
    take_orphans({marks_from, 1});
    ++done;
  }
  if (marks_from < marks_below) hub.look_again_soon();
  return done;
}

/// All that are left have answered, and take the head no more: what it is beyond the tail is of
/// the dead, and nothing is pushed before it is mended (CON-Q8).
Protocol<Status> QueueState::mend_head() {
  DUNLIN_ASSERT(is_host(), "CON-Q8: the host mends its head");
  Status status = Status::ok;
  while (status == Status::ok) {
    std::uint64_t head = memory::load(own_word(kHeadOffset));
    const std::uint64_t tail = memory::load(own_word(kTailOffset));
    if (head <= tail) break;
    status =
        co_await post(site, compare_swap(spec.host, site.region(), kHeadOffset, head, tail, &head));
  }
  co_return status;
}

std::size_t QueueState::poll_part() {
  std::size_t done = protocols.advance();
  if (checker != nullptr) done += checker->poll();
  if (is_host() && std::exchange(withdrawals, site.withdrawals()) != site.withdrawals())
    must_collect = true;
  const bool answers = reserving == 0 && (host_waits || (collecting && !answered[spec.host]));
  if (must_collect || must_ask || answers) try {
      if (must_collect)
        collect_claims();
      else
        must_ask ? ask_for_claims() : answer_claim_request();
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
      must_mend_head = true;
      ++done;
    }
  }
  try {
    if (marks_from < marks_below) done += mark_unclaimed();
  } catch (const std::bad_alloc&) {
    hub.look_again_soon();  // the next poll goes on
  }
  if (must_mend_head) must_mend_head = !protocols.start(mend_head());
  return done;
}

}  // namespace dunlin::container
