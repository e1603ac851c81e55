#include "container/collectives.hpp"

#include <algorithm>
#include <cstring>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "fabric/hash.hpp"
#include "fabric/thread_guard.hpp"

/// The calls of a set of members that meet: docs/container.md has the protocols.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;
using remote::Until;

namespace {

std::vector<Rank> checked_members(const Hub& hub, const CollectivesOptions& options) {
  check_name("collectives", options.name);
  const std::string who = "collectives '" + options.name + "': ";
  if (options.bytes > kMaxCollectiveBytes)
    throw Error(who + "a call has up to " + std::to_string(kMaxCollectiveBytes) +
                " bytes (kMaxCollectiveBytes), not " + std::to_string(options.bytes));
  std::vector<Rank> members = options.members;
  for (Rank rank = 0; options.members.empty() && rank < hub.progress.size(); ++rank)
    if (hub.progress.contains(rank)) members.push_back(rank);
  const std::uint32_t most = hub.progress.capacity();
  std::vector<bool> seen(most);
  for (const Rank rank : members) {
    if (rank >= most)
      throw Error(who + "there is no member " + std::to_string(rank) + ", only " +
                  std::to_string(most) + " ranks that can be members");
    if (seen[rank]) throw Error(who + "member " + std::to_string(rank) + " is named twice");
    seen[rank] = true;
  }
  if (!seen[hub.fabric.rank()])
    throw Error(who + "this process, member " + std::to_string(hub.fabric.rank()) +
                ", is not of the set: only its members make it");
  return members;
}

std::uint32_t place_in(const std::vector<Rank>& members, Rank rank) noexcept {
  return static_cast<std::uint32_t>(std::ranges::find(members, rank) - members.begin());
}

std::uint64_t hash_of_members(const std::vector<Rank>& members) {
  std::string all;
  for (const Rank rank : members) all += ' ' + std::to_string(rank);
  return fnv1a(all);
}

/// Members of other sets of the same name do not find this one: its region has another name. The
/// fabric numbers the regions of one name, also those of former Containers, so members that make
/// such a set for the second time do not find one that was made for the first time.
std::unique_ptr<Site> site_of(Hub& hub, const CollectivesOptions& options,
                              const std::vector<Rank>& members, const CollectiveLayout& layout) {
  const std::uint64_t hash = hash_of_members(members);
  auto site = std::make_unique<Site>(
      hub, "collectives", options.name + ' ' + std::to_string(hash >> 32), layout.region_bytes(),
      "collectives 2\nbytes " + std::to_string(options.bytes) + "\nmembers " +
          std::to_string(hash));
  std::vector<Rank> partners;  // these write to this member
  const std::uint32_t self = place_in(members, hub.fabric.rank());
  for (std::uint32_t distance = 1; distance < layout.members; distance *= 2)
    for (const std::uint32_t away : {distance, layout.members - distance})
      partners.push_back(members[(self + away) % layout.members]);
  site->announce(partners);
  return site;
}

[[nodiscard]] std::uint64_t hash_of_call(const CollectiveCall& call) noexcept {
  std::uint64_t hash = static_cast<std::uint64_t>(call.kind) << 56 ^
                       std::uint64_t{call.root} << 32 ^ std::uint64_t{call.bytes};
  hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ULL;
  return hash >> (64 - call_word::kHashBits);
}

// --- what a call awaits --------------------------------------------------------------------------

/// Until another member's message of this call is here. The message comes before the member's end:
/// what has arrived counts.
class Arrival final : public remote::Waiter {
 public:
  Arrival(CollectivesState::Turn& turn, std::uint32_t from, std::uint64_t word_offset) noexcept
      : turn_(turn), from_(from), word_offset_(word_offset) {}

  [[nodiscard]] bool ready() noexcept override {
    CollectivesState& set = turn_.set;
    const std::uint64_t word =
        memory::load(*reinterpret_cast<const std::uint64_t*>(set.site->memory() + word_offset_));
    if (call_word::number_of(word) < turn_.number()) {
      set.waits_for = from_;
      status_ = set.fault(from_);
      return status_ != Status::ok;
    }
    // It may be of the next call already: the sender of a barrier's word goes on without us.
    const bool differs = call_word::number_of(word) == turn_.number() && word != turn_.word;
    if (differs) set.end(Status::refused, set.members[from_]);
    set.call_differs = differs;
    status_ = differs ? Status::refused : Status::ok;
    set.saw_ended(from_, turn_.number() - 1);
    return true;
  }
  [[nodiscard]] Status result() const noexcept { return status_; }

 private:
  CollectivesState::Turn& turn_;
  std::uint32_t from_;
  std::uint64_t word_offset_;
  Status status_ = Status::ok;
};

/// Posts operations to a member's part, and awaits that the fabric has taken them.
class Posting final : public remote::Waiter {
 public:
  Posting(CollectivesState& set, std::uint32_t to) noexcept : set_(set), to_(to) {}
  void add(const Operation& operation) noexcept {
    const bool is_copied = operation.bytes <= set_.hub.fabric.properties().max_inline_bytes;
    operations_.at(count_++) = is_copied ? operation : operation.notify(set_.sent);
  }

