#include <algorithm>
#include <array>
#include <cstring>

#include "assert.hpp"
#include "container/collective_waits.hpp"

/// What the members of a set send each other in a call: docs/container.md has the protocols.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;
using remote::Until;

/// In round r each member tells the one 2^r behind it that it and those before it, 2^r together,
/// are there.
Protocol<CollectiveOutcome> CollectivesState::barrier(CollectiveCall call) {
  if (status != Status::ok) co_return CollectiveOutcome{status};
  Turn turn(*this, call);
  prepare(turn, 0);
  for (std::uint32_t round = 0; round < layout.rounds; ++round) {
    const std::uint32_t distance = std::uint32_t{1} << round;
    const std::uint32_t to = behind(distance);
    Posting signal(*this, to);
    signal.add(write(members[to], site->region(), layout.arrival(round),
                     message.data() + CollectiveLayout::kWordOffset, kWordBytes));
    const Status signalled = co_await signal;
    if (signalled != Status::ok) co_return turn.outcome(signalled);
    Arrival arrival(turn, before(distance), layout.arrival(round));
    const Status arrived = co_await arrival;
    if (arrived != Status::ok) co_return turn.outcome(arrived);
  }
  co_await Until([this] { return sent.finished(); });
  co_return turn.outcome(Status::ok);
}

Protocol<CollectiveOutcome> CollectivesState::exchange(CollectiveCall call) {
  if (status != Status::ok) co_return CollectiveOutcome{status};
  Turn turn(*this, call);
  Status its_status = Status::ok;
  const bool doubles =
      call.kind == CollectiveKind::all_reduce && layout.reduces_by_doubling(call.bytes);
  if (doubles) {
    its_status = co_await double_up(turn);
    if (its_status != Status::ok) co_return turn.outcome(its_status);
    co_await Until([this] { return sent.finished(); });
    co_return turn.outcome(Status::ok);
  }
  if (call.kind != CollectiveKind::broadcast) its_status = co_await up(turn);
  if (its_status != Status::ok) co_return turn.outcome(its_status);
  co_await Until([this] { return sent.finished(); });
  if (call.kind != CollectiveKind::gather) its_status = co_await down(turn);
  if (its_status != Status::ok) co_return turn.outcome(its_status);
  co_await Until([this] { return sent.finished(); });
  co_return turn.outcome(Status::ok);
}

// --- the tree ------------------------------------------------------------------------------------
// The parent of place p is p without its lowest bit, so a subtree is a row of places, and a member
// gets the same box's messages from the same member, whatever the root is.

/// CON-L2: a member combines what it has with that of the places behind it.
Protocol<Status> CollectivesState::up(Turn& turn) {
  for (std::uint32_t round = 0; round < layout.rounds; ++round) {
    const std::uint32_t distance = std::uint32_t{1} << round;
    if ((turn.place & distance) != 0) {
      prepare(turn, turn.filled);
      const Status handed_on =
          co_await send(turn, before(distance), layout.slot(round, turn.number()), turn.filled);
      co_return handed_on;
    }
    if (turn.place + distance >= layout.members) continue;
    const std::uint64_t slot = layout.slot(round, turn.number());
    Arrival arrival(turn, behind(distance), slot + CollectiveLayout::kWordOffset);
    const Status arrived = co_await arrival;
    if (arrived != Status::ok) co_return arrived;
    take(turn, turn.place + distance, site->memory() + slot);
  }
  co_return Status::ok;
}

Protocol<Status> CollectivesState::down(Turn& turn) {
  const bool is_list = turn.call.kind == CollectiveKind::all_gather;
  turn.filled = turn.call.bytes * (is_list ? layout.members : 1);
  const std::uint32_t rounds =
      turn.place == 0 ? layout.rounds : static_cast<std::uint32_t>(std::countr_zero(turn.place));
  if (turn.place != 0) {
    const std::uint64_t slot = layout.slot(layout.box_for_down(), turn.number());
    const std::uint32_t parent = before(std::uint32_t{1} << rounds);
    Arrival arrival(turn, parent, slot + CollectiveLayout::kWordOffset);
    const Status arrived = co_await arrival;
    if (arrived != Status::ok) co_return arrived;
    if (turn.filled > 0)
      std::memcpy(payload(), site->memory() + slot + CollectiveLayout::payload_of(turn.filled),
                  turn.filled);
  }
  prepare(turn, turn.filled);
  for (std::uint32_t round = rounds; round-- > 0;) {
    const std::uint32_t distance = std::uint32_t{1} << round;
    if (turn.place + distance >= layout.members) continue;
    const Status sent_on = co_await send(
        turn, behind(distance), layout.slot(layout.box_for_down(), turn.number()), turn.filled);
    if (sent_on != Status::ok) co_return sent_on;
  }
  co_return Status::ok;
}

void CollectivesState::take(Turn& turn, std::uint32_t child, const std::byte* slot) noexcept {
  DUNLIN_ASSERT(child > turn.place && child < layout.members, "CON-L2: a child stands behind us");
  const CollectiveCall& call = turn.call;
  if (call.combine != nullptr) {
    call.combine(call.function.data(), payload(), slot + CollectiveLayout::payload_of(call.bytes),
                 call.bytes);
    return;
  }
  const std::uint32_t places = std::min(child - turn.place, layout.members - child);
  const std::size_t more = places * call.bytes;
  DUNLIN_ASSERT(turn.filled + more <= bytes, "CON-L3: what is gathered fits in a box");
  if (more > 0)
    std::memcpy(payload() + turn.filled, slot + CollectiveLayout::payload_of(more), more);
  turn.filled += more;
}

