#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/plan.hpp"
#include "store/slot_map.hpp"
#include "support/scenario.hpp"

/// What becomes of the slots of a store, command by command; scenarios/slot_map has the stories,
/// and README.md there the commands.
namespace dunlin::store {
namespace {

using test::Command;
using Kind = Decision::Kind;

class MapScenario {
 public:
  std::string execute(const Command& command) {
    const std::string& what = command.front();
    if (what == "members") return members(command);
    if (what == "enter") return enter(command);
    if (what == "create") return create(command);
    if (what == "show") return show();
    if (what == "plan") return propose(plan(map_, limits_), true);
    if (what == "do") return duties(command);
    if (what == "settle") return settle();
    if (what == "limit") {
      limits_ = {static_cast<std::uint32_t>(std::stoul(command.at(1))),
                 static_cast<std::uint32_t>(std::stoul(command.at(1)))};
      return {};
    }
    if (what == "decide") return decide(command);
    throw std::runtime_error("no such command");
  }

 private:
  static Rank rank_of(const std::string& name) {
    if (name.size() != 1 || name[0] < 'a' || name[0] > 'z')
      throw std::runtime_error("members are named a to z");
    return static_cast<Rank>(name[0] - 'a');
  }
  static std::string name_of(Rank rank) {
    return rank == kNobody ? "nobody" : std::string(1, static_cast<char>('a' + rank));
  }

  std::string members(const Command& command) {
    std::vector<Rank> ranks;
    for (std::size_t i = 1; i < command.size(); ++i) ranks.push_back(rank_of(command[i]));
    map_.members_are(ranks);
    return changes();
  }
  std::string enter(const Command& command) {
    for (std::size_t i = 1; i < command.size(); ++i) {
      const std::string& one = command[i];  // a:2, or a:2! if it has no room
      map_.apply({.kind = Kind::enter,
                  .flag = static_cast<std::uint8_t>(one.back() == '!' ? 0 : 1),
                  .member = static_cast<std::uint16_t>(rank_of(one.substr(0, 1))),
                  .value = static_cast<std::uint32_t>(std::stoul(one.substr(2)))});
    }
    return {};
  }
  std::string create(const Command& command) {
    map_.apply({.kind = Kind::create,
                .flag = static_cast<std::uint8_t>(command.size() > 4 ? 1 : 0),
                .other = static_cast<std::uint16_t>(std::stoul(command.at(3))),
                .value = static_cast<std::uint32_t>(std::stoul(command.at(1)))});
    return changes();
  }

  static std::string text_of(const Decision& decision) {
    std::string text;
    switch (decision.kind) {
      case Kind::add:
        text = "add " + name_of(decision.member) +
               (decision.other == kNobody ? "" : " for " + name_of(decision.other));
        break;
      case Kind::full:
        text = "full " + name_of(decision.member);
        break;
      case Kind::own:
        text = "own " + name_of(decision.member);
        break;
      case Kind::opened:
        text = "opened, says " + name_of(decision.member);
        break;
      case Kind::emptied:
        text = "emptied " + name_of(decision.member);
        break;
      case Kind::stop:
        text = "stop";
        break;
      case Kind::renew:
        text = "renew " + name_of(decision.member);
        break;
      default:
        text = "?";
    }
    return std::to_string(decision.slot) + "@" + std::to_string(decision.epoch) + " " + text;
  }
  std::string text_of(std::uint32_t number) const {
    const PlacedSlot& slot = map_.slot(number);
    std::string text = std::to_string(number) + "@" + std::to_string(slot.epoch) + ": ";
    text += slot.lost() ? "lost" : name_of(slot.owner);
    for (const Rank backup : slot.backups)
      if (backup != kNobody) text += " " + name_of(backup);
    if (slot.incoming != kNobody) text += " <- " + name_of(slot.incoming);
    if (slot.leaving != kNobody) text += " for " + name_of(slot.leaving);
    if (slot.former != kNobody) text += ", was " + name_of(slot.former);
    if (!slot.settled) text += ", opens";
    for (const Rank rank : slot.emptying)
      if (rank != kNobody) text += ", " + name_of(rank) + " empties";
    return text;
  }
  std::string show() const {
    std::string text;
    for (std::uint32_t number = 0; number < map_.slots(); ++number) text += text_of(number) + "\n";
    return text;
  }
  std::string changes() {
    std::string text;
    for (const std::uint32_t number : map_.take_changed()) text += text_of(number) + "\n";
    return text;
  }

