#include "sim/restart.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <set>

#include <fmt/format.h>

#include <dunlin/fabric/sim.hpp>

#include "sim/messages.hpp"

namespace dunlin::app::sim {
namespace {

constexpr std::uint64_t kEnoughNs = 200'000'000;  // for a new start, and a message of each member
constexpr std::uint32_t kUntilCrashNs = 600'000;  // at most
constexpr std::uint64_t kFirstIndex = 1'000'000'000;  // higher than any before the restart
constexpr std::size_t kBytes = 40;

std::vector<SubgroupSpec> durable_of(const std::vector<SubgroupSpec>& specs,
                                     const std::vector<MulticastOptions>& options) {
  std::vector<SubgroupSpec> durable;
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (options[i].mode == multicast::Mode::durable) durable.push_back(specs[i]);
  return durable;
}

/// The state that messages_in() reads.
std::vector<std::byte> state_of(const std::vector<MessageId>& messages) {
  std::vector<std::uint64_t> words{0};
  for (const MessageId& id : messages) words.insert(words.end(), {0, id.node, id.index});
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

/// A member that has started again: it sends one message in each durable subgroup.
class Restarted {
 public:
  Restarted(Fabric& fabric, const std::vector<SubgroupSpec>& specs,
            const std::vector<MulticastOptions>& options, std::uint64_t index)
      : id_{.node = fabric.rank(), .index = index},
        group_(fabric, {.subgroups = durable_of(specs, options)}),
        casts_(specs.size()),
        given(specs.size()) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (options[i].mode != multicast::Mode::durable) continue;
      casts_[i] = std::make_unique<Multicast>(group_, specs[i].name, options[i]);
      std::vector<MessageId>& mine = given[i];
      if (options[i].log_trim.every_bytes > 0)
        casts_[i]->on_state(
            [&mine] { return state_of(mine); },
            [&mine](std::span<const std::byte> state) { mine = messages_in(state); });
      casts_[i]->on_replay(
          [&mine](const multicast::Logged& logged) { mine.push_back(id_of(logged.message)); });
      casts_[i]->on_delivery([&mine](std::span<const multicast::Delivery> batch) {
        for (const auto& delivery : batch) mine.push_back(id_of(delivery.message));
      });
      const auto named = [&](const std::vector<std::string>& names) {
        return names.empty() || std::ranges::count(names, fabric.member_name(fabric.rank())) > 0;
      };
      if (named(specs[i].members) && named(specs[i].senders)) to_send_.push_back(i);
    }
  }

  std::size_t poll() {
    const std::size_t done = group_.poll();
    if (to_send_.empty()) return done;
    Multicast& cast = *casts_[to_send_.back()];
    if (cast.send(make_message(id_, kBytes)) != multicast::SendResult::sent) return done;
    to_send_.pop_back();
    return done + 1;
  }

 private:
  MessageId id_;
  Group group_;
  std::vector<std::unique_ptr<Multicast>> casts_;  // by subgroup; null: it is not durable
  std::vector<std::size_t> to_send_;

