#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "multicast/restart.hpp"
#include "support/scenario.hpp"

/// Whose log counts after a restart, and what the others do with theirs, command by command;
/// scenarios/equal_logs/README.md has the commands.
namespace dunlin::multicast {
namespace {

using test::Command;

/// Of a text: any function will do that tells apart what differs.
[[nodiscard]] std::uint64_t chain_over(std::uint64_t chain, const std::string& record) {
  for (const char c : record) chain = (chain ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return chain;
}

/// One member's log: a record is a message, or a view with its members, "[3:a,b]".
struct Log {
  std::vector<std::string> records;

  [[nodiscard]] std::uint64_t chain_before(std::uint64_t number) const {
    std::uint64_t chain = 0;
    for (std::uint64_t i = 1; i < number && i <= records.size(); ++i)
      chain = chain_over(chain, records[i - 1]);
    return chain;
  }
  [[nodiscard]] LogPlace place(std::uint64_t number) const {
    return {number, chain_before(number)};
  }
  [[nodiscard]] std::string text(std::uint64_t from, std::uint64_t to) const {
    return test::join_words({records.begin() + static_cast<std::ptrdiff_t>(from - 1),
                             records.begin() + static_cast<std::ptrdiff_t>(to - 1)});
  }
};

[[nodiscard]] LoggedView view_of(const std::string& record, LogPlace place) {
  LoggedView view{.place = place};
  view.number = std::stoull(record.substr(1));
  std::string name;
  for (const char c : record.substr(record.find(':') + 1)) {
    if (c != ',' && c != ']') {
      name += c;
    } else {
      view.members.push_back(std::exchange(name, {}));
    }
  }
  return view;
}

class Scenario {
 public:
  std::string execute(const Command& command) {
    if (command.front() == "restart") return restart();
    LogReport& report = report_of(command.at(1));
    const Command rest(command.begin() + 2, command.end());
    if (command.front() == "log")
      logs_[command[1]].records = rest;
    else if (command.front() == "live")
      report.live = true;
    else if (command.front() == "given_up")
      report.given_up = rest;
    else if (command.front() == "had_members")
      report.past.had_members = true;
    else if (command.front() == "saw_all")
      report.past = {.had_members = true, .saw_all = true, .departed = rest};
    else
      throw std::runtime_error("there is no such command");
    return {};
  }

 private:
  LogReport& report_of(const std::string& member) {
    const auto found = std::ranges::find(reports_, member, &LogReport::member);
    if (found != reports_.end()) return *found;
    reports_.push_back({.member = member, .end = {}});
    return reports_.back();
  }

  std::string restart() {
    for (LogReport& report : reports_) {
      const Log& log = logs_[report.member];
      report.views.clear();
      for (std::uint64_t number = 1; number <= log.records.size(); ++number)
        if (log.records[number - 1].starts_with('['))
          report.views.push_back(view_of(log.records[number - 1], log.place(number)));
      report.end = log.place(log.records.size() + 1);
    }
    const LogChoice choice = choose_log(reports_);
    if (!choice.refusal.empty()) return "nobody begins: " + choice.refusal + "\n";
    const LogReport& source = reports_[choice.source];
    const Log& chosen = logs_[source.member];
    std::string text = "the log of " + source.member + " counts\n";
    if (!choice.heirs.empty())
      text += "may go on with it before the view begins: " + test::join_words(choice.heirs) + "\n";
    for (const LogReport& report : reports_)
      if (&report != &source) text += report.member + take(source, chosen, report) + "\n";
    return text;
  }
  /// As LogAgreement does, record by record.
  [[nodiscard]] std::string take(const LogReport& source, const Log& chosen,
                                 const LogReport& member) {
    const Log& own = logs_[member.member];
    std::uint64_t from = common_prefix_end(
        source, member, [&](std::uint64_t number) { return chosen.chain_before(number); });
    while (from < source.end.number && from < member.end.number &&
           chosen.records[from - 1] == own.records[from - 1])
      ++from;
    if (from < member.end.number && has_begun_view(member, from))
      return " leaves: its records from " + std::to_string(from) + " on counted (" +
             own.text(from, member.end.number) + ")";
    std::string text;
    if (from < member.end.number) text += " cuts off " + own.text(from, member.end.number);
    if (from < source.end.number)
      text += (text.empty() ? " takes " : ", and takes ") + chosen.text(from, source.end.number);
    return text.empty() ? " has the same" : text;
  }

  std::vector<LogReport> reports_;
  std::map<std::string, Log> logs_;
};

TEST(EqualLogs, AreMadeAsTheScenariosSay) {
  test::run_scenarios(DUNLIN_SCENARIOS "/equal_logs", [] {
    const auto scenario = std::make_shared<Scenario>();
    return [scenario](const Command& command) { return scenario->execute(command); };
  });
}

}  // namespace
}  // namespace dunlin::multicast
