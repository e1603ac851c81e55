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
      "collectives 3\nbytes " + std::to_string(options.bytes) + "\nmembers " +
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
