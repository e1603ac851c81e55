#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group.hpp>

#include "group/subgroup_leader.hpp"
#include "support/scenario.hpp"

/// What a leader makes of its members' wishes, command by command; scenarios/subgroup_changes has
/// the stories, and README.md there the commands.
namespace dunlin::group {
namespace {

using test::Command;
using Kind = SubgroupMessage::Kind;

constexpr std::size_t kRoom = 3;

std::string text_of(std::uint64_t generation) {
  return std::to_string(generation >> Subgroup::kChangeBits) + "." +
         std::to_string(generation & ((std::uint64_t{1} << Subgroup::kChangeBits) - 1));
}
std::uint64_t generation_of(const std::string& text) {
  const std::size_t dot = text.find('.');
  return std::stoull(text.substr(0, dot)) << Subgroup::kChangeBits |
         std::stoull(text.substr(dot + 1));
}
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}
std::vector<std::uint64_t> numbers_of(const std::string& text) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& part : parts_of(text)) numbers.push_back(std::stoull(part));
  return numbers;
}

class LeaderScenario {
 public:
  std::string execute(const Command& command) {
    const std::string& what = command.front();
    if (what == "view") {
      names_.assign(command.begin() + 3, command.end());
      staged_.clear();
      reported_.clear();
      slow_ = {};
      leader_.enter(std::stoull(command.at(1)), names_, kRoom);
    } else if (what == "report") {
      leader_.receive(place_of(command.at(1)),
                      {.kind = Kind::report, .reports = staged_[command.at(1)]});
      reported_[command.at(1)] = true;
    } else if (what == "wedged") {
      leader_.receive(place_of(command.at(1)),
                      {.kind = Kind::wedged,
                       .name = command.at(2),
                       .generation = generation_of(command.at(3)),
                       .good = command.back() != "lacks",
                       .received = numbers_of(command.size() > 4 ? command[4] : "")});
    } else if (what == "parted") {
      leader_.receive(place_of(command.at(1)), {.kind = Kind::parted,
                                                .name = command.at(2),
                                                .generation = generation_of(command.at(3))});
    } else if (what == "slow") {
      slow_ = places_of(command.at(1));
    } else if (what == "accepts") {
      accept(place_of(command.at(1)), generation_of(command.at(2)));
    } else {
      wish(command);
    }
    return what_it_says();
  }

 private:
  [[nodiscard]] Rank place_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) throw std::runtime_error("there is no member '" + name + "'");
    return static_cast<Rank>(found - names_.begin());
  }
  [[nodiscard]] MemberSet places_of(const std::string& names) const {
    MemberSet places;
    for (const std::string& name : parts_of(names)) places.add(place_of(name));
    return places;
  }
  [[nodiscard]] std::string text_of_members(MemberSet members) const {
    std::string text;
    for (const Rank place : members) text += (text.empty() ? "" : " ") + names_.at(place);
    return text.empty() ? "nobody" : text;
  }

  void accept(Rank member, std::uint64_t proposal) {
    leader_.receive(member, {.kind = Kind::accepted, .generation = proposal});
  }

  /// Those that are not slow accept at once.
  std::string what_it_says() {
    std::string text;
    for (std::vector<SubgroupLeader::Outgoing> said; !(said = leader_.take()).empty();) {
      for (const SubgroupLeader::Outgoing& outgoing : said) {
        text += told(outgoing);
        if (outgoing.message.kind != Kind::propose) continue;
        for (const Rank member : outgoing.to - slow_) accept(member, outgoing.message.generation);
      }
    }
    return text;
  }

  /// Before its report, a member tells it in that.
  void wish(const Command& command) {
    SubgroupReport report{.name = command.at(2), .attempt = 1, .wants_in = true, .sends = true};
    const std::string& what = command.front();
    if (what == "leave") report.wants_in = false;
    if (what == "remove") {
      report.removes = true;
      report.attempt = 0;
    }
    const bool has_change = what == "has" || what == "accepted";
    if (what != "leave" && what != "remove" && what != "join" && !has_change)
      throw std::runtime_error("there is no such command");
    if (has_change) report.generation = generation_of(command.at(3));
    report.accepted = what == "accepted";
    for (const std::string& word : command) {
      const std::size_t equals = word.find('=');
      const std::string value = word.substr(equals == std::string::npos ? 0 : equals + 1);
      if (word == "reads") report.sends = false;
      if (word == "leaves") report.wants_in = false;
      if (word == "removes") report.removes = true;
      if (word == "lacks") report.lacks_state = true;
      if (word.starts_with("options=")) report.options = value;
      if (word.starts_with("founders=")) report.founders = parts_of(value);
      if (word.starts_with("members=")) report.members = places_of(value);
      if (word.starts_with("received=")) report.received = numbers_of(value);
      if (!word.starts_with("end=")) continue;
      const std::size_t colon = value.find(':');
      report.ends.push_back(
          {generation_of(value.substr(0, colon)), numbers_of(value.substr(colon + 1))});
    }
    if (reported_[command.at(1)])
      leader_.receive(place_of(command.at(1)), {.kind = Kind::request, .reports = {report}});
    else
      staged_[command.at(1)].push_back(report);
  }

  [[nodiscard]] std::string told(const SubgroupLeader::Outgoing& outgoing) const {
    const SubgroupMessage& message = outgoing.message;
    const std::string to = "to " + text_of_members(outgoing.to) + ": ";
    if (message.kind == Kind::ask) return to + "report\n";
    if (message.kind == Kind::wedge)
      return to + "wedge " + message.name + " " + text_of(message.generation) + "\n";
    if (message.kind == Kind::refused)
      return to + message.name + ": " + (message.text.empty() ? "it is out" : message.text) + "\n";
    if (message.kind == Kind::decide) return to + text_of(message.generation) + " is decided\n";
    std::string text;
    for (const SubgroupChange& change : message.changes) {
      text += to + change.name + " " + text_of(change.generation) + " of " +
              text_of_members(change.members) + ", senders " + text_of_members(change.senders) +
              ", stay " + text_of_members(change.stay) +
              (change.anew.empty() ? "" : ", anew " + text_of_members(change.anew)) + "\n";
      for (const SubgroupEnd& end : change.ends) {
        text += "  " + text_of(end.generation) + " ends with";
        for (const std::uint64_t count : end.trim) text += " " + std::to_string(count);
        text += "\n";
      }
    }
    return message.good ? text + to + "that is all there is\n" : text;
  }

  SubgroupLeader leader_;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<SubgroupReport>> staged_;
  std::map<std::string, bool> reported_;
  MemberSet slow_;
};

TEST(SubgroupLeader, DoesWhatItsScenariosSay) {
  test::run_scenarios(DUNLIN_SCENARIOS "/subgroup_changes", [] {
    const auto scenario = std::make_shared<LeaderScenario>();
    return [scenario](const Command& command) { return scenario->execute(command); };
  });
}

}  // namespace
}  // namespace dunlin::group