// --- doubling ------------------------------------------------------------------------------------

/// In round r, members whose places differ in bit r alone give each other what the 2^r places in a
/// row that each stands for have come to.
Protocol<Status> CollectivesState::double_up(Turn& turn) {
  for (std::uint32_t round = 0; round < layout.rounds; ++round) {
    const std::uint32_t distance = std::uint32_t{1} << round;
    const bool is_behind = (turn.place & distance) != 0;
    const std::uint32_t other = is_behind ? before(distance) : behind(distance);
    const std::uint64_t from_behind = layout.slot(round, turn.number());
    const std::uint64_t from_before = layout.line_from_before(round, turn.number());
    co_await Until([this] { return sent.finished(); });
    prepare(turn, turn.filled);
    const Status given =
        co_await send(turn, other, is_behind ? from_behind : from_before, turn.filled);
    if (given != Status::ok) co_return given;
    const std::uint64_t here = is_behind ? from_before : from_behind;
    Arrival arrival(turn, other, here + CollectiveLayout::kWordOffset);
    const Status arrived = co_await arrival;
    if (arrived != Status::ok) co_return arrived;
    if (is_behind)
      take_from_before(turn, site->memory() + here);
    else
      take(turn, turn.place + distance, site->memory() + here);
  }
  co_return Status::ok;
}

/// CON-L2: the values of earlier places are the function's first argument.
void CollectivesState::take_from_before(const Turn& turn, const std::byte* line) noexcept {
  const CollectiveCall& call = turn.call;
  DUNLIN_ASSERT(call.combine != nullptr && call.bytes <= CollectiveLayout::kShortBytes,
                "CON-L2: short values are combined in lines");
  std::array<std::byte, CollectiveLayout::kShortBytes> both;
  std::memcpy(both.data(), line, call.bytes);
  call.combine(call.function.data(), both.data(), payload(), call.bytes);
  std::memcpy(payload(), both.data(), call.bytes);
}

// --- messages ------------------------------------------------------------------------------------

/// A short message is one line, with its word at the end (FAB-F2); a long one has its payload
/// behind that line.
void CollectivesState::prepare(const Turn& turn, std::size_t payload_bytes) noexcept {
  DUNLIN_ASSERT(sent.finished(), "FAB-F4: no message is changed while it is read");
  if (payload_bytes > 0 && payload_bytes <= CollectiveLayout::kShortBytes)
    std::memcpy(message.data(), payload(), payload_bytes);
  std::memcpy(message.data() + CollectiveLayout::kWordOffset, &turn.word, kWordBytes);
}

Protocol<Status> CollectivesState::send(Turn& turn, std::uint32_t to, std::uint64_t slot,
                                        std::size_t payload_bytes) {
  if (!has_room(turn.number(), to)) {
    const Status has_some = co_await wait_for_room(turn.number(), to);
    if (has_some != Status::ok) co_return has_some;
  }
  DUNLIN_ASSERT(payload_bytes <= bytes && slot + kCacheLineBytes <= layout.region_bytes(),
                "CON-L3: a message has a slot");
  const std::uint64_t word = CollectiveLayout::kWordOffset;
  Posting posting(*this, to);
  if (payload_bytes > CollectiveLayout::kShortBytes) {  // put, then signal
    posting.add(put(members[to], site->region(), slot + CollectiveLayout::kLongOffset, payload(),
                    payload_bytes));
    posting.add(write(members[to], site->region(), slot + word, message.data() + word, kWordBytes));
  } else {
    posting.add(write(members[to], site->region(), slot, message.data(), kCacheLineBytes));
  }
  const Status posted = co_await posting;
  co_return posted;
}

// --- members that are behind ---------------------------------------------------------------------

void CollectivesState::saw_ended(std::uint32_t member, std::uint64_t its_calls) noexcept {
  DUNLIN_ASSERT(member < ended.size(), "CON-L3: members are counted by their place");
  ended[member] = std::max(ended[member], its_calls);
}

bool CollectivesState::has_room(std::uint64_t number, std::uint32_t to) const noexcept {
  return std::max(all_ended, ended[to]) + layout.slots >= number;
}

Protocol<Status> CollectivesState::wait_for_room(std::uint64_t number, std::uint32_t to) {
  waits_for = to;
  for (Rests rests(hub);;) {
    std::uint64_t its_calls = 0;
    const Operation look =
        read(members[to], site->region(), CollectiveLayout::ended(), &its_calls, kWordBytes);
    const Status looked = co_await remote::post(hub.fabric, look, FaultGate{this, to});
    if (const Status its_fault = fault(to); its_fault != Status::ok) co_return its_fault;
    if (looked == Status::ok) saw_ended(to, its_calls);  // else it has failed
    if (has_room(number, to)) co_return Status::ok;
    co_await rests.pause(kLongestRestNs);
  }
}

}  // namespace dunlin::container
