#include <algorithm>
#include <utility>

#include "fault_injection.hpp"
#include "remote/lock_queue.hpp"

namespace dunlin::remote {

using Phase = Node::Phase;

Locks::State::State(Progress& its_progress, LocksOptions its_options)
    : progress(its_progress),
      fabric(its_progress.fabric()),
      options(std::move(its_options)),
      node_words(
          fabric.allocate({.name = "locks:" + options.name, .bytes = kMaxLockNodes * kNodeBytes})),
      nodes(kMaxLockNodes),
      withdrawn(progress.size()),
      channel(progress, options.channel,
              [this](Rank from, std::span<const std::byte> message) { handle(from, message); }),
      frozen_in(progress.size()),
      reported_in(progress.size()),
      placed_in(progress.size()),
      resumed_in(progress.size()) {
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
  progress.check_is_founder("locks '" + state_->options.name + "'");
  progress.add(*this);
}

Locks::~Locks() {
  state_->progress.remove(*this);
  for (const std::uint32_t index : state_->active)
    state_->fabric.abandon(state_->nodes[index].done);
}

LockNode Locks::acquire(Rank home, std::uint64_t offset, bool only_if_free) noexcept {
  State& state = *state_;
  if (state.free_nodes.empty()) return {};
  const std::uint32_t index = state.free_nodes.back();
  state.free_nodes.pop_back();
  Node& node = state.nodes[index];
  node.phase = Phase::enter;
  node.only_if_free = only_if_free;
  node.given_up = node.recovered = node.unsettled = node.settled = node.posted = false;
  node.restarts = node.elsewhere = false;
  node.home = home;
  node.offset = offset;
  node.expected = 0;
  node.done.reset();
  // No member knows this node yet, and none that knew it before still writes to it.
  memory::store(state.own_word(index, kGrantWord), 0);
  memory::store(state.own_word(index, kNextWord), 0);
  state.active.push_back(index);
  if (!state.progress.contains(home)) {
    node.phase = Phase::lost;
    node.settled = true;
  }
  state.step(index);
  return {index};
}

Locks::Answer Locks::answer(LockNode node) const noexcept {
  switch (state_->nodes[node.index].phase) {
    case Phase::held:
      return Answer::held;
    case Phase::busy:
      return Answer::busy;
    case Phase::lost:
      return Answer::lost;
    default:
      return Answer::waiting;
  }
}

bool Locks::recovered(LockNode node) const noexcept { return state_->nodes[node.index].recovered; }
void Locks::set_recovered(LockNode node, bool whether) noexcept {
  state_->nodes[node.index].recovered = whether;
  state_->nodes[node.index].unsettled = whether;
}

void Locks::settle_also(LockNode which, Rank member, std::uint64_t offset) noexcept {
  Node& node = state_->nodes[which.index];
  node.elsewhere = true;
  node.also_at = member;
  node.also_offset = offset;
}

void Locks::release(LockNode which) noexcept {
  state_->nodes[which.index].given_up = true;
  state_->step(which.index);
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
           (node.unsettled || node.elsewhere || node.phase == Phase::settle_also);
  });
}

void Locks::manage(std::uint64_t offset) { state_->managed.insert(offset); }
void Locks::forget(std::uint64_t offset) noexcept { state_->managed.erase(offset); }
bool Locks::repairing() const noexcept { return state_->frozen; }

std::size_t Locks::active() const noexcept { return state_->active.size(); }
LockView Locks::view(std::size_t active) const noexcept {
  const Node& node = state_->nodes[state_->active[active]];
  return {.home = node.home,
          .offset = node.offset,
          .ticket = node.in_queue() ? ticket_of(node.word) : 0,
          .held = node.phase >= Phase::held};
}

std::size_t Locks::poll_part() {
  State& state = *state_;
  std::size_t done = state.channel.poll();
  for (std::size_t i = state.active.size(); i > 0; --i) {  // a step may take its node out
    const std::uint32_t index = state.active[i - 1];
    const Phase before = state.nodes[index].phase;
    state.step(index);
    if (state.nodes[index].phase != before) ++done;
  }
  if (state.frozen) done += state.go_on_with_repair();
  return done;
}

void Locks::members_changed() { state_->begin_repair(); }

// --- a node's way through the queue --------------------------------------------------------------

std::uint64_t& Locks::State::own_word(std::uint32_t index, std::uint64_t which) const noexcept {
  return *reinterpret_cast<std::uint64_t*>(node_words.memory().data() + index * kNodeBytes + which);
}

void Locks::State::free(std::uint32_t index) noexcept {
  nodes[index].phase = Phase::free;
  active.erase(std::find(active.begin(), active.end(), index));
  free_nodes.push_back(index);
}

bool Locks::State::post(Node& node, const Operation& operation) noexcept {
  if (frozen && !is_injected(FaultInjection::frozen_locks_go_on)) return false;
  node.done.reset();
  node.posted = fabric.post(operation.notify(node.done, Notify::remotely)).all();
  return node.posted;
}

/// Nodes of a member that has destroyed its part: nobody waits there any more.
bool Locks::State::is_lost_with_its_home(Node& node) noexcept {
  if (frozen || !withdrawn[node.home]) return false;
  node.phase = Phase::lost;
  node.settled = true;
  return true;
}