  std::string propose(const std::vector<Decision>& decisions, bool says_which) {
    std::string text;
    for (const Decision& decision : decisions) {
      if (says_which) text += text_of(decision) + "\n";
      if (!map_.apply(decision)) text += "  changes nothing\n";
    }
    static_cast<void>(map_.take_changed());
    return text;
  }
  /// decide 3@2 add b for a
  std::string decide(const Command& command) {
    const std::string& at = command.at(1);
    static const std::array<std::string, 11> kinds = {
        "", "create", "enter", "add", "full", "own", "opened", "stop", "renew", "heard", "emptied"};
    const auto kind = std::ranges::find(kinds, command.at(2)) - kinds.begin();
    Decision decision{.kind = static_cast<Kind>(kind),
                      .slot = static_cast<std::uint16_t>(std::stoul(at)),
                      .epoch = static_cast<std::uint32_t>(std::stoul(at.substr(at.find('@') + 1)))};
    if (command.size() > 3) decision.member = static_cast<std::uint16_t>(rank_of(command[3]));
    if (command.size() > 5) decision.other = static_cast<std::uint16_t>(rank_of(command[5]));
    const bool has_changed = map_.apply(decision);
    static_cast<void>(map_.take_changed());
    return has_changed ? text_of(decision.slot) + "\n" : "changes nothing\n";
  }
  /// What these members, or all, have to propose themselves.
  std::vector<Decision> duties_of(std::vector<Rank> ranks) const {
    if (ranks.empty())
      for (const Holder& one : map_.members()) ranks.push_back(one.rank);
    std::vector<Decision> decisions;
    for (const Rank rank : ranks)
      for (std::uint32_t number = 0; number < map_.slots(); ++number) {
        if (const auto duty = duty_of(number, map_.slot(number), rank)) decisions.push_back(*duty);
      }
    return decisions;
  }
  std::string duties(const Command& command) {
    std::vector<Rank> ranks;
    for (std::size_t i = 1; i < command.size(); ++i) ranks.push_back(rank_of(command[i]));
    return propose(duties_of(ranks), true);
  }
  std::string settle() {
    std::size_t copies = 0, owners = 0;
    for (int round = 0; round < 10'000; ++round) {
      const std::vector<Decision> planned = plan(map_, limits_);
      copies += static_cast<std::size_t>(std::ranges::count(planned, Kind::add, &Decision::kind));
      owners += static_cast<std::size_t>(std::ranges::count(planned, Kind::own, &Decision::kind));
      propose(planned, false);
      const std::vector<Decision> done = duties_of({});
      propose(done, false);
      if (planned.empty() && done.empty()) return summary(copies, owners);
    }
    return "does not settle\n";
  }
  std::string summary(std::size_t copies, std::size_t owners) const {
    std::ostringstream out;
    out << copies << " copies, " << owners << " new owners\n";
    for (const Holder& one : map_.members()) {
      std::size_t held = 0, owned = 0;
      for (std::uint32_t number = 0; number < map_.slots(); ++number) {
        held += map_.slot(number).has_full_copy(one.rank) ? 1 : 0;
        owned += map_.slot(number).owner == one.rank ? 1 : 0;
      }
      out << name_of(one.rank) << " has " << held << ", owns " << owned << "\n";
    }
    const MapSummary sum = summarize(map_);
    if (sum.lost > 0) out << sum.lost << " are lost\n";
    if (sum.lacking > 0) out << sum.lacking << " lack copies\n";
    return out.str();
  }

  SlotMap map_;
  PlanLimits limits_;
};

TEST(SlotMap, GoesThroughItsScenarios) {
  test::run_scenarios(DUNLIN_SCENARIOS "/slot_map", [] {
    return [scenario = MapScenario()](const Command& command) mutable {
      return scenario.execute(command);
    };
  });
}

}  // namespace
}  // namespace dunlin::store
