#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "fault_injection.hpp"
#include "store/state.hpp"

/// The homes of a key, in a store with two copies. A change takes the lock at the key's first home,
/// makes the change at the others, and then at the first one, where all gets look.
namespace dunlin::store {

using remote::Status;

// --- where a key is ------------------------------------------------------------------------------

Rank State::first_from(Rank home, std::uint64_t position) const noexcept {
  for (std::uint32_t i = 0; i < members; ++i)
    if (const Rank rank = (home + i) % members;
        progress.contains(rank) && !has_moved(rank, position))
      return rank;
  return home;
}

Rank State::first_home_of(std::uint64_t hash) const noexcept {
  const Rank home = home_of(hash);
  if (has_copies()) return first_from(home, IndexShape::position_of(hash));
  return has_changed_homes ? place_of(home, IndexShape::position_of(hash)) : home;
}

/// STO-M9. In the order of ranks, until two homes stay.
CopyHomes State::copies_behind(Rank first, std::uint64_t position) const noexcept {
  const auto stays = [&](Rank rank) {
    return homes[rank].leaves && !is_injected(FaultInjection::further_copy_is_left_out) ? 0 : 1;
  };
  CopyHomes behind;
  int staying = stays(first);
  for (std::uint32_t i = 1; i < members && staying < 2 && behind.many < behind.ranks.size(); ++i) {
    const Rank rank = (first + i) % members;
    if (!progress.contains(rank) || has_moved(rank, position)) continue;
    behind.ranks.at(behind.many++) = rank;
    staying += stays(rank);
  }
  return behind;
}

CopyHomes State::copies_of(std::uint64_t hash) const noexcept {
  if (!has_copies()) return {};
  return copies_behind(first_home_of(hash), IndexShape::position_of(hash));
}

bool State::may_leave() const noexcept {
  std::uint32_t staying = 0;
  for (Rank rank = 0; rank < members; ++rank)
    if (rank != fabric.rank() && !is_gone(rank) && !has_given_all(rank) && !homes[rank].leaves)
      ++staying;
  return staying >= options.copies && !has_given_all(fabric.rank());
}

bool State::is_open(Rank rank) const noexcept {
  const std::uint64_t opened =
      rank == fabric.rank() && copies != nullptr ? copies->opened() : homes[rank].opened;
  return opened >= progress.generation() || is_injected(FaultInjection::home_opens_at_once);
}

bool State::has_another_home(Rank home, std::uint64_t position, Rank gone) const noexcept {
  if (is_lost(home, position)) return false;
  if (!has_copies()) return place_of(home, position) != gone || !homes[gone].withdrawn;
  const Rank first = first_from(home, position);
  if (first != gone)
    return progress.contains(first) && (has_moved(gone, position) || !homes[gone].withdrawn);
  return progress.contains(gone) && !homes[gone].withdrawn;
}

bool State::is_lost(Rank home, std::uint64_t position) const noexcept {
  if (!has_copies() && progress.contains(place_of(home, position))) return false;
  return has_looked(home) && (!has_copies() || homes[home].covered == 0);
}

Status State::know_home(Rank home, Rank at) noexcept {
  const bool takes_over = has_copies() && at != home;
  if (takes_over && !is_open(at)) look_at_index_again(at);
  const Status known = know_index(at);
  if (known != Status::ok || !takes_over) return known;
  if (!is_open(at)) return Status::busy;
  Home& one = homes[home];
  const std::uint64_t generation = progress.generation();
  if (one.looked_in == generation) return one.covered != 0 ? Status::ok : Status::lost;
  if (!one.is_looking) {
    one.look.reset();
    one.is_looking =
        fabric
            .post(read(at, redo.id(), covered_at(homes[at].ranks, home), &one.covered, kWordBytes)
                      .notify(one.look))
            .all();
    one.looks_in = generation;
    if (!one.is_looking) return Status::under_way;
  }
  if (!one.look.finished()) return Status::under_way;
  one.is_looking = false;
  if (one.look.failed() || one.looks_in != generation) return Status::busy;
  one.looked_in = generation;
  return one.covered != 0 ? Status::ok : Status::lost;
}

// --- a change at the second home -----------------------------------------------------------------

/// The batch for the first home is ready, under the lock of the key's chain there.
bool State::replicate(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (!has_copies() || is_copy(work.kind)) return commit(op);
  work.stage = Stage::copy;
  return true;
}

bool State::begin_copy(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (fault(work.home) != Status::ok) return end(op, fault(work.home));
  if (!std::exchange(work.is_copying, true)) {
    work.copy_epoch = copy_epoch;
    ++copying.at(copy_epoch % 2);
  }
  const std::optional<Rank> next = next_copy(work);
  if (!next || is_injected(FaultInjection::change_is_not_copied)) {
    work.is_copied = !work.copied.empty();
    return commit(op);
  }
  if (idle_copies.empty()) {
    copy_operations.push_back(std::make_unique<StoreOperation>(*store));
    idle_copies.push_back(copy_operations.back().get());
  }
  work.copy = idle_copies.back();
  idle_copies.pop_back();
  const bool restores = work.kind == Kind::restore;
  const bool erases = !restores && work.new_slot.word == 0;
  const std::span<const std::byte> value =
      restores ? op.value()
               : std::span<const std::byte>(work.out.data() + kEntryHeadBytes + work.key_bytes,
                                            erases ? 0 : work.value_bytes);
  const std::uint64_t expiry = restores ? work.head.expiry_ns : head_of(work.out.data()).expiry_ns;
  const std::uint64_t ttl =
      erases || expiry == 0 ? kNoExpiry : std::max<std::uint64_t>(ttl_of(work.home, expiry), 1);
  StoreOperation& copy = *work.copy;
  prepare(copy, erases ? Kind::copy_erase : Kind::copy_put, work.key_span(), value, ttl,
          restores ? work.head.version : work.next_version, nullptr);
  copy.work_->home = work.second = *next;
  copy.work_->first = work.home;
  work.stage = Stage::copying;
  copy.start();
  return true;
}

/// The farthest home that has not got the change yet. So the home that takes over if the first one
/// dies has no change that one behind it lacks.
std::optional<Rank> State::next_copy(const Work& work) const noexcept {
  const CopyHomes behind = copies_of(work.hash);
  for (std::size_t i = behind.many; i-- > 0;)
    if (const Rank rank = behind.ranks.at(i);
        std::ranges::find(work.copied, rank) == work.copied.end())
      return rank;
  return std::nullopt;
}

bool State::copy_ended(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (!work.copy->finished()) return false;
  const Status status = work.copy->status();
  drop_copy(work);
  switch (status) {
    case Status::ok:  // this process may have learned of a further home meanwhile (STO-M10)
      work.copied.push_back(work.second);
      work.stage = Stage::copy;
      return true;
    case Status::lost:  // another member may become the second home
      work.stage = Stage::copy;
      if (!progress.contains(work.second) ||
          has_moved(work.second, IndexShape::position_of(work.hash)))
        return true;
      begin_rest(work.rest);
      return false;
    case Status::conflict:  // the first home is gone
      return end(op, Status::lost);
    case Status::busy:  // gives the lock back, so that no changes wait for each other in a circle
      work.steps = 0;
      taint(work);
      release_record(work);
      op.found_ = op.changed_ = false;
      op.version_ = 0;
      work.has_moved = work.gives_way = true;
      build_unlock(work, false);
      return commit(op);
    default:
      work.steps = 0;
      release_record(work);
      return leave(op, status);
  }
}

void State::drop_copy(Work& work) noexcept {
  if (work.copy == nullptr) return;
  work.copy->abandon();
  idle_copies.push_back(std::exchange(work.copy, nullptr));
}

/// The call begins anew. If it came to one of these homes, it would take its own change for that of
/// another call.
void State::taint(Work& work) noexcept {
  end_copying(work);
  if (work.tainted.empty() && !work.copied.empty()) ++tainted_works;
  work.tainted.insert(work.tainted.end(), work.copied.begin(), work.copied.end());
  work.copied.clear();
}

void State::end_copying(Work& work) noexcept {
  if (std::exchange(work.is_copying, false)) --copying.at(work.copy_epoch % 2);
}

/// What the second home has is the key's value once the members agree that the first one is gone.
bool State::fail_over(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const bool may_stay = first_home_of(work.hash) == work.home;
  if (progress.contains(work.home) && may_stay) {
    begin_rest(work.rest);
    return false;
  }
  release_record(work);
  cancel_blocks(work);
  const bool has_it = std::ranges::find(work.copied, first_home_of(work.hash)) != work.copied.end();
  if (work.is_copied || has_it) return end(op, Status::ok);
  taint(work);
  rewind(op);
  return true;
}

}  // namespace dunlin::store
