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
  Found found{.report = {.member = member,
                         .end = state.end,
                         .first = state.first,
                         .views = std::move(state.views)},
              .messages = {}};
  const auto take = [&](const multicast::Logged& logged) {
    found.messages.push_back(id_of(logged.message));
  };
  if (const auto held = journal.read_state_of_user()) found.messages = messages_in(*held);
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

Disks::Disks(std::uint32_t members, std::uint64_t seed, bool trims)
    : seed_(seed), trims_(trims), may_fail_(members) {
  for (std::uint32_t i = 0; i < members; ++i) {
    disks_.push_back(std::make_shared<log::SimulatedDisk>(seed * 64 + i));
    set_pace(i);
  }
}

void Disks::set_pace(std::uint32_t member) {
  disks_[member]->latency(3'000, (1 + (seed_ + member) % 5) * 40'000);
}

std::string Disks::trouble(std::uint32_t member, Draw& draw) {
  log::SimulatedDisk& disk = *disks_[member];
  const std::uint32_t kind = draw.below(5);
  if (kind < 2) {
    const std::uint32_t most_us = draw.between(200, 5'000);
    disk.latency(most_us * 500, most_us * 1'000);
    return fmt::format("'s disk gets slow, and takes up to {} us", most_us);
  }
  may_fail_[member] = true;
  if (kind == 2) {
    disk.fail_next_sync();
    return "'s disk fails at its next sync";
  }
  if (kind == 3) {
    const std::uint32_t room = draw.below(4'000);
    disk.capacity(disk.used() + room);
    return fmt::format("'s disk is full but for {} bytes", room);
  }
  const std::uint32_t left = draw.between(1, 12);
  disk.crash_after(left);
  return fmt::format("'s disk is lost after {} more operations", left);
}

void Disks::mend() {
  for (std::uint32_t member = 0; member < disks_.size(); ++member) {
    disks_[member]->mend();
    set_pace(member);
  }
}

void Disks::crash() {
  for (const auto& disk : disks_) disk->crash();
}

std::vector<MulticastOptions> Disks::options(std::uint32_t member,
                                             std::vector<MulticastOptions> options,
                                             const std::vector<SubgroupPlan>& subgroups) const {
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i].mode != multicast::Mode::durable) continue;
    options[i].log_directory = subgroups[i].name;
    options[i].log_disk = disks_[member];
    if (trims_) options[i].log_trim.every_bytes = 1'000 + seed_ % 5 * 500;
  }
  return options;
}

std::string Disks::crash_all_and_find_fault(const Record& record, const std::string& group) {
  crash();
  for (std::size_t i = 0; i < record.subgroups.size(); ++i) {
    if (record.subgroups[i].mode != multicast::Mode::durable) continue;
    const std::string& subgroup = record.subgroups[i].name;
    std::vector<Found> logs;
    std::vector<multicast::LogReport> reports;
    for (std::size_t member = 0; member < disks_.size(); ++member) {
      const NodeLog& node = record.nodes[member];
      logs.push_back(read(disks_[member], node.name, group, subgroup));
      reports.push_back(logs.back().report);
      // A member that was given a state, and delivered nothing since, may not have all of the log
      // yet.
      const bool delivered = node.subgroups[i].delivered.size() > node.subgroups[i].loaded;
      if (delivered && !begins_with(logs.back().messages, node.subgroups[i]))
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