 public:
  std::vector<std::vector<MessageId>> given;  // by subgroup: replayed, and delivered
};

bool is_prefix(const std::vector<MessageId>& shorter, const std::vector<MessageId>& longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

std::vector<MessageId> messages_of(const SubgroupLog& log) {
  std::vector<MessageId> messages;
  messages.reserve(log.delivered.size());
  for (const SubgroupLog::Entry& entry : log.delivered) messages.push_back(entry.message);
  return messages;
}

class Restart {
 public:
  Restart(const Record& record, const std::vector<SubgroupSpec>& specs,
          const std::vector<MulticastOptions>& options, Disks& disks)
      : record_(record), specs_(specs), options_(options), disks_(disks), known_(specs.size()) {
    for (std::size_t i = 0; i < specs_.size(); ++i)
      for (const NodeLog& node : record_.nodes) known_[i].push_back(messages_of(node.subgroups[i]));
  }

  std::string run(Draw& draw) {
    std::string fault = run_until_all(draw.below(1U << 31), draw.below(kUntilCrashNs), false);
    disks_.crash();
    if (fault.empty()) fault = run_until_all(draw.below(1U << 31), kEnoughNs, true);
    return fault;
  }

 private:
  using Members = std::vector<std::unique_ptr<Restarted>>;

  std::string run_until_all(std::uint64_t seed, std::uint64_t most_ns, bool all) {
    const auto count = static_cast<std::uint32_t>(record_.nodes.size());
    dunlin::sim::World world(dunlin::sim::profile("ib100"), count, seed);
    Members members;
    std::string fault;
    try {
      for (Rank rank = 0; rank < count; ++rank) {
        members.push_back(std::make_unique<Restarted>(
            world.fabric(rank), specs_, disks_.options(rank, options_, record_.subgroups),
            kFirstIndex + runs_));
        world.attach(rank, [member = members.back().get()] { return member->poll(); });
      }
      ++runs_;
      world.run_until([&] { return all && all_have_all(members); }, most_ns);
    } catch (const std::exception& error) {
      return fmt::format("all start again, and {}", error.what());
    }
    for (std::size_t i = 0; i < specs_.size() && fault.empty(); ++i)
      if (is_durable(i)) fault = fault_in(i, members, all);
    return fault;
  }

  [[nodiscard]] bool is_durable(std::size_t subgroup) const {
    return options_[subgroup].mode == multicast::Mode::durable;
  }
  [[nodiscard]] bool has_all(const Members& members, std::size_t subgroup) const {
    const SubgroupSpec& spec = specs_[subgroup];
    const std::size_t senders = !spec.senders.empty()   ? spec.senders.size()
                                : !spec.members.empty() ? spec.members.size()
                                                        : members.size();
    const auto has = [&](const auto& member) {
      const auto fresh = [&](const MessageId& id) { return id.index == kFirstIndex + runs_ - 1; };
      return static_cast<std::size_t>(std::ranges::count_if(member->given[subgroup], fresh)) ==
             senders;
    };
    for (std::size_t i = 0; i < members.size(); ++i)
      if (record_.nodes[i].subgroups[subgroup].member && !has(members[i])) return false;
    return true;
  }
  [[nodiscard]] bool all_have_all(const Members& members) const {
    for (std::size_t i = 0; i < specs_.size(); ++i)
      if (is_durable(i) && !has_all(members, i)) return false;
    return true;
  }

  /// Compares what all members were given with what they knew before.
  std::string fault_in(std::size_t subgroup, const Members& members, bool all) {
    const std::string& name = specs_[subgroup].name;
    if (all && !has_all(members, subgroup))
      return fmt::format("all start again, and not all of '{}' are heard by all", name);
    std::vector<MessageId> longest;
    for (const auto& member : members)
      if (member->given[subgroup].size() > longest.size()) longest = member->given[subgroup];
    if (std::set(longest.begin(), longest.end()).size() != longest.size())
      return fmt::format("all start again, and a message of '{}' comes twice", name);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string& node = record_.nodes[i].name;
      if (!is_prefix(members[i]->given[subgroup], longest))
        return fmt::format("all start again, and {} is given other messages of '{}'", node, name);
      // A member that was given nothing new may not have been given all yet.
      if (all && !is_prefix(known_[subgroup][i], longest))
        return fmt::format(
            "all start again, and of the {} messages that {} had of '{}' not all "
            "are there",
            known_[subgroup][i].size(), node, name);
      if (members[i]->given[subgroup].size() > known_[subgroup][i].size())
        known_[subgroup][i] = members[i]->given[subgroup];
    }
    return "";
  }

  const Record& record_;
  const std::vector<SubgroupSpec>& specs_;
  const std::vector<MulticastOptions>& options_;
  Disks& disks_;
  std::vector<std::vector<std::vector<MessageId>>> known_;  // by subgroup and member
  std::uint64_t runs_ = 0;
};

}  // namespace

std::string fault_of_restart(const Record& record, const std::vector<SubgroupSpec>& specs,
                             const std::vector<MulticastOptions>& options, Disks& disks,
                             Draw& draw) {
  return Restart(record, specs, options, disks).run(draw);
}

}  // namespace dunlin::app::sim
