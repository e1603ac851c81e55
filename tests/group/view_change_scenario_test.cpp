#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "group/view_change.hpp"
#include "support/scenario.hpp"

/// The view change, command by command; scenarios/view_change/README.md has the commands.
namespace dunlin::group {
namespace {

using test::Command;

[[nodiscard]] std::string text_of(const std::vector<std::uint64_t>& counts) {
  std::string text;
  for (const std::uint64_t count : counts)
    text += (text.empty() ? "" : " ") + std::to_string(count);
  return text;
}

class Scenario {
 public:
  std::string execute(const Command& command) {
    static const std::map<std::string, std::string (Scenario::*)(const Command&)> commands{
        {"members", &Scenario::members}, {"received", &Scenario::received},
        {"crash", &Scenario::crash},     {"failed", &Scenario::failed},
        {"cut", &Scenario::cut},         {"leave", &Scenario::leave},
        {"plan", &Scenario::plan},       {"hear", &Scenario::receive},
        {"step", &Scenario::step},       {"settle", &Scenario::settle}};
    const auto found = commands.find(command.front());
    if (found == commands.end()) throw std::runtime_error("there is no such command");
    return (this->*found->second)(command);
  }

 private:
  /// What one member is given, and what it has heard of the others.
  struct Member {
    ViewChange change;
    std::vector<Row> heard;
    std::vector<std::uint64_t> received;
    MemberSet failed = {};
    MemberSet cut_off = {};  // those that it hears no more
    PlanId plan = kNoPlan;
    bool leaves = false;
    bool runs = true;
  };

  [[nodiscard]] Rank rank_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) throw std::runtime_error("there is no member '" + name + "'");
    return static_cast<Rank>(found - names_.begin());
  }
  [[nodiscard]] std::vector<Rank> ranks_of(const Command& command, std::size_t from) const {
    std::vector<Rank> ranks;
    for (std::size_t i = from; i < command.size(); ++i) ranks.push_back(rank_of(command[i]));
    return ranks;
  }
  [[nodiscard]] std::string text_of(MemberSet set) const {
    std::vector<std::string> names;
    for (const Rank rank : set) names.push_back(names_[rank]);
    return test::join_words(names);
  }
  [[nodiscard]] std::string text_of(const Decision& decision) const {
    return text_of(decision.survivors) + " go on" +
           (decision.plan == kNoPlan ? "" : " with plan " + std::to_string(decision.plan)) +
           ", messages that count: " + group::text_of(decision.trim);
  }

