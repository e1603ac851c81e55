#include "store/plan.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "assert.hpp"

namespace dunlin::store {
namespace {

using Kind = Decision::Kind;

/// A member's load, and how far it is from its share, in slots times the sum of all weights.
struct Load {
  Holder member;
  std::int64_t held = 0;   // copies, once all moves have ended
  std::int64_t owned = 0;  // slots, once all moves have ended
  std::int64_t held_beyond = 0;
  std::int64_t owned_beyond = 0;
  std::uint32_t incoming = 0;
  std::uint32_t outgoing = 0;  // slots of which others get a copy from it
  [[nodiscard]] bool drains() const noexcept { return member.weight == 0; }
};

class Planner {
 public:
  Planner(const SlotMap& map, const PlanLimits& limits) : map_(map), limits_(limits) {
    for (const Holder& one : map.members()) {
      loads_.push_back({.member = one});
      weights_ += one.weight;
    }
    for (std::uint32_t number = 0; number < map.slots(); ++number) count(map.slot(number));
    for (Load& one : loads_) look_how_far(one);
    touched_.resize(map.slots());
  }

  std::vector<Decision> run() {
    if (weights_ == 0) return {};
    stop_hopeless();
    renew_lost();
    for (std::uint32_t copies = 1; copies < map_.copies(); ++copies) heal(copies);
    balance_copies();
    balance_owners();
    return std::move(decisions_);
  }

 private:
  [[nodiscard]] Load& load(Rank rank) {
    const auto found =
        std::ranges::lower_bound(loads_, rank, {}, [](const Load& one) { return one.member.rank; });
    DUNLIN_ASSERT(found != loads_.end() && found->member.rank == rank,
                  "STO-P2: only members that are present hold slots");
    return *found;
  }

  void count(const PlacedSlot& slot) {
    const bool moves = slot.incoming != kNobody;
    const auto add = [&](Rank rank) {
      if (rank != kNobody && rank != slot.leaving) ++load(rank).held;
    };
    add(slot.owner);
    for (const Rank backup : slot.backups) add(backup);
    add(slot.incoming);
    if (slot.lost()) return;
    ++load(moves && slot.leaving == slot.owner ? slot.incoming : slot.owner).owned;
    if (!moves) return;
    ++load(slot.incoming).incoming;
    ++load(slot.owner).outgoing;
  }

  void look_how_far(Load& one) const {
    const std::int64_t slots = map_.slots();
    const std::int64_t share = slots * one.member.weight;
    one.owned_beyond = one.owned * weights_ - share;
    one.held_beyond = one.held * weights_ - share * map_.copies();
  }

  void propose(const Decision& decision) {
    touched_[decision.slot] = true;
    decisions_.push_back(decision);
  }
  [[nodiscard]] static Decision about(Kind kind, std::uint32_t number, const PlacedSlot& slot,
                                      Rank member) {
    return {.kind = kind,
            .member = static_cast<std::uint16_t>(member),
            .slot = static_cast<std::uint16_t>(number),
            .epoch = slot.epoch};
  }

  [[nodiscard]] bool is_busy(const Load& one) const {
    return one.incoming >= limits_.most_incoming;
  }
  /// Whether a copy of it may be begun now.
  [[nodiscard]] bool can_give(std::uint32_t number) {
    const PlacedSlot& slot = map_.slot(number);
    return !touched_[number] && !slot.lost() && slot.settled && slot.incoming == kNobody &&
           slot.emptying.back() == kNobody && load(slot.owner).outgoing < limits_.most_outgoing;
  }

  /// The member that is farthest below its share, of those that could take the slot; of equals,
  /// each slot has an order of its own.
  [[nodiscard]] Load* best_for(std::uint32_t number, bool now) {
    const PlacedSlot& slot = map_.slot(number);
    Load* best = nullptr;
    for (Load& one : loads_) {
      if (one.drains() || !one.member.takes || slot.has_part(one.member.rank)) continue;
      if (now && is_busy(one)) continue;
      const bool is_better = best == nullptr || one.held_beyond < best->held_beyond ||
                             (one.held_beyond == best->held_beyond &&
                              mix(number, one.member.rank) < mix(number, best->member.rank));
      if (is_better) best = &one;
    }
    return best;
  }

