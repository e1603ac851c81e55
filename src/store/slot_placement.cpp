#include "store/slot_placement.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "assert.hpp"

namespace dunlin::store {

using Kind = Decision::Kind;

SlotPlacement::SlotPlacement(remote::Progress& progress, const PlacementOptions& options)
    : progress_(progress),
      me_(progress.fabric().rank()),
      options_(options),
      weight_(options.weight),
      order_(progress.open_order({.name = options.name, .channel = options.channel}, map_)) {}

void SlotPlacement::set_weight(std::uint32_t weight) {
  DUNLIN_ASSERT_ALWAYS(weight <= kMaxWeight, "a weight is at most kMaxWeight");
  weight_ = weight;
}

/// For the slot as it is now: if it changes before that is decided, this says nothing (STO-P3).
void SlotPlacement::say(Kind kind, std::uint32_t slot) {
  DUNLIN_ASSERT_ALWAYS(slot < map_.slots(), "a member speaks of slots that there are");
  to_say_.push_back({.kind = kind,
                     .member = static_cast<std::uint16_t>(me_),
                     .slot = static_cast<std::uint16_t>(slot),
                     .epoch = map_.slot(slot).epoch});
}

bool SlotPlacement::is_heard() const noexcept {
  const Holder* const mine = map_.member(me_);
  return mine != nullptr && mine->heard == said_;
}

std::size_t SlotPlacement::poll() {
  const std::size_t done = order_->poll();
  if (!ready()) return done;
  find_what_to_say();
  return done + propose_some();
}

/// Whether the members that hold keys from the beginning have entered, but for those that have
/// died.
bool SlotPlacement::all_have_entered() const noexcept {
  for (Rank rank = 0; rank < options_.first_holders; ++rank) {
    const Holder* const one = map_.member(rank);
    if (!progress_.is_gone(rank) && (one == nullptr || one->heard == 0)) return false;
  }
  return true;
}

/// STO-P12: the map has all that was said before.
void SlotPlacement::find_what_to_say() {
  if (!is_heard() || !to_say_.empty()) return;
  const Holder& mine = *map_.member(me_);
  if (mine.weight != weight_ || mine.takes != takes_)
    to_say_.push_back({.kind = Kind::enter,
                       .flag = static_cast<std::uint8_t>(takes_ ? 1 : 0),
                       .member = static_cast<std::uint16_t>(me_),
                       .value = weight_});
  if (planned_for_ == map_.version()) return;
  planned_for_ = map_.version();
  if (map_.members().front().rank != me_) return;
  if (!map_.created() && all_have_entered())
    to_say_.push_back({.kind = Kind::create,
                       .flag = static_cast<std::uint8_t>(options_.renews_lost ? 1 : 0),
                       .other = static_cast<std::uint16_t>(options_.copies),
                       .value = options_.slots});
  const std::vector<Decision> planned = plan(map_, options_.limits);
  to_say_.insert(to_say_.end(), planned.begin(), planned.end());
}

/// What the order does not take now, it takes in a later poll. The last of the decisions that are
/// proposed at once is `heard`.
std::size_t SlotPlacement::propose_some() {
  std::size_t done = 0;
  while (!to_say_.empty()) {
    std::array<Decision, kMostDecisions> some;
    const std::size_t count = std::min(to_say_.size(), kMostDecisions - 1);
    std::copy_n(to_say_.begin(), count, some.begin());
    some[count] = {
        .kind = Kind::heard, .member = static_cast<std::uint16_t>(me_), .value = said_ + 1};
    if (!order_->propose(encode(std::span(some).first(count + 1)))) break;
    ++said_;
    to_say_.erase(to_say_.begin(), to_say_.begin() + static_cast<std::ptrdiff_t>(count));
    ++done;
  }
  return done;
}

}  // namespace dunlin::store
