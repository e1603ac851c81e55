#include "top/sample.hpp"

#include <algorithm>
#include <tuple>

#include <unistd.h>

#include "fabric/mapping/base.hpp"
#include "top/table_reader.hpp"

namespace dunlin::top {
namespace {

template <class Things, class Same>
auto find(Things& things, Same same) -> decltype(things.data()) {
  const auto found = std::find_if(things.begin(), things.end(), same);
  return found == things.end() ? nullptr : &*found;
}

std::optional<LoopSample> read_loop(std::span<const std::byte> payload) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(payload.data()) % kWordBytes == 0;
  if (!aligned || payload.size() < sizeof(mapping::Base)) return std::nullopt;
  const auto& base = *reinterpret_cast<const mapping::Base*>(payload.data());
  LoopSample loop{.asleep = memory::load(base.sleeping) != 0,
                  .last_watch_ns = memory::load(base.last_watch_ns)};
  for (Rank rank = 0; rank < kMaxHostMembers; ++rank) {
    const std::uint64_t marks = memory::load(base.failed_peers[rank / 64]);
    if ((marks >> (rank % 64) & 1) != 0) loop.failed_peers.push_back(rank);
  }
  return loop;
}

bool is_of(const Segment& segment, const Group& group) {
  return segment.info.group == group.name && segment.access == group.access &&
         segment.info.fabric == group.fabric;
}

Group& group_of(Sample& sample, const Segment& segment) {
  const auto same = [&](const Group& g) { return is_of(segment, g); };
  if (Group* group = find(sample.groups, same)) return *group;
  return sample.groups.emplace_back(Group{.name = segment.info.group,
                                          .access = segment.access,
                                          .fabric = segment.info.fabric,
                                          .size = 0});
}

void add_member(Group& group, const Segment& segment, const ProcessReader& process) {
  group.size = std::max(group.size, segment.info.members);
  const auto same = [&](const Member& m) { return m.incarnation == segment.info.incarnation; };
  Member* member = find(group.members, same);
  if (member == nullptr) {
    member = &group.members.emplace_back(Member{.rank = segment.info.owner_rank,
                                                .name = segment.info.member,
                                                .pid = segment.pid,
                                                .incarnation = segment.info.incarnation,
                                                .process = process(segment.pid)});
  }
  if (segment.info.kind == mapping::MappingKind::base) member->loop = read_loop(segment.payload);
}

void add_counters(Group& group, const Segment& segment, std::vector<std::string>& remarks) {
  if (segment.info.kind != mapping::MappingKind::published ||
      segment.info.region != counter_page::kRegion)
    return;
  std::optional<CounterPageView> page = read_counters(segment.payload);
  if (!page || page->damaged != 0)
    remarks.push_back((page ? "Some" : "The") + std::string(" counters of process ") +
                      std::to_string(segment.pid) + " (rank " +
                      std::to_string(segment.info.owner_rank) + " of group '" + segment.info.group +
                      "') are damaged, or of another version.");
  if (!page) return;
  for (CounterView& view : page->counters)
    group.counters.push_back({.rank = segment.info.owner_rank,
                              .incarnation = segment.info.incarnation,
                              .view = std::move(view)});
}

void sort(Sample& sample) {
  for (Group& group : sample.groups) {
    std::sort(group.members.begin(), group.members.end(), [](const Member& a, const Member& b) {
      return std::tie(a.rank, a.pid, a.incarnation) < std::tie(b.rank, b.pid, b.incarnation);
    });
    std::sort(group.tables.begin(), group.tables.end(), [](const Table& a, const Table& b) {
      return std::tie(a.name, a.generation, a.layout_hash) <
             std::tie(b.name, b.generation, b.layout_hash);
    });
  }
  std::sort(sample.groups.begin(), sample.groups.end(), [](const Group& a, const Group& b) {
    return std::tie(a.name, a.access, a.fabric) < std::tie(b.name, b.access, b.fabric);
  });
}

void compare_tables(const Group& before, Table& after, double seconds) {
  const Table* old = find(before.tables, [&](const Table& t) {
    return t.name == after.name && t.generation == after.generation &&
           t.layout_hash == after.layout_hash;
  });
  if (old == nullptr) return;
  for (Node& node : after.nodes) {
    const Node* old_node =
        find(old->nodes, [&](const Node& n) { return n.incarnation == node.incarnation; });
    if (old_node != nullptr && old_node->counters && node.counters)
      node.counters->compare(*old_node->counters, seconds);
    if (old_node != nullptr && old_node->multicast && node.multicast)
      node.multicast->compare(*old_node->multicast, seconds);
  }
}

void compare_members(const Group& before, Member& after, double seconds) {
  const Member* old =
      find(before.members, [&](const Member& m) { return m.incarnation == after.incarnation; });
  if (old == nullptr || !old->process || !after.process) return;
  const ProcessSample& then = *old->process;
  const ProcessSample& now = *after.process;
  if (then.born_ticks != now.born_ticks || then.cpu_ticks > now.cpu_ticks || seconds <= 0) return;
  const double cpu_s = static_cast<double>(now.cpu_ticks - then.cpu_ticks) /
                       static_cast<double>(sysconf(_SC_CLK_TCK));
  after.cpu_percent = 100 * cpu_s / seconds;
}

}  // namespace