  void begin_copy(std::uint32_t number, Load& to, Load* instead_of) {
    const PlacedSlot& slot = map_.slot(number);
    Decision decision = about(Kind::add, number, slot, to.member.rank);
    ++to.incoming;
    ++load(slot.owner).outgoing;
    ++to.held;
    if (instead_of != nullptr) {
      decision.other = static_cast<std::uint16_t>(instead_of->member.rank);
      --instead_of->held;
      if (instead_of->member.rank == slot.owner) {
        --instead_of->owned;
        ++to.owned;
      }
      look_how_far(*instead_of);
    }
    look_how_far(to);
    propose(decision);
  }

  /// Copies at members that drain now, or have no room for them.
  void stop_hopeless() {
    for (std::uint32_t number = 0; number < map_.slots(); ++number) {
      const PlacedSlot& slot = map_.slot(number);
      if (slot.incoming == kNobody) continue;
      Load& to = load(slot.incoming);
      if (!to.drains() && to.member.takes) continue;
      --to.held;
      if (slot.leaving != kNobody) take_back(slot, to, load(slot.leaving));
      look_how_far(to);
      propose(about(Kind::stop, number, slot, kNobody));
    }
  }
  void take_back(const PlacedSlot& slot, Load& to, Load& from) {
    ++from.held;
    if (slot.leaving == slot.owner) {
      --to.owned;
      ++from.owned;
    }
    look_how_far(from);
  }

  void renew_lost() {
    if (!map_.renews_lost()) return;
    for (std::uint32_t number = 0; number < map_.slots(); ++number) {
      const PlacedSlot& slot = map_.slot(number);
      if (!slot.lost()) continue;
      Load* best = nullptr;
      for (Load& one : loads_)
        if (!one.drains() && !slot.is_emptying(one.member.rank) &&
            (best == nullptr || one.held_beyond < best->held_beyond))
          best = &one;
      if (best == nullptr) continue;
      ++best->held;
      ++best->owned;
      look_how_far(*best);
      propose(about(Kind::renew, number, slot, best->member.rank));
    }
  }

  /// A further copy of each slot that has only so many.
  void heal(std::uint32_t copies) {
    for (std::uint32_t number = 0; number < map_.slots(); ++number) {
      if (!can_give(number) || map_.slot(number).full_copies() != copies) continue;
      // The next best rather than later: until then, a death may lose the slot.
      if (Load* const best = best_for(number, true)) begin_copy(number, *best, nullptr);
    }
  }

  [[nodiscard]] bool is_better_off(const Load& from, std::int64_t from_beyond,
                                   std::int64_t to_beyond) const {
    return from.drains() || from_beyond - to_beyond > weights_;
  }

  void balance_copies() {
    for (Load& one : loads_)
      if (one.drains() && one.held > 0) drain(one);
    std::vector<Load*> givers, takers;
    for (Load& one : loads_) {
      if (one.drains()) continue;
      givers.push_back(&one);
      if (one.member.takes) takers.push_back(&one);
    }
    const auto beyond = [](const Load* one) { return one->held_beyond; };
    std::ranges::stable_sort(givers, std::ranges::greater(), beyond);
    std::ranges::stable_sort(takers, std::ranges::less(), beyond);
    for (Load* const giver : givers) give(*giver, takers);
  }

  void drain(Load& giver) {
    for (std::uint32_t number = 0; number < map_.slots(); ++number) {
      if (!map_.slot(number).has_full_copy(giver.member.rank) || !can_give(number)) continue;
      Load* const best = best_for(number, false);  // the next best would have to give it on later
      if (best != nullptr && !is_busy(*best)) begin_copy(number, *best, &giver);
    }
  }