void Locks::State::step(std::uint32_t index) noexcept {
  Node& node = nodes[index];
  while (node.phase != Phase::free && node.done.finished()) {
    if (node.posted) {
      node.posted = false;
      take_result(index);
    } else if (!act(index)) {
      return;
    }
  }
}

void Locks::State::take_result(std::uint32_t index) noexcept {
  Node& node = nodes[index];
  const bool failed = node.done.failed();
  // The former home's step does not count; it is taken once more at the new one.
  if (node.restarts && (node.phase == Phase::enter || node.phase == Phase::settle)) return;
  switch (node.phase) {
    case Phase::enter:
      if (failed) {
        node.phase = Phase::lost;
      } else if (node.before == node.expected) {
        node.word =
            lock_word(is_free(node.before) ? 1 : ticket_of(node.before) + 1, address(index));
        node.recovered = node.before == kFreeAfterDeath;
        node.other = unpack(node.before);
        node.phase = is_free(node.before)   ? Phase::held
                     : is_known(node.other) ? Phase::link
                                            : Phase::lost;
        node.settled = node.phase == Phase::lost;
      } else if (node.only_if_free && !is_free(node.before)) {
        node.phase = Phase::busy;
      } else {
        node.expected = node.before;  // the lock's word has changed: again, from what it is now
      }
      return;
    case Phase::link:
      node.phase = Phase::wait;  // if the predecessor has failed, the repair finds this node
      return;
    case Phase::settle_also:
      node.elsewhere = false;  // if it has failed, nothing lands there any more
      node.phase = Phase::held;
      return;
    case Phase::settle:
      node.unsettled = false;
      node.phase = failed ? Phase::lost : Phase::leave;
      return;
    case Phase::leave:
      if (failed) {
        node.phase = Phase::lost;
      } else if (node.before == node.word) {
        free(index);
      } else {
        node.phase = Phase::await_next;
      }
      return;
    case Phase::grant:
      if (failed) {
        node.phase = Phase::stranded;
      } else {
        free(index);
      }
      return;
    default:
      return;
  }
}

bool Locks::State::act(std::uint32_t index) noexcept {
  Node& node = nodes[index];
  switch (node.phase) {
    case Phase::enter: {
      if (node.given_up) {
        if (node.restarts) return false;  // its former successor may still write to it
        free(index);
        return true;
      }
      const std::uint32_t ticket = is_free(node.expected) ? 1 : ticket_of(node.expected) + 1;
      if (post(node, compare_swap(node.home, options.words, node.offset, node.expected,
                                  lock_word(ticket, address(index)), &node.before)))
        return true;
      if (!withdrawn[node.home]) return false;
      node.phase = Phase::lost;
      node.settled = true;
      return true;
    }
    case Phase::link:
      node.message = pack(address(index));
      if (post(node, write(node.other.member, node_words.id(),
                           node.other.node * kNodeBytes + kNextWord, &node.message, 8)))
        return true;
      if (!withdrawn[node.other.member]) return false;
      node.phase = Phase::wait;
      return true;
    case Phase::wait: {
      // Pairs with the predecessor's write of kGranted, which comes after all that it did under
      // the lock was placed.
      const std::uint64_t grant = memory::load(own_word(index, kGrantWord));
      if (grant == 0) return false;
      node.recovered = grant == kGrantedAfterDeath;
      node.phase = Phase::held;
      return true;
    }
    case Phase::held:
      if (!node.given_up) return false;
      if (is_injected(FaultInjection::given_up_is_not_settled))
        node.elsewhere = node.unsettled = false;
      node.phase = node.elsewhere   ? Phase::settle_also
                   : node.unsettled ? Phase::settle
                                    : Phase::leave;
      return true;
    case Phase::settle_also:
      if (post(node, fetch_add(node.also_at, options.words, node.also_offset, 0, &node.before)))
        return true;
      if (!frozen && withdrawn[node.also_at]) {
        node.elsewhere = false;
        node.phase = Phase::held;
        return true;
      }
      return false;
    case Phase::settle:  // a signal behind all that was posted to the home (F1)
      return post(node, fetch_add(node.home, options.words, node.offset, 0, &node.before)) ||
             is_lost_with_its_home(node);
    case Phase::leave:
      if (memory::load(own_word(index, kNextWord)) != 0) {
        node.phase = Phase::grant;
        return true;
      }
      return post(node, compare_swap(node.home, options.words, node.offset, node.word,
                                     node.recovered ? kFreeAfterDeath : 0, &node.before)) ||
             is_lost_with_its_home(node);
    case Phase::await_next:
      if (memory::load(own_word(index, kNextWord)) == 0) return false;
      node.phase = Phase::grant;
      return true;
    case Phase::grant:
      node.other = unpack(memory::load(own_word(index, kNextWord)));
      if (!is_known(node.other)) {  // no member writes this
        node.phase = Phase::stranded;
        return true;
      }
      node.message = node.recovered ? kGrantedAfterDeath : kGranted;
      if (post(node, write(node.other.member, node_words.id(),
                           node.other.node * kNodeBytes + kGrantWord, &node.message, 8)))
        return true;
      if (!withdrawn[node.other.member]) return false;
      node.phase = Phase::stranded;
      return true;
    case Phase::busy:
      if (node.given_up) free(index);
      return false;
    case Phase::lost:
      if (node.given_up && node.settled) free(index);
      return false;
    case Phase::stranded:
    case Phase::free:
      return false;
  }
  return false;
}

}  // namespace dunlin::remote
