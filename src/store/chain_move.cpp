#include "store/chain_move.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/state.hpp"

namespace dunlin::store {

using remote::Status;

void ChainMove::begin(std::uint64_t position, std::vector<KeyGroup> groups) {
  stop();
  const Rank own = state_.fabric.rank();
  const IndexShape& shape = state_.homes[own].shape;
  position_ = position;
  end_ = shape.end_of(position, shape.depth_of(position));
  groups_ = std::move(groups);
  std::erase_if(groups_, [&](const KeyGroup& group) {
    return group.below <= position_ || group.from >= end_;
  });
  homes_.assign(1, own);
  for (const KeyGroup& group : groups_) {
    homes_.push_back(group.then.first);
    if (group.then.second && !group.now.has(*group.then.second))
      homes_.push_back(*group.then.second);
  }
  std::ranges::sort(homes_);
  homes_.erase(std::unique(homes_.begin(), homes_.end()), homes_.end());
  next_home_ = 0;
  next_position_ = position_;
  generation_ = state_.progress.generation();
  lock_word_ = state_.next_lock_word();
  held_.clear();
  keys_.clear();
  status_ = Status::ok;
  stage_ = Stage::lock;
}

void ChainMove::stop() {
  call_.abandon();
  is_under_way_ = false;
  if (stage_ == Stage::ended) return;
  for (const Held& held : held_) {
    if (held.home == state_.fabric.rank() || state_.fault(held.home) != Status::ok) continue;
    const IndexShape& shape = state_.homes[held.home].shape;
    state_.leftovers.unlock(
        held.home, state_.main_header(held.home, shape.number_of(held.position)), lock_word_);
  }
  held_.clear();
  if (has_own_lock_) unlock(memory::load(word_at(main_ + kVersionAt)));
  stage_ = Stage::ended;
  state_.look_again_soon();
}

void ChainMove::unlock(std::uint64_t version) noexcept {
  memory::store(word_at(main_ + kVersionAt), version);
  memory::store(word_at(main_ + kLockAt), 0);
  has_own_lock_ = false;
}

Status ChainMove::step() {
  while (step_once()) continue;
  switch (stage_) {
    case Stage::held:
      return Status::ok;
    case Stage::ended:
      return status_ == Status::ok ? Status::busy : status_;
    default:
      return Status::under_way;
  }
}

bool ChainMove::step_once() {
  if (is_under_way_ && !call_.finished()) return false;
  switch (stage_) {
    case Stage::lock:
      return is_under_way_ ? locked() : lock();
    case Stage::clean:
      return clean();
    case Stage::copy:
      return is_under_way_ ? copied() : copy();
    case Stage::undo:
      return undo();
    case Stage::release:
      return give_back();
    case Stage::held:
    case Stage::ended:
      return false;
  }
  return false;
}

void ChainMove::begin_call(remote::Protocol<ChainResult> protocol) {
  is_under_way_ = true;
  call_ = {state_.progress, std::move(protocol)};
}

/// Takes its copies back, and then its locks.
void ChainMove::fail(Status status) {
  if (status_ == Status::ok) status_ = status;
  stage_ = Stage::undo;
}

// --- the locks -----------------------------------------------------------------------------------

bool ChainMove::lock() {
  if (next_home_ == homes_.size()) {
    collect();
    stage_ = Stage::clean;
    return true;
  }
  const Rank home = homes_[next_home_];
  begin_call(state_.take_chain({.to = home,
                                .first = state_.fabric.rank(),
                                .position = next_position_,
                                .lock_word = lock_word_}));
  return true;
}

bool ChainMove::locked() {
  is_under_way_ = false;
  const Rank home = homes_[next_home_];
  const Status status = call_.status();
  if (status != Status::ok) {
    fail(status == Status::lost ? Status::busy : status);
    return true;
  }
  held_.push_back({home, next_position_});
  const std::uint64_t end = call_.result().below;
  const IndexShape& shape = state_.homes[home].shape;
  // The next position must not be taken for one of this chain.
  if (end != shape.end_of(next_position_, shape.depth_of(next_position_)))
    state_.look_at_index_again(home);
  if (home == state_.fabric.rank()) {
    main_ = state_.own_main(state_.homes[home].shape.number_of(position_));
    has_own_lock_ = true;
    end_ = end;  // it may have been split since
  }
  next_position_ = end;
  if (next_position_ < end_ && home != state_.fabric.rank()) return true;
  next_position_ = position_;
  ++next_home_;
  return true;
}

// --- the copies ----------------------------------------------------------------------------------

const KeyGroup* ChainMove::group_of(std::uint64_t hash) const noexcept {
  const Rank home = state_.home_of(hash);
  const std::uint64_t position = IndexShape::position_of(hash);
  const auto group = std::ranges::find_if(groups_, [&](const KeyGroup& one) {
    return one.home == home && position >= one.from && position < one.below;
  });
  return group == groups_.end() ? nullptr : &*group;
}

bool ChainMove::moves(std::uint64_t hash) const noexcept { return group_of(hash) != nullptr; }

bool ChainMove::is_outdated() const noexcept { return generation_ != state_.progress.generation(); }

void ChainMove::collect() {
  keys_.clear();
  next_key_ = next_copy_ = 0;
  version_ = memory::load(word_at(main_ + kVersionAt));
  for (const std::byte* const bucket : OwnChain(state_, main_))
    state_.see_bucket(main_, bucket, [&](const StoreEntry& entry) {
      const std::uint64_t hash = hash_of(entry.key);
      const KeyGroup* const group = group_of(hash);
      if (entry.ttl_ns == 0 || group == nullptr) return;
      std::vector<Rank> to;
      if (group->then.first != state_.fabric.rank()) to.push_back(group->then.first);
      if (group->then.second && !group->now.has(*group->then.second))
        to.push_back(*group->then.second);
      keys_.push_back({.bytes = {entry.key.begin(), entry.key.end()},
                       .value = {entry.value.begin(), entry.value.end()},
                       .version = entry.version,
                       .ttl_ns = entry.ttl_ns,
                       .to = std::move(to),
                       .hash = hash});
    });
  unclean_.clear();
  for (const Held& held : held_)
    if (held.home != state_.fabric.rank()) unclean_.push_back(held);
  is_stray_ = [this](std::uint64_t hash) {
    const std::uint64_t position = IndexShape::position_of(hash);
    const KeyGroup* const group = group_of(hash);
    return group != nullptr && group->then.has(unclean_.back().home) && position >= position_ &&
           position < end_ &&
           std::ranges::none_of(keys_, [&](const Key& key) { return key.hash == hash; });
  };
}

/// One key after the other, chain by chain.
bool ChainMove::clean() {
  if (is_under_way_) {
    is_under_way_ = false;
    if (call_.status() != Status::ok) {
      fail(Status::busy);
      return true;
    }
    if (!call_.result().changed) unclean_.pop_back();
  }
  if (unclean_.empty()) {
    stage_ = Stage::copy;
    return true;
  }
  begin_call(state_.drop_stray({.to = unclean_.back().home,
                                .first = state_.fabric.rank(),
                                .position = unclean_.back().position,
                                .lock_word = lock_word_,
                                .is_locked = true},
                               is_stray_));
  return true;
}

bool ChainMove::copy() {
  while (next_key_ < keys_.size() && next_copy_ == keys_[next_key_].to.size()) {
    ++next_key_;
    next_copy_ = 0;
  }
  if (next_key_ == keys_.size()) {
    if (is_outdated()) {
      fail(Status::busy);
      return true;
    }
    stage_ = Stage::held;
    return false;
  }
  const Key& key = keys_[next_key_];
  begin_call(state_.copy_key({.to = key.to[next_copy_],
                              .first = state_.fabric.rank(),
                              .key = key.bytes,
                              .value = key.value,
                              .ttl_ns = key.ttl_ns,
                              .version = key.version,
                              .lock_word = lock_word_}));
  return true;
}

bool ChainMove::copied() {
  is_under_way_ = false;
  ++next_copy_;  // also if it has failed: there may be something
  const Status status = call_.status();
  if (status == Status::ok) return true;
  const bool may_go_on =
      status == Status::lost || status == Status::conflict || status == Status::busy;
  fail(may_go_on ? Status::busy : status);
  return true;
}

/// Under the locks, the last one first: at these homes there was nothing of the keys before.
bool ChainMove::undo() {
  is_under_way_ = false;
  for (;;) {
    while (next_copy_ == 0 && next_key_ > 0 && !keys_.empty()) {
      --next_key_;
      next_copy_ = keys_[next_key_].to.size();
    }
    if (next_copy_ == 0 || keys_.empty()) {
      stage_ = Stage::release;
      version_ = has_own_lock_ ? memory::load(word_at(main_ + kVersionAt)) : 0;
      return true;
    }
    const Key& key = keys_[next_key_];
    const Rank to = key.to[--next_copy_];
    // What was second there stays.
    if (state_.fault(to) != Status::ok || group_of(key.hash)->now.has(to)) continue;
    begin_call(state_.copy_key({.to = to,
                                .first = state_.fabric.rank(),
                                .key = key.bytes,
                                .erases = true,
                                .version = key.version,
                                .lock_word = lock_word_}));
    return true;
  }
}

void ChainMove::release(std::uint64_t version) {
  unlock(version);
  version_ = version;
  stage_ = Stage::release;
}

Status ChainMove::released() {
  while (step_once()) continue;
  return stage_ == Stage::ended ? Status::ok : Status::under_way;
}

/// No version is given twice: those of the chains there are as high as this one's (STO-M3).
bool ChainMove::give_back() {
  is_under_way_ = false;
  while (!held_.empty()) {
    const Held held = held_.back();
    held_.pop_back();
    if (held.home == state_.fabric.rank()) {
      if (has_own_lock_) unlock(version_);
      continue;
    }
    if (state_.fault(held.home) != Status::ok) continue;
    begin_call(state_.raise_version({.to = held.home,
                                     .first = state_.fabric.rank(),
                                     .position = held.position,
                                     .lock_word = lock_word_,
                                     .is_locked = true,
                                     .version = version_}));
    return true;
  }
  stage_ = Stage::ended;
  return false;
}

}  // namespace dunlin::store
