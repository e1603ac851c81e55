#include "sim/audit.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace dunlin::app::sim {
namespace {

using Entries = std::span<const SubgroupLog::Entry>;

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string text_of(const View& view) {
  return fmt::format("view {} of {}", view.number, fmt::join(view.members, " "));
}

/// Numbers go up by one, each member is in its own views, and each view names its new members.
std::string fault_in_views(const NodeLog& node) {
  for (std::size_t i = 0; i < node.views.size(); ++i) {
    const View& view = node.views[i];
    const std::uint64_t expected = node.founder ? i + 1 : node.views.front().number + i;
    if (view.number != expected)
      return fmt::format("{} came to {} after {} views", node.name, text_of(view), i);
    if (!has(view.members, node.name))
      return fmt::format("{} is not in its own {}", node.name, text_of(view));
    for (const std::string& member : view.members)
      if (i > 0 && !has(node.views[i - 1].members, member) && !has(view.joined, member))
        return fmt::format("{} saw {} come back in {}", node.name, member, text_of(view));
  }
  return "";
}

const View* view_of(const NodeLog& node, std::uint64_t number) {
  const auto found = std::ranges::find(node.views, number, &View::number);
  return found == node.views.end() ? nullptr : &*found;
}

/// There is one view of each number.
std::string fault_between_views(const NodeLog& one, const NodeLog& other) {
  for (const View& view : one.views) {
    const View* const theirs = view_of(other, view.number);
    if (theirs != nullptr && theirs->members != view.members)
      return fmt::format("{} has {}, {} has {}", one.name, text_of(view), other.name,
                         text_of(*theirs));
  }
  return "";
}

/// Every message of each sender must be delivered once, in order.
std::string fault_in_order_of_senders(const NodeLog& node, const SubgroupLog& log,
                                      const std::string& subgroup) {
  std::map<std::uint32_t, std::uint64_t> next;
  for (const SubgroupLog::Entry& entry : log.delivered) {
    std::uint64_t& expected = next[entry.message.node];
    if (entry.message.index != expected)
      return fmt::format("{} delivered message {} of node {} in '{}', and not {}", node.name,
                         entry.message.index, entry.message.node, subgroup, expected);
    ++expected;
  }
  return "";
}

Entries of_view(const SubgroupLog& log, std::uint64_t view) {
  const auto before = [](const SubgroupLog::Entry& entry, std::uint64_t number) {
    return entry.view < number;
  };
  const auto first = std::lower_bound(log.delivered.begin(), log.delivered.end(), view, before);
  const auto last = std::lower_bound(first, log.delivered.end(), view + 1, before);
  return {first, last};
}

bool is_prefix(Entries shorter, Entries longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

/// A member that went on from a view has delivered in it all that any member has, in the same
/// order.
std::string fault_of_virtual_synchrony(const NodeLog& survivor, const NodeLog& other,
                                       std::size_t subgroup, const std::string& name) {
  const SubgroupLog& theirs = other.subgroups[subgroup];
  const SubgroupLog& ours = survivor.subgroups[subgroup];
  if (!theirs.member || !ours.member) return "";
  const std::uint64_t last = std::min(other.last_view(), survivor.last_view());
  for (std::uint64_t view = std::max(theirs.from_view, ours.from_view); view <= last; ++view) {
    const Entries here = of_view(ours, view);
    const Entries there = of_view(theirs, view);
    const bool went_on = view < std::min(survivor.last_view(), ours.in_view);
    const bool fits = is_prefix(there, here) || (!went_on && is_prefix(here, there));
    if (!fits)
      return fmt::format("in view {}, '{}', {} delivered {} messages, and {} {}, which is not {}",
                         view, name, survivor.name, here.size(), other.name, there.size(),
                         went_on ? "the beginning of that" : "the same order");
  }
  return "";
}

/// Everybody that is left is in the last view, which has nobody else.
std::string fault_of_membership(const Record& record) {
  std::uint64_t last = 0;
  for (const NodeLog& node : record.nodes)
    if (!node.dead && !node.ended) last = std::max(last, node.last_view());
  for (const NodeLog& node : record.nodes) {
    if (node.dead || node.ended || (last == 0 && node.waits)) continue;
    if (node.waits) return fmt::format("{} waits to come in, and view {} goes on", node.name, last);
    if (node.views.empty()) continue;  // the node has not asked to come in
    if (node.last_view() != last)
      return fmt::format("{} stays in view {}, and others are in view {}", node.name,
                         node.last_view(), last);
    for (const NodeLog& other : record.nodes)
      if ((other.dead || other.ended) && has(node.views.back().members, other.name))
        return fmt::format("{} waits in {} for {}, which is gone", node.name,
                           text_of(node.views.back()), other.name);
  }
  return "";
}

/// Nobody stops as long as more than half of its view are there.
std::string fault_of_stopping(const Record& record) {
  for (const NodeLog& node : record.nodes) {
    if (node.dead || node.left || node.lost_state || !node.ended || node.views.empty()) continue;
    const View& view = node.views.back();
    const auto there = std::ranges::count_if(record.nodes, [&](const NodeLog& other) {
      return !other.dead && !other.lost_state && has(view.members, other.name);
    });
    if (2 * static_cast<std::size_t>(there) > view.members.size())
      return fmt::format("{} stopped in {}, of which {} were there", node.name, text_of(view),
                         there);
  }
  return "";
}

/// All remaining members have delivered all messages that remaining members sent.
std::string fault_of_progress(const Record& record, std::size_t subgroup, const std::string& name) {
  const auto takes_part = [&](const NodeLog& node) {
    return !node.dead && !node.ended && !node.views.empty() && node.subgroups[subgroup].member;
  };
  for (std::uint32_t from = 0; from < record.nodes.size(); ++from) {
    const NodeLog& sender = record.nodes[from];
    if (!takes_part(sender)) continue;
    for (const NodeLog& node : record.nodes) {
      if (!takes_part(node)) continue;
      const auto count = static_cast<std::uint64_t>(std::count_if(
          node.subgroups[subgroup].delivered.begin(), node.subgroups[subgroup].delivered.end(),
          [&](const auto& entry) { return entry.message.node == from; }));
      if (count != sender.subgroups[subgroup].accepted)
        return fmt::format("{} delivered {} of the {} messages of {} in '{}'", node.name, count,
                           sender.subgroups[subgroup].accepted, sender.name, name);
    }
  }
  return "";
}

/// Nobody is sent away for want of a log that somebody has.
std::string fault_of_refusal(const Record& record, const NodeLog& node) {
  for (std::size_t i = 0; i < record.subgroups.size(); ++i) {
    if (record.subgroups[i].name != node.lacks_log) continue;
    for (const NodeLog& other : record.nodes)
      if (!other.dead && !other.ended && !other.subgroups[i].delivered.empty())
        return fmt::format("{} left as nobody has the log of '{}', and {} has it", node.name,
                           node.lacks_log, other.name);
  }
  return "";
}

std::string fault_of_node(const Record& record, const NodeLog& node) {
  std::string fault = fault_in_views(node);
  for (std::size_t i = 0; i < record.subgroups.size() && fault.empty(); ++i)
    fault = fault_in_order_of_senders(node, node.subgroups[i], record.subgroups[i].name);
  return fault;
}

std::string fault_of_pair(const Record& record, const NodeLog& one, const NodeLog& other) {
  std::string fault = fault_between_views(one, other);
  for (std::size_t i = 0; i < record.subgroups.size() && fault.empty(); ++i)
    if (record.subgroups[i].mode != multicast::Mode::unordered)
      fault = fault_of_virtual_synchrony(one, other, i, record.subgroups[i].name);
  return fault;
}

}  // namespace

std::string find_fault(const Record& record, bool at_rest) {
  for (const NodeLog& node : record.nodes)
    if (std::string fault = fault_of_node(record, node); !fault.empty()) return fault;
  for (const NodeLog& one : record.nodes)
    for (const NodeLog& other : record.nodes)
      if (std::string fault = fault_of_pair(record, one, other); !fault.empty()) return fault;
  if (!at_rest) return "";
  std::string fault = fault_of_membership(record);
  for (const NodeLog& node : record.nodes)
    if (fault.empty()) fault = fault_of_refusal(record, node);
  if (fault.empty() && record.clear_cut) fault = fault_of_stopping(record);
  for (std::size_t i = 0; i < record.subgroups.size() && fault.empty(); ++i)
    fault = fault_of_progress(record, i, record.subgroups[i].name);
  return fault;
}

}  // namespace dunlin::app::sim
