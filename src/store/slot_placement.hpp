#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/plan.hpp"
#include "store/slot_map.hpp"

namespace dunlin::store {

struct PlacementOptions {
  std::string name;  // of the order
  std::uint32_t channel = kOrderChannel;
  // The first four are the same at all members.
  std::uint32_t slots = kUsualSlots;
  std::uint32_t copies = 1;
  bool renews_lost = false;
  /// The members of the ranks below this hold keys from the beginning: the map is made once all of
  /// these have entered, or are gone.
  std::uint32_t first_holders = 1;
  std::uint32_t weight = 0;  // of this member, up to kMaxWeight; 0: it is a client
  PlanLimits limits = {};
};

/// One member's part in the agreement on the slot map: it opens the order, says how much the member
/// holds, makes the first map, and plans. The member of the lowest rank plans; if it sleeps,
/// nothing moves, and nothing else waits for it. One thread, that polls the fabric.
///
///     SlotPlacement placement(progress, {.name = "map", .first_holders = 3, .weight = 1024});
///     ... progress.poll(), placement.poll() ...
///     if (placement.map().created()) owner = placement.map().slot(number).owner;
///
///  STO-P12  What a member has to say, it proposes again only when the map has shown that all that
///           it proposed before was decided; so a map that changes often is not flooded.
class SlotPlacement {
 public:
  /// Throws Error, as Progress::open_order() does.
  SlotPlacement(remote::Progress& progress, const PlacementOptions& options);

  [[nodiscard]] const SlotMap& map() const noexcept { return map_; }
  /// The slots that have changed since the last call.
  [[nodiscard]] std::vector<std::uint32_t> take_changed() { return map_.take_changed(); }
  /// Whether this member has the map, so that it can propose.
  [[nodiscard]] bool ready() const noexcept { return order_->ready(); }
  /// Why this member has no part in the map any more; empty while it has.
  [[nodiscard]] const std::string& why_stopped() const noexcept { return order_->why_stopped(); }

  /// From now on this member holds keys in proportion to this weight. 0: it drains.
  void set_weight(std::uint32_t weight);
  [[nodiscard]] std::uint32_t weight() const noexcept { return weight_; }
  /// Proposes it when the order has room.
  void say(const Decision& decision) {
    if (std::ranges::find(to_say_, decision) == to_say_.end()) to_say_.push_back(decision);
  }
  /// Whether the map has all that this member has said.
  [[nodiscard]] bool has_said_all() const noexcept { return to_say_.empty() && is_heard(); }

  std::size_t poll();

 private:
  [[nodiscard]] bool is_heard() const noexcept;
  [[nodiscard]] bool all_have_entered() const noexcept;
  void find_what_to_say();
  void look_for_room(const Holder& mine) noexcept;
  [[nodiscard]] std::size_t propose_some();

  remote::Progress& progress_;
  const Rank me_;
  const PlacementOptions options_;
  std::uint32_t weight_;
  bool takes_ = true;                 // further slots, as it has room for them
  std::uint64_t takes_again_ns_ = 0;  // when it tries again
  SlotMap map_;
  std::unique_ptr<remote::AgreedOrder> order_;
  std::deque<Decision> to_say_;    // in order; those that the order has not taken
  std::uint32_t said_ = 0;         // number of the last `heard` that it has taken
  std::uint64_t planned_for_ = 0;  // the map's version
};

}  // namespace dunlin::store