  /// To the lowest taker that lacks any of its slots, even if that one cannot take any now: what
  /// another one got would have to go on later.
  void give(Load& giver, std::span<Load* const> takers) {
    for (Load* const taker : takers) {
      if (!is_better_off(giver, giver.held_beyond, taker->held_beyond)) return;
      if (!has_one_for(giver, *taker)) continue;
      // As much as it has beyond its share; and then one, if the taker is worse off even so.
      bool gives = give_one(giver, *taker);
      while (gives && giver.held_beyond > 0 && taker->held_beyond < 0)
        gives = give_one(giver, *taker);
      return;
    }
  }
  [[nodiscard]] bool has_one_for(const Load& giver, const Load& taker) const {
    const Rank from = giver.member.rank, to = taker.member.rank;
    for (std::uint32_t number = 0; number < map_.slots(); ++number) {
      const PlacedSlot& slot = map_.slot(number);
      const bool stays = slot.has_full_copy(from) && slot.leaving != from;
      if (stays && !slot.has_full_copy(to) && slot.incoming != to) return true;
    }
    return false;
  }
  /// An own slot if it has too many of these, too, so that no owner needs to change twice.
  bool give_one(Load& giver, Load& taker) {
    if (is_busy(taker) || !is_better_off(giver, giver.held_beyond, taker.held_beyond)) return false;
    const bool owned = is_better_off(giver, giver.owned_beyond, taker.owned_beyond);
    const std::optional<std::uint32_t> first = find_for(giver, taker, owned);
    const std::optional<std::uint32_t> found = first ? first : find_for(giver, taker, !owned);
    if (found) begin_copy(*found, taker, &giver);
    return found.has_value();
  }
  [[nodiscard]] std::optional<std::uint32_t> find_for(const Load& giver, const Load& taker,
                                                      bool owned) {
    const Rank from = giver.member.rank;
    for (std::uint32_t number = 0; number < map_.slots(); ++number) {
      const PlacedSlot& slot = map_.slot(number);
      const bool fits = (owned ? slot.owner == from : slot.is_backup(from)) &&
                        !slot.has_part(taker.member.rank) &&
                        slot.full_copies() == map_.copies();  // else it gets a further copy first
      if (fits && can_give(number)) return number;
    }
    return std::nullopt;
  }

  /// Between the copies that are there: nothing is copied for it.
  void balance_owners() {
    for (std::uint32_t number = 0; number < map_.slots(); ++number) {
      const PlacedSlot& slot = map_.slot(number);
      if (touched_[number] || slot.lost() || !slot.settled || slot.incoming != kNobody) continue;
      Load& owner = load(slot.owner);
      Load* best = nullptr;
      for (const Rank backup : slot.backups) {
        if (backup == kNobody) continue;
        Load& one = load(backup);
        if (one.drains()) continue;
        if (best == nullptr || one.owned_beyond < best->owned_beyond) best = &one;
      }
      if (best == nullptr || !is_better_off(owner, owner.owned_beyond, best->owned_beyond))
        continue;
      --owner.owned;
      ++best->owned;
      look_how_far(owner);
      look_how_far(*best);
      propose(about(Kind::own, number, slot, best->member.rank));
    }
  }

  const SlotMap& map_;
  const PlanLimits limits_;
  std::vector<Load> loads_;  // by rank
  std::int64_t weights_ = 0;
  std::vector<bool> touched_;  // slots that this plan changes
  std::vector<Decision> decisions_;
};

}  // namespace

std::vector<Decision> plan(const SlotMap& map, const PlanLimits& limits) {
  if (!map.created()) return {};
  return Planner(map, limits).run();
}

std::optional<Decision> duty_of(std::uint32_t number, const PlacedSlot& slot,
                                Rank member) noexcept {
  Decision duty{.kind = Kind::opened,
                .member = static_cast<std::uint16_t>(member),
                .slot = static_cast<std::uint16_t>(number),
                .epoch = slot.epoch};
  const bool is_former = slot.former == member && member != kNobody;
  if (!slot.settled && (is_former || (slot.owner == member && slot.former == kNobody))) return duty;
  if (slot.is_emptying(member)) {
    duty.kind = Kind::emptied;
    return duty;
  }
  if (!slot.settled || slot.owner != member || slot.incoming == kNobody) return std::nullopt;
  duty.kind = Kind::full;
  duty.member = static_cast<std::uint16_t>(slot.incoming);
  return duty;
}

MapSummary summarize(const SlotMap& map) noexcept {
  MapSummary sum{.slots = map.slots()};
  for (std::uint32_t number = 0; number < map.slots(); ++number) {
    const PlacedSlot& slot = map.slot(number);
    sum.lost += slot.lost() ? 1 : 0;
    sum.lacking += !slot.lost() && slot.full_copies() < map.copies() ? 1 : 0;
    sum.moving += slot.incoming != kNobody ? 1 : 0;
    sum.opening += slot.settled ? 0 : 1;
    sum.emptying += slot.emptying.front() != kNobody ? 1 : 0;
  }
  return sum;
}

}  // namespace dunlin::store
