#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "container/queue.hpp"
#include "fault_injection.hpp"

/// Tickets that will never have an element: of members that have died, and of abandoned calls.
namespace dunlin::container {

using remote::Status;

namespace {

constexpr std::size_t kClaimsAtOnce = (kMaxMessageBytes - kMessageHeader) / sizeof(Tickets);

}  // namespace

// --- reservations --------------------------------------------------------------------------------

Reservation* QueueState::free_reservation() {
  for (const auto& reservation : reservations)
    if (!reservation->busy) {
      reservation->completion.reset();
      return reservation.get();
    }
  return reservations.emplace_back(std::make_unique<Reservation>()).get();
}

/// Tickets that come for an operation that is gone.
std::size_t QueueState::collect_reservations() {
  std::size_t done = 0;
  for (const auto& reservation : reservations) {
    if (!reservation->busy || reservation->op != nullptr || !reservation->completion.finished())
      continue;
    reservation->busy = false;
    --reserving;
    ++done;
    if (!reservation->completion.failed())
      orphans.push_back({reservation->before, reservation->count});
  }
  return done;
}

/// Marks one ticket at a time, once its slot is free.
std::size_t QueueState::skip_orphans() {
  if (!orphan_done.finished()) return 0;
  if (orphan_looks && !orphan_done.failed())
    saw(orphan_ends[kTailOffset / 8], orphan_ends[kHeadOffset / 8]);
  orphan_looks = false;
  orphan_done.reset();
  std::erase_if(orphans, [](const Tickets& tickets) { return tickets.count == 0; });
  if (orphans.empty()) return 0;
  if (site.fault(spec.host) != Status::ok) {
    orphans.clear();
    return 0;
  }
  // The head comes to the lowest first, and no other has room before it has passed that.
  Tickets& tickets =
      *std::min_element(orphans.begin(), orphans.end(),
                        [](const Tickets& a, const Tickets& b) { return a.first < b.first; });
  std::size_t accepted = 0;
  if (!has_room(tickets.first)) {
    const std::uint64_t now = hub.fabric.now_ns();
    if (now < orphan_look_at_ns) {
      hub.fabric.wake_at(orphan_look_at_ns);
      return 0;
    }
    orphan_look_at_ns = orphan_rests.after(now);
    const Operation ends =
        read(spec.host, site.region(), kTailOffset, orphan_ends, kEndsBytes).notify(orphan_done);
    orphan_looks = site.post(spec.host, std::span(&ends, 1), accepted) == Site::Posted::all;
    hub.look_again_soon();
    return 0;
  }
  const std::vector<std::byte> nothing(spec.element_bytes);
  encode(shape, nothing.data(), (tickets.first + 1) | kSkip, orphan_image.data());
  const Operation mark = write(spec.host, site.region(), offset_of(tickets.first),
                               orphan_image.data(), orphan_image.size())
                             .notify(orphan_done);
  if (site.post(spec.host, std::span(&mark, 1), accepted) != Site::Posted::all) return 0;
  orphan_rests.reset();
  orphan_look_at_ns = 0;
  ++tickets.first;
  --tickets.count;
  return 1;
}

// --- a member that was asked ---------------------------------------------------------------------

/// Behind all that this member has written, and with all tickets that it has: no fetch-and-add of
/// its own is under way, and none begins before this.
void QueueState::answer_claim_request() {
  host_waits = false;
  std::vector<Tickets> mine = orphans;
  for (const QueueOperation* op = first; op != nullptr; op = op->after_this_)
    mine.push_back({op->ticket_, op->wanted_});
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

std::size_t QueueState::skip_unclaimed() {
  const std::vector<std::byte> nothing(spec.element_bytes);
  std::size_t done = 0;
  const std::uint64_t head = memory::load(own_word(kHeadOffset));
  while (done < unclaimed.size() && unclaimed[done] < head + spec.capacity) {
    encode(shape, nothing.data(), (unclaimed[done] + 1) | kSkip, image.data());
    memory::place(site.memory() + offset_of(unclaimed[done]), image.data(), image.size());
    ++done;
  }
  unclaimed.erase(unclaimed.begin(), unclaimed.begin() + static_cast<std::ptrdiff_t>(done));
  if (!unclaimed.empty()) hub.look_again_soon();
  return done;
}

std::size_t QueueState::poll_part() {
  std::size_t done = checker != nullptr ? checker->poll() : 0;
  if (reserving > 0) done += collect_reservations();
  if (!orphans.empty() || !orphan_done.finished()) done += skip_orphans();
  if (host_waits && own_tickets_known()) {
    answer_claim_request();
    ++done;
  }
  if (collecting) {
    if (!answered[spec.host] && own_tickets_known()) answer_claim_request();
    for (Rank rank = 0; rank < answered.size(); ++rank)
      if (hub.gone(rank)) answered[rank] = true;
    if (std::all_of(answered.begin(), answered.end(), [](bool one) { return one; })) {
      find_unclaimed();
      ++done;
    }
  }
  if (!unclaimed.empty()) done += skip_unclaimed();
  return done;
}

}  // namespace dunlin::container
