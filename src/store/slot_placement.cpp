#include "store/slot_placement.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "assert.hpp"

namespace dunlin::store {

using Kind = Decision::Kind;

namespace {

/// A member without room for further slots looks for room again.
constexpr std::uint64_t kTakeAgainNs = 1'000'000'000;

}  // namespace

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
/// died, and some member holds keys.
bool SlotPlacement::all_have_entered() const noexcept {
  for (Rank rank = 0; rank < options_.first_holders; ++rank) {
    const Holder* const one = map_.member(rank);
    if (!progress_.is_gone(rank) && (one == nullptr || one->heard == 0)) return false;
  }
  return std::ranges::any_of(map_.members(), [](const Holder& one) { return one.weight > 0; });
}

/// STO-P12: the map has all that was said before.
void SlotPlacement::find_what_to_say() {
  if (!is_heard() || !to_say_.empty()) return;
  const Holder& mine = *map_.member(me_);
  look_for_room(mine);
  const bool is_awaited = me_ < options_.first_holders && mine.heard == 0;
  const bool may_say_it = weight_ > 0 || mine.weight == 0 || map_.may_drain(me_);
  if (((mine.weight != weight_ || mine.takes != takes_) && may_say_it) || is_awaited)
    to_say_.push_back({.kind = Kind::enter,
                       .flag = static_cast<std::uint8_t>(takes_ ? 1 : 0),
                       .member = static_cast<std::uint16_t>(me_),
                       .value = weight_});
  // That a member is gone, this process may hear later than the map.
  if (map_.created() && planned_for_ == map_.version()) return;
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

/// Another member has said that there was no room here. Some time later there may be.
void SlotPlacement::look_for_room(const Holder& mine) noexcept {
  if (takes_ && mine.takes) return;
  const std::uint64_t now = progress_.fabric().now_ns();
  if (takes_ && !mine.takes) takes_again_ns_ = now + kTakeAgainNs;
  takes_ = mine.takes || now >= takes_again_ns_;
  if (!takes_) progress_.fabric().wake_at(takes_again_ns_);
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
