#include "sim/disks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "multicast/journal.hpp"
#include "multicast/restart.hpp"
#include "sim/messages.hpp"

namespace dunlin::app::sim {
namespace {

struct Found {
  multicast::LogReport report;
  std::vector<MessageId> messages;
};

Found read(const std::shared_ptr<log::SimulatedDisk>& disk, const std::string& member,
           const std::string& group, const std::string& subgroup) {
  multicast::Journal journal(disk, subgroup, group + "/" + subgroup);
  multicast::JournalState state = journal.read_state(false);
  Found found{.report = {.member = member, .end = state.end, .views = std::move(state.views)},
              .messages = {}};
  const auto take = [&](const multicast::Logged& logged) {
    found.messages.push_back(id_of(logged.message));
  };
  multicast::Replay replay = journal.replay();
  while (replay.step(take, multicast::kRecordsAtOnce)) {
  }
  return found;
}

bool begins_with(const std::vector<MessageId>& log, const SubgroupLog& seen) {
  return seen.delivered.size() <= log.size() &&
         std::ranges::equal(seen.delivered, std::span(log).first(seen.delivered.size()), {},
                            &SubgroupLog::Entry::message);
}

}  // namespace

Disks::Disks(std::uint32_t members, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < members; ++i) {
    disks_.push_back(std::make_shared<log::SimulatedDisk>(seed * 64 + i));
    disks_.back()->latency(3'000, (1 + (seed + i) % 5) * 40'000);
  }
}

std::vector<MulticastOptions> Disks::options(std::uint32_t member,
                                             std::vector<MulticastOptions> options,
                                             const std::vector<SubgroupPlan>& subgroups) const {
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i].mode != multicast::Mode::durable) continue;
    options[i].log_directory = subgroups[i].name;
    options[i].log_disk = disks_[member];
  }
  return options;
}

std::string Disks::crash_all_and_find_fault(const Record& record, const std::string& group) {
  for (const auto& disk : disks_) disk->crash();
  for (std::size_t i = 0; i < record.subgroups.size(); ++i) {
    if (record.subgroups[i].mode != multicast::Mode::durable) continue;
    const std::string& subgroup = record.subgroups[i].name;
    std::vector<Found> logs;
    std::vector<multicast::LogReport> reports;
    for (std::size_t member = 0; member < disks_.size(); ++member) {
      const NodeLog& node = record.nodes[member];
      logs.push_back(read(disks_[member], node.name, group, subgroup));
      reports.push_back(logs.back().report);
      if (!begins_with(logs.back().messages, node.subgroups[i]))
        return fmt::format("{} delivered {} messages in '{}', which its log does not begin with",
                           node.name, node.subgroups[i].delivered.size(), subgroup);
    }
    const multicast::LogChoice choice = multicast::choose_log(reports);
    if (!choice.refusal.empty()) return fmt::format("'{}': {}", subgroup, choice.refusal);
    for (const NodeLog& node : record.nodes)
      if (!begins_with(logs[choice.source].messages, node.subgroups[i]))
        return fmt::format("all crash, and what {} delivered in '{}' is not in the log of {}",
                           node.name, subgroup, record.nodes[choice.source].name);
  }
  return "";
}

}  // namespace dunlin::app::sim
