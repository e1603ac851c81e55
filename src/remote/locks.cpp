#include <algorithm>
#include <utility>

#include "assert.hpp"
#include "remote/lock_queue.hpp"

namespace dunlin::remote {

namespace {

/// A step that a repair has overtaken: what it was for may be different now.
constexpr Status kOvertaken = Status::conflict;

}  // namespace

Locks::State::State(Progress& its_progress, LocksOptions its_options)
    : progress(its_progress),
      fabric(its_progress.fabric()),
      options(std::move(its_options)),
      node_words(
          fabric.allocate({.name = "locks:" + options.name, .bytes = kMaxLockNodes * kNodeBytes})),
      nodes(kMaxLockNodes),
      withdrawn(progress.capacity()),
      channel(
          progress, options.channel,
          [this](Rank from, std::span<const std::byte> message) { handle(from, message); },
          progress.capacity()),
      frozen_in(progress.capacity()),
      reported_in(progress.capacity()),
      placed_in(progress.capacity()),
      resumed_in(progress.capacity()),
      takes_part(progress.capacity()),
      asked_in(progress.capacity()),
      entered_in(progress.capacity()),
      admitted_in(progress.capacity()) {
  std::fill_n(takes_part.begin(), progress.size(), true);
  frozen = !has_come_in();
  for (std::uint32_t i = kMaxLockNodes; i > 0; --i) free_nodes.push_back(i - 1);
  active.reserve(kMaxLockNodes);
  subscription = fabric.subscribe([this](const Event& event) {
    if (event.kind == Event::Kind::region_withdrawn && event.region == options.words &&
        event.peer < withdrawn.size())
      withdrawn[event.peer] = true;
  });
  fabric.announce(node_words);
  generation = progress.generation();
}

Locks::Locks(Progress& progress, LocksOptions options)
    : state_(std::make_unique<State>(progress, std::move(options))) {
  progress.add(*this);
}

Locks::~Locks() {
  state_->protocols.end_all(Status::abandoned);
  state_->progress.remove(*this);
}

std::uint64_t Locks::enter(std::byte* word) noexcept {
  const State& state = *state_;
  if (!state.coherent || state.rests() || state.free_nodes.empty()) return 0;
  const std::uint64_t entered = lock_word(1, state.address(state.free_nodes.back()));
  // A lock that is held is only looked at: its line stays with the member that has it. Nobody waits
  // for a lock's word: the home may sleep.
  if (memory::load(*reinterpret_cast<const std::uint64_t*>(word)) != 0) return 0;
  return memory::compare_swap(word, 0, entered) == 0 ? entered : 0;
}

LockNode Locks::keep(std::uint64_t entered, Rank home, std::uint64_t offset) noexcept {
  const LockNode kept = state_->take_node(home, offset);
  Node& node = state_->nodes[kept.index];
  DUNLIN_ASSERT(unpack(entered) == state_->address(kept.index),
                "REM-8: the lock's word names the node that keeps it");
  node.word = entered;
  node.answer = Answer::held;
  return kept;
}

/// No member looks at the node of a lock that nobody else has wanted meanwhile.
void Locks::leave(std::byte* word, std::uint64_t entered, Rank home,
                  std::uint64_t offset) noexcept {
  const State& state = *state_;
  if (memory::load(state.own_word(state.free_nodes.back(), kNextWord)) == 0 &&
      memory::compare_swap(word, entered, 0) == entered)
    return;
  release(keep(entered, home, offset));
}

LockNode Locks::acquire(Rank home, std::uint64_t offset, bool only_if_free) noexcept {
  State& state = *state_;
  if (state.free_nodes.empty()) return {};
  if (std::byte* const word = state.mapped(home, state.options.words, offset); word != nullptr)
    if (const std::uint64_t entered = enter(word); entered != 0) return keep(entered, home, offset);
  const LockNode taken = state.take_node(home, offset);
  Node& node = state.nodes[taken.index];
  node.only_if_free = only_if_free;
  if (!state.protocols.start(state.get(taken.index), node.protocol)) {
    state.free(taken.index);  // there is no memory
    return {};
  }
  return taken;
}

Locks::Answer Locks::answer(LockNode node) const noexcept {
  const Node& one = state_->nodes[node.index];
  DUNLIN_ASSERT(!one.given_up, "REM-8: a caller uses no node that it has given back");
  return one.lost ? Answer::lost : one.answer;
}

bool Locks::recovered(LockNode node) const noexcept {
  DUNLIN_ASSERT(state_->nodes[node.index].answer == Answer::held,
                "REM-12: only a holder is told that the last one died");
  return state_->nodes[node.index].recovered;
}

void Locks::set_recovered(LockNode node, bool whether) noexcept {
  DUNLIN_ASSERT(
      state_->nodes[node.index].answer == Answer::held && !state_->nodes[node.index].given_up,
      "REM-12: the holder alone says in what state it leaves the data");
  state_->nodes[node.index].recovered = whether;
  state_->nodes[node.index].unsettled = whether;
}

void Locks::settle_also(LockNode which, Rank member, std::uint64_t offset) noexcept {
  Node& node = state_->nodes[which.index];
  DUNLIN_ASSERT(!node.given_up && member < state_->withdrawn.size(),
                "REM-8: the holder says, before it goes, where its operations may be under way");
  node.elsewhere = true;
  node.also_at = member;
  node.also_offset = offset;
}

void Locks::release(LockNode which) noexcept {
  State& state = *state_;
  Node& node = state.nodes[which.index];
  DUNLIN_ASSERT(!node.given_up, "REM-8: a lock is given back once");
  node.given_up = true;
  if (node.protocol != nullptr) return state.protocols.advance(*node.protocol);
  const bool nothing_under_way = node.in_queue() && !node.unsettled && !node.elsewhere;
  if (nothing_under_way && state.leaves_at_once(which.index)) return state.free(which.index);
  if (!state.protocols.start(state.give_back(which.index), node.protocol)) state.owes = true;
}

bool Locks::idle(Rank home, std::uint64_t offset) const noexcept {
  return std::none_of(state_->active.begin(), state_->active.end(), [&](std::uint32_t index) {
    const Node& node = state_->nodes[index];
    return node.home == home && node.offset == offset;
  });
}

bool Locks::settling(Rank home, std::uint64_t offset) const noexcept {
  return std::any_of(state_->active.begin(), state_->active.end(), [&](std::uint32_t index) {
    const Node& node = state_->nodes[index];
    return node.home == home && node.offset == offset && node.given_up &&
           (node.unsettled || node.elsewhere);
  });
}

void Locks::manage(std::uint64_t offset) {
  DUNLIN_ASSERT_ALWAYS(
      offset % kWordBytes == 0 && offset + kWordBytes <= state_->options.own_words.size(),
      "REM-8: a lock is a word of its home's memory");
  const bool is_new = state_->managed.insert(offset).second;
  DUNLIN_ASSERT_ALWAYS(is_new, "REM-8: a word is one lock at a time");
}

void Locks::forget(std::uint64_t offset) noexcept {
  const bool was_there = state_->managed.erase(offset) == 1;
  DUNLIN_ASSERT_ALWAYS(was_there, "REM-8: a lock ends once");
}

bool Locks::repairing() const noexcept { return state_->frozen; }
bool Locks::takes_part(Rank rank) const noexcept { return state_->takes_part[rank]; }

std::size_t Locks::active() const noexcept { return state_->active.size(); }
LockView Locks::view(std::size_t active) const noexcept {
  const Node& node = state_->nodes[state_->active[active]];
  return {.home = node.home,
          .offset = node.offset,
          .ticket = node.in_queue() ? ticket_of(node.word) : 0,
          .held = node.answer == Answer::held};
}

std::size_t Locks::poll_part() {
  State& state = *state_;
  std::size_t done = state.channel.poll();
  if (std::exchange(state.owes, false)) state.give_back_all();
  done += state.protocols.advance();
  if (state.anybody_enters) done += state.admit_those_that_enter();
  if (!state.has_come_in()) return done + state.come_in();
  if (state.frozen) done += state.go_on_with_repair();
  return done;
}

void Locks::members_changed() { state_->begin_repair(); }

// --- a node's way through the queue --------------------------------------------------------------

std::uint64_t& Locks::State::own_word(std::uint32_t index, std::uint64_t which) const noexcept {
  DUNLIN_ASSERT(index < kMaxLockNodes && which < kNodeBytes, "REM-8: a node has words of its own");
  return *reinterpret_cast<std::uint64_t*>(node_words.memory().data() + index * kNodeBytes + which);
}

LockNode Locks::State::take_node(Rank home, std::uint64_t offset) noexcept {
  const std::uint32_t index = free_nodes.back();
  Node& node = nodes[index];
  DUNLIN_ASSERT(node.word == 0 && !node.posted && !node.given_up,
                "REM-8: a node is for one acquisition at a time");
  node.home = home;
  node.offset = offset;
  free_nodes.pop_back();
  active.push_back(index);
  return {index};
}

/// No member knows the node now, and none that knew it before still writes to it.
void Locks::State::reset_words(std::uint32_t index) noexcept {
  memory::store(own_word(index, kGrantWord), 0);
  memory::store(own_word(index, kNextWord), 0);
}

void Locks::State::free(std::uint32_t index) noexcept {
  DUNLIN_ASSERT(!nodes[index].posted, "REM-3: nothing is under way for a node that is free");
  nodes[index] = {};
  reset_words(index);
  if (active.back() == index)  // as with a lock that is held for one call
    active.pop_back();
  else
    active.erase(std::find(active.begin(), active.end(), index));
  free_nodes.push_back(index);
  DUNLIN_ASSERT(active.size() + free_nodes.size() == kMaxLockNodes,
                "REM-8: a node is free, or for one acquisition");
}

Status Locks::State::Gate::now() const noexcept {
  if (repairs != locks->repairs) return kOvertaken;
  return locks->rests() ? Status::under_way : Status::ok;
}

bool Locks::State::rests() const noexcept { return frozen; }

/// Gives back the nodes for whose release there was no memory.
void Locks::State::give_back_all() noexcept {
  for (std::size_t i = active.size(); i > 0 && !owes; --i) {  // one may end at once
    Node& node = nodes[active[i - 1]];
    if (node.given_up && node.protocol == nullptr)
      owes = !protocols.start(give_back(active[i - 1]), node.protocol);
  }
}

std::byte* Locks::State::mapped(Rank home, RegionId region, std::uint64_t offset) const noexcept {
  if (!coherent || rests()) return nullptr;
  const std::span<std::byte> memory = fabric.reach(home, region);
  return offset + kWordBytes <= memory.size() && offset % kWordBytes == 0 ? memory.data() + offset
                                                                          : nullptr;
}

bool Locks::State::leaves_at_once(std::uint32_t index) noexcept {
  Node& node = nodes[index];
  DUNLIN_ASSERT(node.given_up && node.answer == Answer::held,
                "REM-8: a holder that has given the lock up hands it on");
  const std::uint64_t next = memory::load(own_word(index, kNextWord));
  if (next == 0) {
    std::byte* const word = mapped(node.home, options.words, node.offset);
    return word != nullptr &&
           memory::compare_swap(word, node.word, node.recovered ? kFreeAfterDeath : 0) == node.word;
  }
  const NodeAddress to = unpack(next);
  if (!is_known(to)) return false;
  std::byte* const grant = mapped(to.member, node_words.id(), to.node * kNodeBytes + kGrantWord);
  if (grant == nullptr) return false;
  memory::store(*reinterpret_cast<std::uint64_t*>(grant),
                node.recovered ? kGrantedAfterDeath : kGranted);
  fabric.ring(to.member);
  return true;
}

Protocol<Status> Locks::State::get(std::uint32_t index) {
  Node& node = nodes[index];
  DUNLIN_ASSERT(node.word == 0 && !node.given_up, "REM-9: a node enters a queue once");
  Status status = Status::lost;
  if (progress.contains(node.home))
    status = co_await join_queue(index);
  else
    node.quiet = true;
  while (status == Status::no_memory || status == Status::lost) {
    if (status == Status::no_memory) {
      co_await NextPoll();
    } else {  // unless it has a copy elsewhere
      node.answer = Answer::lost;
      co_await Until([&] { return node.restarts || node.given_up; });
      if (!node.restarts) break;
      node.answer = Answer::waiting;
    }
    status = co_await join_queue(index);
  }
  if (status == Status::ok && !is_free(node.before)) {
    // Pairs with the predecessor's write of kGranted, which comes after all that it did under the
    // lock was placed.
    std::uint64_t granted = 0;
    co_await Until([&] {
      granted = memory::load(own_word(index, kGrantWord));
      return granted != 0 || node.lost;
    });
    node.recovered = granted == kGrantedAfterDeath;
  }
  if (status == Status::ok) node.answer = Answer::held;
  if (status == Status::busy) node.answer = Answer::busy;
  DUNLIN_ASSERT(node.given_up || node.answer != Answer::waiting,
                "REM-1: an acquisition that was not given up ends with an answer");
  if (node.given_up) {
    Status given_back = co_await give_back(index);
    while (given_back == Status::no_memory) {
      co_await NextPoll();
      given_back = co_await give_back(index);
    }
  }
  node.protocol = nullptr;
  co_return status;
}

/// Requires that it was given up. The node is free in the end.
Protocol<Status> Locks::State::give_back(std::uint32_t index) {
  Node& node = nodes[index];
  DUNLIN_ASSERT(node.given_up, "REM-8: a lock is kept until it is given back");
  Status status = Status::ok;
  do {
    if (status == Status::no_memory) co_await NextPoll();
    status = Status::ok;
    if (node.in_queue() && (node.elsewhere || node.unsettled)) status = co_await settle(index);
    if (node.in_queue() && status == Status::ok) status = co_await leave_queue(index);
  } while (status == Status::no_memory);
  if (node.lost || status != Status::ok || node.answer == Answer::lost) {
    node.answer = Answer::lost;
    node.word = 0;
    co_await Until([&] { return node.quiet; });
  }
  DUNLIN_ASSERT(node.lost || node.answer == Answer::lost || (!node.unsettled && !node.elsewhere),
                "REM-3: what was posted under the lock has landed when its node is free");
  free(index);
  co_return status;
}

Protocol<Status> Locks::State::join_queue(std::uint32_t index) {
  Node& node = nodes[index];
  std::uint64_t expected = node.before, in_repair = 0;
  while (node.word == 0) {
    // While it restarts, its former successor may still write to it.
    co_await Until([&] { return !rests() && !node.restarts && (!node.parked || node.given_up); });
    if (node.given_up) co_return Status::abandoned;
    if (node.lost) co_return Status::lost;
    if (node.only_if_free && !is_free(expected)) co_return Status::busy;
    in_repair = repairs;
    const std::uint32_t ticket = is_free(expected) ? 1 : ticket_of(expected) + 1;
    const std::uint64_t word = lock_word(ticket, address(index));
    const Status swapped = co_await step(
        node, repairs, node.home,
        compare_swap(node.home, options.words, node.offset, expected, word, &node.before));
    if (node.restarts || swapped == kOvertaken) {  // what the former home has said does not count
      expected = 0;
    } else if (swapped != Status::ok) {
      node.quiet = withdrawn[node.home] || swapped == Status::out_of_range;
      co_return Status::lost;
    } else if (node.before == expected) {
      node.word = word;
    } else {
      expected = node.before;  // the lock's word has changed: again, from what it is now
    }
  }
  DUNLIN_ASSERT(!node.only_if_free || is_free(node.before),
                "REM-9: a node that takes only a free lock follows no other node");
  node.recovered = node.before == kFreeAfterDeath;
  if (is_free(node.before)) co_return Status::ok;
  const NodeAddress predecessor = unpack(node.before);
  if (!is_known(predecessor)) {  // no member has written this
    node.word = 0;
    node.quiet = true;
    co_return Status::lost;
  }
  node.message = pack(address(index));
  // If the predecessor has failed, the repair finds this node.
  static_cast<void>(
      co_await step(node, in_repair, predecessor.member,
                    write(predecessor.member, node_words.id(),
                          predecessor.node * kNodeBytes + kNextWord, &node.message, 8)));
  co_return Status::ok;
}

Protocol<Status> Locks::State::settle(std::uint32_t index) {
  Node& node = nodes[index];
  DUNLIN_ASSERT(node.given_up && node.in_queue(),
                "REM-8: a holder settles before it hands the lock on");
  while (node.elsewhere) {
    const Status landed =
        co_await step(node, repairs, node.also_at,
                      fetch_add(node.also_at, options.words, node.also_offset, 0, &node.before));
    if (landed == kOvertaken)
      co_await thawed();
    else
      node.elsewhere = false;  // if that member has failed, nothing lands there any more
  }
  while (node.unsettled && !node.lost) {  // a signal behind all that was posted to the home (F1)
    const Status landed =
        co_await step(node, repairs, node.home,
                      fetch_add(node.home, options.words, node.offset, 0, &node.before));
    if (node.restarts || landed == kOvertaken) {
      co_await thawed();
    } else {
      node.unsettled = false;
      if (landed != Status::ok) co_return landed;
    }
  }
  co_return Status::ok;
}

Protocol<Status> Locks::State::leave_queue(std::uint32_t index) {
  Node& node = nodes[index];
  DUNLIN_ASSERT(node.answer == Answer::held, "REM-8: the holder alone hands the lock on");
  DUNLIN_ASSERT(!node.unsettled && !node.elsewhere,
                "REM-8: what was posted under the lock has landed when it is handed on");
  while (!node.lost) {
    co_await thawed();
    const std::uint64_t in_repair = repairs;
    if (memory::load(own_word(index, kNextWord)) == 0) {
      const Status swapped =
          co_await step(node, repairs, node.home,
                        compare_swap(node.home, options.words, node.offset, node.word,
                                     node.recovered ? kFreeAfterDeath : 0, &node.before));
      if (swapped == kOvertaken) continue;
      if (swapped != Status::ok) {
        node.quiet = withdrawn[node.home] || swapped == Status::out_of_range;
        co_return swapped;
      }
      if (node.before == node.word) co_return Status::ok;
      co_await Until([&] {  // another has entered, and writes its address
        return memory::load(own_word(index, kNextWord)) != 0 || repairs != in_repair;
      });
      if (repairs != in_repair) continue;
    }
    const NodeAddress next = unpack(memory::load(own_word(index, kNextWord)));
    Status granted = Status::lost;
    if (is_known(next)) {  // else no member has written this
      node.message = node.recovered ? kGrantedAfterDeath : kGranted;
      granted = co_await step(node, in_repair, next.member,
                              write(next.member, node_words.id(),
                                    next.node * kNodeBytes + kGrantWord, &node.message, 8));
    }
    if (granted == kOvertaken) continue;
    if (granted != Status::ok) {
      node.stranded = true;
      co_await Until([&] { return !node.stranded; });
    }
    co_return Status::ok;
  }
  co_return Status::lost;
}

}  // namespace dunlin::remote