  [[nodiscard]] bool ready() noexcept override {
    if (status_ = set_.fault(to_); status_ != Status::ok) return true;
    const dunlin::Posted posted =
        set_.hub.fabric.post(std::span(operations_).subspan(accepted_, count_ - accepted_));
    accepted_ += posted.accepted;
    if (posted.all()) return true;
    set_.waits_for = to_;
    const bool for_now =
        posted.refusal == Refusal::queue_full || posted.refusal == Refusal::not_connected;
    if (!for_now) status_ = Status::out_of_range;
    return !for_now;
  }
  [[nodiscard]] Status result() const noexcept { return status_; }

 private:
  CollectivesState& set_;
  std::uint32_t to_;
  Status status_ = Status::ok;
  std::size_t count_ = 0;
  std::size_t accepted_ = 0;
  std::array<Operation, 2> operations_;
};

/// When a member may be read.
struct FaultGate {
  CollectivesState* set;
  std::uint32_t member;
  [[nodiscard]] Status now() const noexcept { return set->fault(member); }
  [[nodiscard]] Status refused() const noexcept { return now(); }
  void posted() const noexcept {}
  void taken() const noexcept {}
};

}  // namespace

// --- the set -------------------------------------------------------------------------------------

CollectivesState::CollectivesState(Containers& its_containers, const CollectivesOptions& options)
    : containers(its_containers),
      hub(its_containers.hub()),
      name(options.name),
      members(checked_members(hub, options)),
      self(place_in(members, hub.fabric.rank())),
      bytes(options.bytes),
      layout(static_cast<std::uint32_t>(members.size()), bytes),
      site(site_of(hub, options, members, layout)),
      counters(hub.counters, "collectives", name, members.size(), nullptr),
      ended(members.size()),
      message(CollectiveLayout::kLongOffset + round_up(bytes, kCacheLineBytes)),
      generation(hub.progress.generation() - 1) {}

CollectivesState::~CollectivesState() { hub.fabric.abandon(sent); }

std::uint32_t CollectivesState::place_of(Rank rank) const noexcept {
  return place_in(members, rank);
}

Status CollectivesState::fault(std::uint32_t member) noexcept {
  DUNLIN_ASSERT(member < members.size(), "CON-L4: members are counted by their place");
  if (status != Status::ok) return status;
  if (generation != hub.progress.generation()) {
    generation = hub.progress.generation();
    for (const Rank rank : members)
      if (!hub.progress.contains(rank)) {
        end(Status::lost, rank);
        return status;
      }
  }
  const Status of_part = site->fault_of_part(members[member]);
  if (of_part != Status::ok) end(of_part, members[member]);
  return of_part;
}

void CollectivesState::end(Status why, Rank because_of) noexcept {
  DUNLIN_ASSERT(why != Status::ok, "CON-L4: a set ends with a named error");
  if (status != Status::ok) return;
  status = why;
  ended_by = because_of;
}

/// CON-L4: members that wait for this one see it.
void CollectivesState::withdraw() noexcept {
  hub.fabric.abandon(sent);
  site.reset();
}

std::string CollectivesState::describe() const {
  const auto named = [this](Rank rank) {
    const std::string& its_name = hub.fabric.member_name(rank);
    return "member " + std::to_string(rank) + (its_name.empty() ? "" : " '" + its_name + "'");
  };
  const std::string who = "collectives '" + name + "': ";
  if (hub.progress.stopped()) return who + hub.progress.why_stopped();
  if (call_differs)
    return who + named(ended_by) + " has made another call as number " + std::to_string(calls) +
           ", or with another root or size: all members make the same calls in the same order";
  if (status == Status::refused) return who + hub.why_refused;
  if (status != Status::ok && ended_by == hub.fabric.rank())
    return who + "this process has given up call " + std::to_string(calls);
  if (status != Status::ok)
    return who + named(ended_by) + " has failed, or has left the set; make a new one without it";
  const std::string call = who + std::to_string(calls) + " calls";
  if (!in_call) return call + " have ended";
  const Rank rank = members[waits_for];
  const bool has_part = waits_for == self || site->connected(rank);
  return call + ", the last of which waits for " + named(rank) +
         (has_part ? "" : ", which has not made its part, of the same members");
}

// --- a call --------------------------------------------------------------------------------------

CollectivesState::Turn::Turn(CollectivesState& its_set, const CollectiveCall& its_call) noexcept
    : set(its_set),
      call(its_call),
      word(++set.calls << call_word::kHashBits | hash_of_call(call)),
      place((set.self + set.layout.members - set.place_of(call.root)) % set.layout.members),
      filled(call.bytes) {
  set.in_call = true;
  ++set.counters.one_sided;
}

