#include "sim/scenario.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>

#include <fmt/format.h>

#include "sim/disks.hpp"
#include "sim/draw.hpp"
#include "sim/node.hpp"
#include "sim/restart.hpp"

namespace dunlin::app::sim {
namespace {

using dunlin::sim::Profile;
using dunlin::sim::World;

// Bounds, in virtual time. The first one includes noticing failures, which takes a millisecond.
constexpr std::uint64_t kRestNs = 60'000'000;  // from the last fault until everybody has all
// One more message of each member takes, for each member, at most so long, and, for each member and
// piece, so many polls of each; with logs, kDiskFactor times as much.
constexpr std::uint64_t kLastNs = 1'000'000;
constexpr std::uint64_t kLastPolls = 500;
constexpr std::uint64_t kDiskFactor = 10;
constexpr std::uint64_t kSilenceNs = 20'000'000;  // during which nothing may be posted

const char* name_of(multicast::Mode mode) {
  switch (mode) {
    case multicast::Mode::unordered:
      return "unordered";
    case multicast::Mode::ordered:
      return "ordered";
    default:
      return "durable";
  }
}

/// Networks as they are, and as unkind as the rules allow.
Profile draw_profile(Draw& draw) {
  const std::vector<Profile>& all = dunlin::sim::profiles();
  Profile profile = all[draw.below(static_cast<std::uint32_t>(all.size()))];
  if (draw.one_in(2)) {
    profile.jitter = 0.9;
    profile.ordered_placement = false;
  }
  if (draw.one_in(3)) profile.queue_slots = draw.between(24, 64);
  return profile;
}

class Scenario {
 public:
  Scenario(std::uint64_t seed, Trace trace, const Kinds& kinds)
      : draw_(seed),
        trace_(std::move(trace)),
        members_(draw_.between(2, 6)),
        world_(draw_profile(draw_), members_, seed),
        disk_draw_(seed + (std::uint64_t{1} << 40)),
        late_draw_(seed + (std::uint64_t{1} << 41)),
        late_(kinds.joins && late_draw_.one_in(3) ? late_draw_.between(1, 3) : 0),
        disks_(members_ + late_, seed, (late_ > 0 || kinds.changing) && seed % 3 == 0),
        dead_(members_ + late_),
        left_(members_ + late_),
        clear_cut_(draw_.one_in(6)) {
    for (std::uint32_t i = 0; i < late_; ++i) world_.add_node();
    draw_subgroups(!kinds.changing);
    disk_faults_ = kinds.disk_faults && has_logs() && disk_draw_.one_in(2);
    const Habits habits{.gap_ns = draw_.between(1, 40) * 1'000,
                        .burst = draw_.between(1, 20),
                        .most_bytes = draw_.one_in(4) ? 6'000U : draw_.between(16, 400),
                        .in_place = draw_.one_in(2),
                        .polls = draw_.one_in(3)};
    describe(habits);
    for (const MulticastOptions& one : options_)
      pieces_ = std::max(pieces_, 1 + habits.most_bytes / one.ring_bytes);
    for (Rank rank = 0; rank < everybody(); ++rank) {
      const bool founds = rank < members_;
      nodes_.push_back(std::make_unique<Node>(
          Node::Place{
              .world = world_, .node = rank, .joinable = late_ > 0, .changing = kinds.changing},
          specs_, disks_.options(rank, options_, plan_), habits, seed, trace_));
      if (founds) nodes_.back()->found();
      world_.attach(rank, [node = nodes_.back().get()] { return node->poll(); });
    }
  }

  Outcome run() {
    try {
      return outcome(fault_of_run());
    } catch (const std::exception& error) {
      return outcome(fmt::format("a member met what cannot be: {}", error.what()));
    }
  }

 private:
  std::string fault_of_run() {
    for (std::uint32_t troubles = draw_.below(7); troubles > 0; --troubles) {
      wait_for_trouble();
      trouble();
      if (disk_faults_ && disk_draw_.one_in(2)) trouble_a_disk();
      if (late_draw_.one_in(2)) let_one_come();
    }
    while (come_ < late_) let_one_come();
    world_.run_for(1'000'000);
    std::string fault = audit(false);
    mend();
    world_.run_for(kRestNs * (has_logs() ? kDiskFactor : 1));
    if (fault.empty()) fault = audit(true);
    if (fault.empty()) fault = fault_of_last_messages();
    if (fault.empty()) fault = fault_of_silence();
    return fault.empty() && has_logs() ? fault_of_logs() : fault;
  }

