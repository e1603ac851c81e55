#include <utility>

#include "assert.hpp"
#include "segment/space.hpp"

/// What asks other members: allocate, release, find, and the first use of a key.
namespace dunlin {

using remote::Protocol;
using remote::Status;
using remote::Until;
using Type = SegmentMessage::Type;

// --- questions -----------------------------------------------------------------------------------

Asked::Asked(SegmentState& its_space, Rank its_member, SegmentMessage& its_message)
    : space(its_space), member(its_member), message(its_message) {
  message.id = space.next_id++;
  const bool is_new = space.asked.emplace(message.id, this).second;
  DUNLIN_ASSERT_ALWAYS(is_new && message.id != 0, "SEG-2: an answer is for one question");
}

Asked::~Asked() {
  DUNLIN_ASSERT(space.asked.contains(message.id), "SEG-2: an answer is for one question");
  space.asked.erase(message.id);
}

/// A message on a channel that the other side has not made would hold up all that follow it.
Protocol<Status> SegmentState::ask(Rank member, SegmentMessage& message) {
  DUNLIN_ASSERT(member < progress.capacity(), "SEG-4: members alone have segments, and are asked");
  co_await Until([&] {
    return gone(member) || refused[member] || never_comes_in() ||
           (is_announced && fabric.connected(member, pool.id()));
  });
  if (gone(member) || never_comes_in()) co_return Status::lost;
  if (refused[member]) co_return Status::refused;
  Asked question(*this, member, message);
  channel.send(member, message);
  co_await Until([&] { return question.answered || gone(member); });
  co_return question.answered ? Status::ok : Status::lost;
}

// --- the first use of a key ----------------------------------------------------------------------

KnownSegment* SegmentState::find_known(Key key) noexcept {
  if (key.generation() == 0 || key.home() >= known_at.size()) return nullptr;
  if (key.slot() >= known_at[key.home()].size()) return nullptr;
  KnownSegment* const segment = known_at[key.home()][key.slot()].get();
  if (segment == nullptr || segment->key != key) return nullptr;
  return lately_used[(key.slot() ^ key.home()) % kLatelyUsed] = segment;
}

Status SegmentState::look(Key key, std::uint64_t owner) noexcept {
  const KnownSegment* const segment = known(key);
  if (segment != nullptr && segment->lost) return Status::lost;
  if (segment != nullptr)
    return !segment->closing || segment->is_locked_by(owner) ? Status::ok : Status::released;
  if (!has_come(key.home())) return Status::unknown;
  const auto& slots = known_at[key.home()];
  const bool released_here = key.slot() < slots.size() && slots[key.slot()] != nullptr &&
                             slots[key.slot()]->released >= key.generation();
  return released_here && key.generation() != 0 ? Status::released : Status::unknown;
}

/// If the home is gone, the member with a second copy says so when it is asked. If the members
/// change meanwhile, all are asked again. A member that fails without an answer may have had the
/// primary, and another its copy: nothing is lost before the members have agreed on it.
Protocol<Status> SegmentState::resolve(Key key, std::uint64_t owner) {
  if (!has_come(key.home()) || key.generation() == 0) co_return Status::unknown;
  std::uint32_t searched = 0;  // members that were asked in the home's place
  std::uint64_t generation = progress.generation();
  for (;;) {
    Rank member = key.home();
    if (gone(member)) {
      co_await Until([&] { return !is_undecided() && (is_announced || never_comes_in()); });
      if (std::exchange(generation, progress.generation()) != progress.generation()) searched = 0;
      do {
        if (++searched >= progress.capacity()) co_return Status::lost;
        member = (key.home() + searched) % progress.capacity();
      } while (gone(member) || refused[member] || !is_here(member));
    }
    SegmentMessage message;
    do {  // `busy`: it has the second copy, and takes the segment over once it learns that it must
      const Rank primary = message.primary;
      if (has_come(primary) && !gone(primary)) member = primary;
      message = {.type = Type::look_up, .key = key.value};
      const Status answered = co_await ask(member, message);
      if (answered == Status::refused || answered == Status::no_memory || never_comes_in())
        co_return answered;
      if (answered != Status::ok) message.status = Status::unknown;
    } while (message.status == Status::busy);
    const Status status = look(key, owner);
    DUNLIN_ASSERT(status != Status::ok || known(key) != nullptr,
                  "SEG-1: a key that is found is known");
    if (status != Status::unknown) co_return status;
    if (message.status == Status::ok) co_return Status::unknown;  // a peer's nonsense
    const bool search_on = message.status == Status::unknown && gone(key.home());
    if (!search_on) co_return message.status;
  }
}

/// Some have failed as seen from here, but the members have not agreed yet: the consequences have
/// to wait.
bool SegmentState::is_undecided() const noexcept {
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (fabric.failed(rank) && !withdrawn[rank] && progress.contains(rank)) return true;
  return false;
}

// --- allocate, find, release ---------------------------------------------------------------------

Protocol<Outcome> SegmentState::allocate(SegmentRequest request, std::string name) {
  DUNLIN_ASSERT_ALWAYS(request.bytes > 0 && request.copies >= 1 && request.copies <= 2 &&
                           name.size() <= kMaxSegmentNameBytes &&
                           request.place < progress.capacity(),
                       "the caller has checked the place, and by fault_of() the rest");
  Transfer one(*this, request);
  SegmentMessage message{.type = Type::allocate,
                         .coherence = request.coherence,
                         .bytes = request.bytes,
                         .stale_ns = request.stale_ns,
                         .versions = request.versions,
                         .copies = static_cast<std::uint8_t>(request.copies)};
  message.set_name(name);
  struct Made {  // released again unless it is handed out, with its name
    SegmentState& space;
    const SegmentMessage& message;
    const std::string& name;
    Rank home;
    Key key = {};
    bool handed_out = false;
    ~Made() {
      const bool came = message.type == Type::allocated && message.status == Status::ok;
      if (handed_out || (key.value == 0 && !came)) return;
      if (key.value != 0) {  // behind the binding
        SegmentMessage unbind{.type = Type::unbind, .key = key.value};
        unbind.set_name(name);
        space.channel.send(space.directory_of(name), unbind);
      }
      const Key made = key.value != 0 ? key : Key{message.key};
      space.channel.send(home, SegmentMessage{.type = Type::release, .key = made.value});
    }
  } made{*this, message, name, request.place};
  Status status = co_await ask(request.place, message);
  if (status == Status::ok) status = message.status;
  made.handed_out = status != Status::ok || name.empty();
  if (status != Status::ok) co_return one.ended(status);
  one.outcome.key = Key{message.key};
  if (name.empty()) co_return one.ended(Status::ok);

  made.key = one.outcome.key;
  message = {.type = Type::bind, .key = made.key.value};
  message.set_name(name);
  message.copies = static_cast<std::uint8_t>(request.copies);
  status = co_await ask(directory_of(name), message);
  if (status == Status::ok) status = message.status;
  made.handed_out = status == Status::ok;
  co_return one.ended(status);
}

Protocol<Outcome> SegmentState::find(SegmentRequest request, std::string name) {
  Transfer one(*this, request);
  SegmentMessage message{.type = Type::find};
  message.set_name(name);
  Status status = co_await ask(directory_of(name), message);
  if (status == Status::ok) {
    status = message.status;
    one.outcome.key = Key{message.key};
  }
  co_return one.ended(status);
}

/// The holder releases it once the members that know it have dropped it; then the name goes.
Protocol<Outcome> SegmentState::release(SegmentRequest request) {
  Transfer one(*this, request);
  const Key key = request.key;
  if (!has_come(key.home()) || key.generation() == 0) co_return one.ended(Status::unknown);
  if (known(key) == nullptr && gone(key.home())) {
    const Status found = co_await resolve(key, request.owner);
    if (found != Status::ok) co_return one.ended(found);
  }
  Rank holder = key.home();
  if (KnownSegment* const segment = known(key); segment != nullptr) {
    co_await Until([&] { return !segment->unsure || segment->lost; });
    if (segment->lost) co_return one.ended(Status::lost);
    holder = segment->primary;
    if (!gone(holder) && segment->is_locked_by(request.owner))
      locks.release(std::exchange(segment->lock, {}));
  }
  SegmentMessage message{.type = Type::release, .key = key.value};
  Status status = co_await ask(holder, message);
  if (status == Status::ok) status = message.status;
  if (status != Status::ok || message.name_bytes == 0) co_return one.ended(status);
  message.type = Type::unbind;
  const Status unbound = co_await ask(directory_of(message.name_text()), message);
  co_return one.ended(unbound == Status::ok ? message.status : Status::ok);
}

}  // namespace dunlin