  std::string members(const Command& command) {
    names_.assign(command.begin() + 1, command.end());
    const auto count = static_cast<std::uint32_t>(names_.size());
    for (Rank rank = 0; rank < count; ++rank) {
      members_.push_back({.change = ViewChange(count, rank),
                          .heard = std::vector<Row>(count),
                          .received = std::vector<std::uint64_t>(count)});
      for (Row& row : members_.back().heard) row.received.assign(count, 0);
    }
    return {};
  }
  std::string received(const Command& command) {
    Member& member = members_[rank_of(command.at(1))];
    for (std::size_t i = 2; i < command.size(); ++i)
      member.received.at(i - 2) = std::stoull(command[i]);
    return {};
  }
  std::string crash(const Command& command) {
    for (const Rank rank : ranks_of(command, 1)) members_[rank].runs = false;
    return {};
  }
  /// failed a at b c
  std::string failed(const Command& command) {
    const auto at = static_cast<std::size_t>(std::ranges::find(command, "at") - command.begin());
    const Command dead(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(at));
    for (const Rank rank : ranks_of(command, at + 1))
      for (const Rank failed : ranks_of(dead, 1)) members_[rank].failed.add(failed);
    return {};
  }
  /// Neither hears of the other any more, nor does it notice that yet.
  std::string cut(const Command& command) {
    const Rank one = rank_of(command.at(1));
    const Rank other = rank_of(command.at(2));
    members_[one].cut_off.add(other);
    members_[other].cut_off.add(one);
    return {};
  }
  std::string leave(const Command& command) {
    members_[rank_of(command.at(1))].leaves = true;
    return {};
  }
  /// plan a 7: a's plan is ready; plan a none: it is void.
  std::string plan(const Command& command) {
    members_[rank_of(command.at(1))].plan =
        command.at(2) == "none" ? kNoPlan : std::stoull(command.at(2));
    return {};
  }
  /// hear b a c: b hears what a and c have published.
  std::string receive(const Command& command) {
    const Rank who = rank_of(command.at(1));
    for (const Rank from : ranks_of(command, 2)) receive(who, from);
    return {};
  }
  std::string step(const Command& command) {
    std::string text;
    for (const Rank rank : ranks_of(command, 1)) {
      const std::string done = step(rank);
      text += done.empty() ? names_[rank] + " does nothing\n" : done;
    }
    return text;
  }
  /// All that run hear each other and step, until nothing changes.
  std::string settle(const Command&) {
    std::string text;
    for (bool again = true; again;) {
      again = false;
      for (Rank rank = 0; rank < members_.size(); ++rank) {
        if (!members_[rank].runs) continue;
        for (Rank other = 0; other < members_.size(); ++other)
          if (other != rank && members_[other].runs && !members_[rank].cut_off.has(other))
            receive(rank, other);
        const std::string done = step(rank);
        again |= !done.empty();
        text += done;
      }
    }
    return text.empty() ? "nothing changes\n" : text;
  }

  void receive(Rank who, Rank from) { members_[who].heard[from] = members_[from].change.mine(); }

  /// As Agreement does: until the row changes no more, and then it is published.
  std::string step(Rank rank) {
    Member& member = members_[rank];
    if (!member.runs) throw std::runtime_error("'" + names_[rank] + "' has crashed");
    const Row before = member.change.mine();
    const ViewState stood = member.change.state();
    while (member.change.step([&](Rank other) -> const Row& { return member.heard[other]; },
                              {.failed = member.failed,
                               .wants_to_leave = member.leaves,
                               .received = member.received,
                               .plan = member.plan})) {
    }
    return difference(rank, before, stood);
  }
  [[nodiscard]] std::string difference(Rank rank, const Row& before, ViewState stood) const {
    const Row& now = members_[rank].change.mine();
    const ViewState stands = members_[rank].change.state();
    const std::string who = names_[rank];
    std::string text;
    if (const MemberSet more = now.suspects - before.suspects; !more.empty())
      text += who + " suspects " + text_of(more) + "\n";
    if (now.leaving && !before.leaving) text += who + " wants to leave\n";
    if (now.promised != before.promised)
      text += who + " promises to follow " + names_[now.promised - 1] +
              (before.promised == 0 ? ", having received " + group::text_of(now.received) : "") +
              "\n";
    if (now.accepted != before.accepted) {
      const Rank led = now.accepted - 1;
      text += led == rank ? who + " proposes: " + text_of(now.proposal) + "\n"
                          : who + " accepts what " + names_[led] + " proposes\n";
    }
    if (stands == stood) return text;
    if (stands == ViewState::decided)
      text += who + " enters the next view: " + text_of(now.proposal) + "\n";
    if (stands == ViewState::excluded)
      text += who + " learns that it is in no view: " + text_of(now.proposal) + "\n";
    if (stands == ViewState::minority) text += who + " stops: too few are left\n";
    return text;
  }

  std::vector<std::string> names_;
  std::vector<Member> members_;
};

TEST(ViewChange, DoesWhatItsScenariosSay) {
  test::run_scenarios(DUNLIN_SCENARIOS "/view_change", [] {
    const auto scenario = std::make_shared<Scenario>();
    return [scenario](const Command& command) { return scenario->execute(command); };
  });
}

}  // namespace
}  // namespace dunlin::group