  /// Some of it comes while members agree on a view.
  void wait_for_trouble() {
    const std::uint64_t most_ns = 1 + draw_.below(2'000'000);
    if (!draw_.one_in(3)) return world_.run_for(most_ns);
    const auto agreeing = [](const auto& node) { return node->agreeing(); };
    world_.run_until([&] { return std::ranges::any_of(nodes_, agreeing); }, most_ns);
    world_.run_for(draw_.below(3'000));
  }

  [[nodiscard]] std::uint32_t everybody() const noexcept { return members_ + late_; }
  static std::string name(Rank rank) { return fmt::format("node{}", rank); }

  void let_one_come() {
    if (come_ == late_) return;
    const Rank rank = members_ + come_++;
    if (dead_[rank]) return;
    if (trace_) trace_(world_.now_ns(), name(rank) + " wants to come in");
    world_.on(rank, [this, rank] { nodes_[rank]->come(); });
  }

  std::vector<std::string> some_of(const std::vector<std::string>& names) {
    std::vector<std::string> some;
    for (const std::string& each : names)
      if (draw_.one_in(2)) some.push_back(each);
    return some;  // none: all
  }

  void draw_subgroups(bool durable) {
    std::vector<std::string> all;
    for (Rank rank = 0; rank < members_; ++rank) all.push_back(name(rank));
    for (std::uint32_t i = draw_.between(1, 3); i > 0; --i) {
      SubgroupSpec spec{.name = fmt::format("s{}", i), .members = {}, .senders = {}};
      spec.members = draw_.one_in(2) ? some_of(all) : std::vector<std::string>();
      if (draw_.one_in(2)) spec.senders = some_of(spec.members.empty() ? all : spec.members);
      // An empty list has everybody in it.
      for (Rank rank = members_; rank < everybody() && !spec.members.empty(); ++rank)
        if (late_draw_.one_in(2)) spec.members.push_back(name(rank));
      const bool ordered = !draw_.one_in(5);
      plan_.push_back({spec.name, ordered ? multicast::Mode::ordered : multicast::Mode::unordered});
      if (ordered && durable && disk_draw_.one_in(4)) plan_.back().mode = multicast::Mode::durable;
      options_.push_back({.mode = plan_.back().mode,
                          .ring_bytes = std::size_t{1024} << draw_.below(6),
                          .window_messages = draw_.one_in(3) ? draw_.between(1, 30) : 0});
      specs_.push_back(std::move(spec));
    }
  }

  void describe(const Habits& habits) {
    if (!trace_) return;
    trace_(0, fmt::format(
                  "{} members, {} that come later, network {}, {} slots in a queue; messages of up "
                  "to {} bytes, {} at once, {}delivered by {}",
                  members_, late_, world_.profile().name, world_.profile().queue_slots,
                  habits.most_bytes, habits.burst, habits.in_place ? "built in place, " : "",
                  habits.polls ? "next()" : "upcalls"));
    for (std::size_t i = 0; i < specs_.size(); ++i)
      trace_(0,
             fmt::format("subgroup '{}', {}: members {}; senders {}; rings of {} bytes, window {}",
                         specs_[i].name, name_of(plan_[i].mode), fmt::join(specs_[i].members, " "),
                         fmt::join(specs_[i].senders, " "), options_[i].ring_bytes,
                         options_[i].window_messages));
  }

  void say(const std::string& what) {
    ++faults_;
    if (trace_) trace_(world_.now_ns(), what);
  }

  void trouble() {
    const Rank rank = draw_.below(everybody());
    const Rank other = (rank + 1 + draw_.below(everybody() - 1)) % everybody();
    switch (clear_cut_ ? std::array{0U, 1U, 7U}[draw_.below(3)] : draw_.below(8)) {
      case 0:
        dead_[rank] = true;
        say(name(rank) + " crashes");
        return world_.crash(rank);
      case 1:
        dead_[rank] = true;
        say(name(rank) + " hangs, its network card goes on");
        return world_.hang(rank);
      case 2: {
        const std::uint64_t pause_ns = draw_.below(4'000'000);
        say(fmt::format("{} is paused for {} ns", name(rank), pause_ns));
        return world_.pause(rank, pause_ns);
      }
      case 3:
        say(name(rank) + " gets slow");
        return world_.slow(rank, draw_.between(2, 50));
      case 4:
        say(fmt::format("the link from {} to {} is cut", name(rank), name(other)));
        return world_.cut(rank, other);
      case 5:
        say(fmt::format("{} and {} are cut off from each other", name(rank), name(other)));
        world_.cut(rank, other);
        return world_.cut(other, rank);
      case 6:
        say(fmt::format("the link from {} to {} gets slow", name(rank), name(other)));
        return world_.slow_link(rank, other, draw_.between(2, 30));
      default:
        if (dead_[rank] || nodes_[rank]->log().views.empty()) return;
        say(name(rank) + " leaves");
        left_[rank] = true;
        world_.on(rank, [this, rank] { nodes_[rank]->leave(); });
    }
  }

  /// Troubles the disk of a member that has its log already.
  void trouble_a_disk() {
    const Rank rank = disk_draw_.below(everybody());
    if (!dead_[rank] && !nodes_[rank]->log().views.empty())
      say(name(rank) + disks_.trouble(rank, disk_draw_));
  }

  /// No more faults, and no more messages.
  void mend() {
    disks_.mend();
    for (Rank rank = 0; rank < everybody(); ++rank) {
      for (Rank other = 0; other < everybody(); ++other) {
        if (rank == other) continue;
        world_.heal(rank, other);
        world_.slow_link(rank, other, 1);
      }
      world_.slow(rank, 1);
      if (!dead_[rank]) world_.on(rank, [this, rank] { nodes_[rank]->be_quiet(); });
    }
    if (trace_) trace_(world_.now_ns(), "all is mended, and nobody sends any more");
  }

  Record record() {
    Record record{.subgroups = plan_, .nodes = {}, .clear_cut = clear_cut_};
    for (Rank rank = 0; rank < everybody(); ++rank) {
      record.nodes.push_back(nodes_[rank]->log());
      record.nodes.back().dead = dead_[rank];
      record.nodes.back().left |= left_[rank];
    }
    return record;
  }

  std::string audit(bool at_rest) {
    for (const auto& node : nodes_)
      if (!node->oddity().empty()) return node->oddity();
    for (Rank rank = 0; rank < everybody(); ++rank)
      if (!nodes_[rank]->log_failure().empty() && !nodes_[rank]->lacks_log() &&
          !disks_.may_fail(rank))
        return fmt::format("the disk of {} was well, and {}", name(rank),
                           nodes_[rank]->log_failure());
    return find_fault(record(), at_rest);
  }

  /// The remaining members can still send, and all deliver it in time.
  std::string fault_of_last_messages() {
    std::vector<std::uint64_t> polls;
    std::string refused;
    for (Rank rank = 0; rank < everybody(); ++rank) {
      Node& node = *nodes_[rank];
      const NodeLog log = node.log();
      polls.push_back(node.polls());
      if (dead_[rank] || log.ended || log.views.empty()) continue;
      const auto sends = std::ranges::count_if(log.subgroups, &SubgroupLog::sender);
      world_.on(rank, [&node, &refused, sends] {
        if (node.send_one_each() == static_cast<std::size_t>(sends)) return;
        refused = node.log().name + " has no room for another message, and all have delivered all";
      });
    }
    const std::uint64_t longer = everybody() * (has_logs() ? kDiskFactor : 1);
    world_.run_for(kLastNs * longer);
    if (!refused.empty()) return refused;
    for (Rank rank = 0; rank < everybody(); ++rank)
      if (nodes_[rank]->polls() - polls[rank] > kLastPolls * longer * pieces_)
        return fmt::format("{} polled {} times for one message of each", name(rank),
                           nodes_[rank]->polls() - polls[rank]);
    return audit(true);
  }

  std::string fault_of_silence() {
    const std::uint64_t before = world_.operations();
    world_.run_for(kSilenceNs);
    const std::uint64_t more = world_.operations() - before;
    return more == 0 ? "" : fmt::format("nobody sends, and {} more operations were posted", more);
  }

  [[nodiscard]] bool has_logs() const {
    return std::ranges::count(plan_, multicast::Mode::durable, &SubgroupPlan::mode) > 0;
  }

  /// All machines crash, and start again.
  std::string fault_of_logs() {
    const Record all = record();
    std::string fault = disks_.crash_all_and_find_fault(all, world_.fabric(0).group());
    return fault.empty() ? fault_of_restart(all, specs_, options_, disks_, disk_draw_) : fault;
  }

  Outcome outcome(std::string fault) {
    Outcome outcome{.fault = std::move(fault), .faults = faults_, .digest = world_.digest()};
    for (const NodeLog& node : record().nodes) {
      outcome.views = std::max<std::uint64_t>(outcome.views, node.views.size());
      for (const SubgroupLog& log : node.subgroups) outcome.deliveries += log.delivered.size();
    }
    return outcome;
  }

  Draw draw_;
  Trace trace_;
  std::uint32_t members_;
  World world_;
  Draw disk_draw_;          // separate, so that all else is as it would be without
  Draw late_draw_;          // separate, too
  std::uint32_t late_;      // nodes that come in later, behind the members
  std::uint32_t come_ = 0;  // how many of these have come
  Disks disks_;
  bool disk_faults_ = false;
  std::vector<bool> dead_;
  std::vector<bool> left_;
  bool clear_cut_;  // nothing happens but crashes, hung processes, and leaves
  std::vector<SubgroupPlan> plan_;
  std::vector<SubgroupSpec> specs_;
  std::vector<MulticastOptions> options_;
  std::size_t pieces_ = 1;  // the most parts of a message in the smallest ring
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint64_t faults_ = 0;
};

}  // namespace

Outcome run_multicast(std::uint64_t seed, const Trace& trace, const Kinds& kinds) {
  return Scenario(seed, trace, kinds).run();
}

}  // namespace dunlin::app::sim
