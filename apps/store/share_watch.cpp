#include "store/share_watch.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace dunlin::app::resp {

StorePlacement::Member part_of(const StorePlacement& placement, Rank rank) {
  const auto found = std::ranges::find(placement.members, rank, &StorePlacement::Member::rank);
  return found == placement.members.end() ? StorePlacement::Member{.rank = rank} : *found;
}

ShareWatch::ShareWatch(Store& store, std::uint32_t copies, MemberPrinter& print)
    : store_(store), copies_(copies), print_(print), settling_(store.settle()) {
  bar_.emplace("gets its share of the keys", 0);
}

std::uint64_t ShareWatch::share_of(const StorePlacement& placement, std::uint32_t weight) const {
  std::uint64_t weights = 0;
  for (const StorePlacement::Member& member : placement.members) weights += member.weight;
  if (weights == 0) return 0;
  const std::uint64_t slots = placement.slots;
  return std::min(slots, slots * copies_ * weight / weights);
}

void ShareWatch::poll() {
  if (!bar_) return;
  if (!settling_.finished() && !bar_->is_due()) return;
  const StorePlacement placement = store_.placement();
  const StorePlacement::Member own = part_of(placement, store_.fabric().rank());
  if (!settling_.finished()) {
    bar_->set_total(share_of(placement, own.weight));
    return bar_->show(own.owned + own.copies);
  }
  bar_.reset();
  if (!settling_.ok()) return;  // the member stops, and says why
  const std::string copies =
      copies_ == 1 ? "" : fmt::format(", and copies of {} others", own.copies);
  print_.try_to(fmt::format("has its share of the keys: {} of {} slots{}", own.owned,
                            placement.slots, copies));
}

}  // namespace dunlin::app::resp