CollectiveOutcome CollectivesState::Turn::outcome(Status how) noexcept {
  if (how != Status::ok) return {how};
  DUNLIN_ASSERT(set.sent.finished(), "FAB-F4: the message is overwritten by the next call");
  is_ok_ = true;
  // CON-L3: a release, behind the reads of what was sent here; wait_for_room() reads it.
  memory::store(*reinterpret_cast<std::uint64_t*>(set.site->memory() + CollectiveLayout::ended()),
                number());
  if (call.kind != CollectiveKind::broadcast && call.kind != CollectiveKind::gather)
    set.all_ended = number() - 1;  // CON-L1: all have begun this one
  const bool is_wanted =
      call.result != nullptr && (call.kind != CollectiveKind::gather || place == 0);
  if (is_wanted && filled > 0) {
    // The root's own value is the first of its tree.
    const std::size_t turned = call.kind == CollectiveKind::gather ? set.self * call.bytes : 0;
    std::memcpy(call.result + turned, set.payload(), filled - turned);
    if (turned > 0) std::memcpy(call.result, set.payload() + filled - turned, turned);
  }
  return {Status::ok, set.payload()};
}

CollectivesState::Turn::~Turn() {
  set.in_call = false;
  if (is_ok_) return;
  set.end(Status::lost, set.hub.fabric.rank());
  set.withdraw();
}

void CollectivesState::take_mine(const CollectiveCall& call) noexcept {
  DUNLIN_ASSERT(call.bytes <= bytes, "CON-L3: a value fits in a box");
  const bool has_some = call.kind != CollectiveKind::broadcast || call.root == members[self];
  if (has_some && call.bytes > 0) std::memcpy(payload(), call.mine, call.bytes);
}

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
      const Status handed_on = co_await send(turn, before(distance), round, turn.filled);
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
    const Status sent_on =
        co_await send(turn, behind(distance), layout.box_for_down(), turn.filled);
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

/// A short message is one line, with its word at the end (FAB-F2); a long one has its payload
/// behind that line.
void CollectivesState::prepare(const Turn& turn, std::size_t payload_bytes) noexcept {
  DUNLIN_ASSERT(sent.finished(), "FAB-F4: no message is changed while it is read");
  if (payload_bytes > 0 && payload_bytes <= CollectiveLayout::kShortBytes)
    std::memcpy(message.data(), payload(), payload_bytes);
  std::memcpy(message.data() + CollectiveLayout::kWordOffset, &turn.word, kWordBytes);
}

Protocol<Status> CollectivesState::send(Turn& turn, std::uint32_t to, std::uint32_t box,
                                        std::size_t payload_bytes) {
  if (!has_room(turn.number(), to)) {
    const Status has_some = co_await wait_for_room(turn.number(), to);
    if (has_some != Status::ok) co_return has_some;
  }
  DUNLIN_ASSERT(payload_bytes <= bytes && box <= layout.rounds, "CON-L3: a message has a box");
  const std::uint64_t slot = layout.slot(box, turn.number());
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

namespace dunlin {

Collectives::Collectives(Containers& containers, const CollectivesOptions& options)
    : state_(std::make_unique<container::CollectivesState>(containers, options)) {}

Collectives::~Collectives() {
  DUNLIN_ASSERT_ALWAYS(
      !state_->in_call,
      "a Collectives outlives its calls: wait for the last one, or destroy it first");
}
remote::Progress& Collectives::progress() const noexcept { return state_->hub.progress; }
std::span<const Rank> Collectives::members() const noexcept { return state_->members; }
std::uint32_t Collectives::calls_ahead() const noexcept { return state_->layout.slots; }
std::string Collectives::describe() const { return state_->describe(); }

void Collectives::check_room(const container::CollectiveCall& call, std::size_t elements) const {
  const bool takes_all =
      call.kind == container::CollectiveKind::all_gather || call.root == state_->hub.fabric.rank();
  if (takes_all && elements < size())
    throw Error("collectives '" + state_->name + "': a gather needs room for the " +
                std::to_string(size()) + " values of all members, not for " +
                std::to_string(elements));
}

bool Collectives::fits(const container::CollectiveCall& call) const noexcept {
  const bool is_list = call.kind == container::CollectiveKind::gather ||
                       call.kind == container::CollectiveKind::all_gather;
  return call.bytes <= state_->bytes / (is_list ? size() : 1);
}

remote::Protocol<container::CollectiveOutcome> Collectives::run(
    const container::CollectiveCall& call) {
  DUNLIN_ONE_THREAD(&state_->hub.fabric);
  container::CollectivesState& state = *state_;
  if (state.in_call)
    throw Error("collectives '" + state.name + "': call " + std::to_string(state.calls) +
                " has not ended; one call of a set is made after the other");
  if (call.kind == container::CollectiveKind::barrier) return state.barrier(call);
  if (state.place_of(call.root) == size())
    throw Error("collectives '" + state.name + "': the root, member " + std::to_string(call.root) +
                ", is not of the set");
  state.take_mine(call);
  return state.exchange(call);
}

void Collectives::give_up() noexcept {
  state_->end(remote::Status::lost, state_->hub.fabric.rank());
  state_->withdraw();
}

}  // namespace dunlin
