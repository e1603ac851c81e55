#include "store/rescue.hpp"

#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/state.hpp"

namespace dunlin::store {

using remote::Status;

void Rescue::begin() {
  stop();
  keys_.clear();
  stage_ = Stage::look;
}

void Rescue::stop() {
  call_.abandon();
  is_under_way_ = false;
  move_.stop();
  raises_.begin();
  stage_ = Stage::done;
}

Status Rescue::step() {
  for (;;) switch (stage_) {
      case Stage::look:
        if (const Status status = look(); status != Status::ok) return status;
        position_ = 0;
        stage_ = parts_.empty() ? Stage::raise : Stage::lock;
        if (stage_ == Stage::lock) move_.begin(position_, {});
        break;
      case Stage::lock: {
        const Status status = move_.step();
        if (status == Status::under_way) return status;
        if (status != Status::ok) {
          move_.begin(position_, {});
          return Status::busy;
        }
        collect();
        position_ = move_.end();
        move_.release(memory::load(word_at(move_.main() + kVersionAt)));
        stage_ = Stage::release;
        break;
      }
      case Stage::release:
        if (move_.released() != Status::ok) return Status::under_way;
        stage_ = Stage::copy;
        break;
      case Stage::copy: {
        if (const Status status = copy(); status != Status::ok) return status;
        const bool goes_on = position_ < state_.homes[state_.fabric.rank()].moved_below;
        stage_ = goes_on ? Stage::lock : Stage::raise;
        if (!goes_on) claim_all();
        if (goes_on) move_.begin(position_, {});
        break;
      }
      case Stage::raise:
        if (const Status status = raises_.step(); status != Status::ok) return status;
        // They have more now, of other members, too, that give at the same time.
        for (State::Home& home : state_.homes) home.covered_in = home.covered_read_in = UINT64_MAX;
        stage_ = Stage::done;
        break;
      case Stage::done:
        return Status::ok;
    }
}

/// What other members have, as far as it matters here.
Status Rescue::learn(std::uint64_t from) {
  const State::Home& own = state_.homes[state_.fabric.rank()];
  if (from < own.drained_below || from >= own.moved_below) return Status::ok;
  for (Rank home = 0; home < state_.members; ++home) {
    if (const Status found = state_.find_homes(home, from); found != Status::ok) return found;
    const Rank to = state_.first_of(home, from);
    if (to == state_.fabric.rank() || !state_.has_taken_over(home, from, to)) continue;
    if (state_.progress.is_gone(to)) continue;
    const Status known = state_.know_index(to);
    if (known != Status::ok) return known == Status::under_way ? known : Status::busy;
    if (const Status covered = state_.know_covered(to); covered != Status::ok) return covered;
  }
  return Status::ok;
}

/// Of which homes it is the only one left that has keys which it has moved, and who takes over.
Status Rescue::look() {
  const State::Home& own = state_.homes[state_.fabric.rank()];
  parts_.clear();
  raises_.begin();
  std::vector<std::uint64_t> bounds;
  while (bounds != state_.bounds()) {  // there are more of them when more is known
    bounds = state_.bounds();
    for (const std::uint64_t from : bounds)
      if (const Status status = learn(from); status != Status::ok) return status;
  }
  for (Rank home = 0; home < state_.members; ++home)
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const std::uint64_t from = bounds[i];
      if (from < own.drained_below || from >= own.moved_below) continue;
      const Rank to = state_.first_of(home, from);
      if (to == state_.fabric.rank() || state_.progress.is_gone(to) ||
          !state_.has_taken_over(home, from, to) || state_.covers(home, from, to) ||
          !state_.has_copies_of(home, from) || from < state_.own_stale(home))
        continue;
      parts_.push_back({.home = home, .from = from, .below = bounds[i + 1], .to = to});
    }
  return Status::ok;
}

void Rescue::claim_all() {
  for (const Part& part : parts_)
    if (part.is_whole) state_.claim(raises_, part.to, part.home, part.from, part.below);
  raises_.stop_waiting();
}

/// And versions: none is given twice, also to keys that have been erased (STO-M3).
void Rescue::collect() {
  std::byte* const main = move_.main();
  version_ = memory::load(word_at(main + kVersionAt));
  raised_at_.clear();
  for (const Part& part : parts_)
    if (part.from < move_.end() && part.below > position_)
      if (std::ranges::find(raised_at_, part.to) == raised_at_.end()) raised_at_.push_back(part.to);
  raised_from_ = raised_below_ = position_;
  for (const std::byte* const bucket : OwnChain(state_, main))
    state_.see_bucket(main, bucket, [&](const StoreEntry& entry) {
      const std::uint64_t hash = hash_of(entry.key);
      const Rank home = state_.home_of(hash);
      const std::uint64_t position = IndexShape::position_of(hash);
      const auto part = std::ranges::find_if(parts_, [&](const Part& one) {
        return one.home == home && position >= one.from && position < one.below;
      });
      if (entry.ttl_ns == 0 || part == parts_.end()) return;
      keys_.push_back({.bytes = {entry.key.begin(), entry.key.end()},
                       .value = {entry.value.begin(), entry.value.end()},
                       .version = entry.version,
                       .ttl_ns = entry.ttl_ns,
                       .part = static_cast<std::size_t>(part - parts_.begin())});
    });
}

/// No other member changes them meanwhile: none has a home that serves them.
Status Rescue::copy() {
  while (!keys_.empty()) {
    const Key& key = keys_.back();
    const Rank to = parts_[key.part].to;
    if (is_under_way_) {
      if (!call_.finished()) return Status::under_way;
      is_under_way_ = false;
      const Status status = call_.status();
      const bool has_no_room = status == Status::no_room || status == Status::full;
      if (status != Status::ok && !has_no_room) return Status::busy;
      // Else all keys of the homes that take over would wait for room.
      if (has_no_room) parts_[key.part].is_whole = false;
      keys_.pop_back();
      continue;
    }
    is_under_way_ = true;
    call_ = {state_.progress, state_.copy_key({.to = to,
                                               .first = to,
                                               .key = key.bytes,
                                               .value = key.value,
                                               .ttl_ns = key.ttl_ns,
                                               .version = key.version})};
  }
  while (!raised_at_.empty()) {
    if (is_under_way_) {
      if (!call_.finished()) return Status::under_way;
      is_under_way_ = false;
      if (call_.status() != Status::ok) return Status::busy;
      raised_below_ = call_.result().below;
    }
    if (raised_below_ >= position_) {
      raised_at_.pop_back();
      raised_below_ = raised_from_;
      continue;
    }
    is_under_way_ = true;
    call_ = {state_.progress, state_.raise_version({.to = raised_at_.back(),
                                                    .first = raised_at_.back(),
                                                    .position = raised_below_,
                                                    .lock_word = state_.next_lock_word(),
                                                    .version = version_})};
  }
  return Status::ok;
}

}  // namespace dunlin::store