const Member* Group::member(Rank rank) const {
  return find(members, [&](const Member& m) { return m.rank == rank; });
}

std::string Group::name_of(Rank rank) const {
  const Member* found = member(rank);
  return found == nullptr || found->name.empty() ? std::to_string(rank) : found->name;
}

const Node* Table::node(Rank rank) const {
  return find(nodes, [&](const Node& n) { return n.rank == rank; });
}

std::optional<Rank> Table::slowest() const {
  const Node* slowest = nullptr;
  for (const Node& node : nodes) {
    if (!node.multicast || behind(*node.multicast) == 0) continue;
    if (slowest == nullptr || node.multicast->progress < slowest->multicast->progress)
      slowest = &node;
  }
  return slowest == nullptr ? std::nullopt : std::optional(slowest->rank);
}

std::uint64_t Table::behind(const MulticastSample& member) const {
  std::uint64_t most = member.progress;
  for (const Node& node : nodes)
    if (node.multicast) most = std::max(most, node.multicast->progress);
  return most - member.progress;
}

Sample take_sample(std::span<const Segment> segments, std::uint64_t now_ns,
                   const ProcessReader& process) {
  Sample sample{.now_ns = now_ns};
  for (const Segment& segment : segments) {
    add_member(group_of(sample, segment), segment, process);
  }
  for (Group& group : sample.groups) {
    std::vector<const Segment*> parts;
    for (const Segment& segment : segments) {
      if (!is_of(segment, group)) continue;
      parts.push_back(&segment);
      add_counters(group, segment, sample.remarks);
    }
    std::ranges::stable_sort(group.counters, {}, [](const MemberCounter& counter) {
      return std::tie(counter.rank, counter.incarnation, counter.view.serial);
    });
    group.tables = read_tables(parts, CounterIndex(group.counters), now_ns, sample.remarks);
  }
  sort(sample);
  return sample;
}

void compare(const Sample& before, Sample& after) {
  const double seconds = static_cast<double>(after.now_ns - before.now_ns) * 1e-9;
  after.interval_s = seconds;
  for (Group& group : after.groups) {
    const Group* old = find(before.groups, [&](const Group& g) {
      return g.name == group.name && g.access == group.access && g.fabric == group.fabric;
    });
    if (old == nullptr) continue;
    for (Member& member : group.members) compare_members(*old, member, seconds);
    for (Table& table : group.tables) compare_tables(*old, table, seconds);
    compare(old->counters, group.counters, seconds);
  }
}

}  // namespace dunlin::top
