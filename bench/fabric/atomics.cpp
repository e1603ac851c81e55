#include <array>

#include "bench/fabric/experiments.hpp"
#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

/// Member 0 measures; member 1 is its rival where it has one; the variables are member 2's, in
/// another process than member 0. The rival goes where it is neither out of reach nor unbeatable:
/// to the other processor where operations need no help, and else beside member 0, as far from the
/// variables as that.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kMembers = 3;
constexpr Rank kRival = 1;
constexpr Rank kTarget = 2;

std::uint64_t variable_of(Rank member) { return kCounter + member * kPageBytes; }

enum class Way { add, swap };

/// Adds 1 to a variable of the target's again and again, one operation under way at a time.
class Adder {
 public:
  Adder(Node& node, Way way, std::uint64_t variable)
      : node_(node), way_(way), variable_(variable) {}
  Adder(const Adder&) = delete;
  Adder& operator=(const Adder&) = delete;
  ~Adder() { node_.fabric().abandon(done_); }

  /// Until it has added 1, however many swaps that takes; polls by `poll`.
  template <class Poll>
  void once(Poll&& poll) {
    for (bool added = false; !added;) {
      post();
      while (!done_.finished()) poll();
      added = conclude();
    }
  }
  /// One step of that, without waiting. A rival that never rests may be a step ahead for ever.
  void step() {
    if (!done_.finished()) return;
    if (posted_ && conclude()) rest_ = steps_++ * 7 % kLongestRest;
    posted_ = false;
    if (rest_ > 0) {
      --rest_;
      return;
    }
    post();
  }

 private:
  static constexpr std::uint32_t kLongestRest = 32;

  void post() {
    const Operation operation =
        way_ == Way::add
            ? fetch_add(kTarget, node_.box(), variable_, 1, &former_)
            : compare_swap(kTarget, node_.box(), variable_, expected_, expected_ + 1, &former_);
    node_.post(operation.notify(done_));
    posted_ = true;
  }
  bool conclude() {
    const bool added = way_ == Way::add || former_ == expected_;
    expected_ = added ? expected_ + 1 : former_;
    return added;
  }

  Node& node_;
  Way way_;
  std::uint64_t variable_;
  std::uint64_t expected_ = 0;
  std::uint64_t former_ = 0;
  bool posted_ = false;
  std::uint32_t steps_ = 0;
  std::uint32_t rest_ = 0;
  Completion done_;
};

struct Case {
  const char* figure;
  const char* variables;
  Way way;
  std::uint64_t variable;
  std::uint64_t rivals_variable;  // 0: no rival
};
const std::array<Case, 4> kCases{
    Case{"compare-swap", "one, alone", Way::swap, variable_of(0), 0},
    Case{"compare-swap", "one, a rival, until it succeeds", Way::swap, variable_of(1),
         variable_of(1)},
    Case{"fetch-add", "a spread, a rival on another", Way::add, variable_of(2), variable_of(3)},
    Case{"fetch-add", "one, a rival", Way::add, variable_of(4), variable_of(4)}};

/// What one process of the team does, with its one member or two.
class Player {
 public:
  Player(Member& me, const RealNetwork& network, const Group& group)
      : me_(me),
        first_(me.rank() == 0           ? 0
               : network.passive_target ? kRival
                                        : kTarget) {
    const Rank end = me.rank() != 0 ? kMembers : network.passive_target ? kRival : kTarget;
    for (auto& fabric : group.join_many(first_, end - first_))
      nodes_.push_back(std::make_unique<Node>(std::move(fabric)));
    std::vector<Node*> all;
    for (const auto& node : nodes_) all.push_back(node.get());
    connect(me, all);
    for (const Case& c : kCases) {
      adders_.push_back(adder_of(0, c.way, c.variable));
      rivals_.push_back(c.rivals_variable == 0 ? nullptr
                                               : adder_of(kRival, c.way, c.rivals_variable));
    }
  }

  [[nodiscard]] const Fabric& fabric() const { return nodes_.front()->fabric(); }

  std::optional<double> turn(std::size_t which, const Batches& plan) {
    const auto poll = [&] {
      for (const auto& node : nodes_) node->poll();
      if (rivals_[which]) rivals_[which]->step();
    };
    const auto settle = [&] {
      for (const auto& node : nodes_) node->poll();
    };
    Node& node = me_.rank() == 0 ? *nodes_.front() : *nodes_.back();
    const auto add = [&] { return batch_ns(plan, [&] { adders_[which]->once(poll); }); };
    return one_sided(me_, node, settle, add, poll, kTarget);
  }

 private:
  /// Null if the member lives in the other process.
  std::unique_ptr<Adder> adder_of(Rank member, Way way, std::uint64_t variable) {
    if (member < first_ || member >= first_ + nodes_.size()) return nullptr;
    return std::make_unique<Adder>(*nodes_[member - first_], way, variable);
  }

  Member& me_;
  Rank first_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Adder>> adders_;  // by case
  std::vector<std::unique_ptr<Adder>> rivals_;
};

std::vector<Result> measure(const RealNetwork& network, const Effort& effort) {
  const Batches plan = effort.plan(100, network.trips_per_batch);
  const Group group(network, effort, kMembers);
  Team team(group.team());
  team.run([&](Member& me) {
    Player player(me, network, group);
    const auto bare = group.bare(me, &player.fabric());
    std::vector<Contender> contenders{[&] { return bare->add(me, plan, Atomics::alone); },
                                      [&] { return bare->add(me, plan, Atomics::contended); }};
    for (std::size_t which = 0; which < kCases.size(); ++which)
      contenders.emplace_back([&, which] { return player.turn(which, plan); });
    alternate(me, effort.rounds, contenders);
  });
  std::vector<Result> results;
  for (std::uint32_t which = 0; which < kCases.size(); ++which) {
    const Case& c = kCases[which];
    const bool contended = c.variable == c.rivals_variable;  // and not alone
    results.push_back(
        compared({.params = {{"operation", c.figure}, {"variables", c.variables}}, .unit = "ns"},
                 team.series(2 + which),
                 network.bare_name + (contended ? ", fetch-add with a rival" : ", fetch-add alone"),
                 team.series(contended ? 1 : 0)));
  }
  return results;
}

}  // namespace

Experiment atomics(const RealNetwork& network) {
  return {.name = "atomics",
          .title = "adding 1 to a peer's variable, until the former value is here",
          .fabric = network.name,
          .run = on_network(network, measure)};
}

}  // namespace dunlin::bench
