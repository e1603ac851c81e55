#include "group/view_change.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Views of up to seven members that end in every way that a seed can think of: crashes, mistaken
/// suspicions, cut links, leaves, joiners, and rows that arrive late or only at some.
namespace dunlin::group {
namespace {

constexpr std::uint32_t kMostMembers = 7;
const std::uint32_t kSeeds = test::rounds(5'000);

/// One member with what it sees of the others.
struct Node {
  ViewChange change;
  std::vector<Row> copies;                // of the others' rows
  std::vector<std::deque<Row>> arriving;  // by writer, in order
  MemberSet failed;
  MemberSet detects;  // links that are broken, and of which it will hear
  std::vector<std::uint64_t> received;
  std::vector<std::uint64_t> delivered;
  PlanId plan = kNoPlan;
  bool leaves = false;
  bool crashed = false;

  Node(std::uint32_t members, Rank me)
      : change(members, me),
        copies(members),
        arriving(members),
        received(members),
        delivered(members) {
    for (Row& row : copies) row.received.assign(members, 0);
  }
  [[nodiscard]] bool runs() const {
    return !crashed && change.state() != ViewState::minority &&
           change.state() != ViewState::excluded;
  }
};

class OldView {
 public:
  OldView(std::uint32_t members, std::uint32_t seed) : random_(seed) {
    for (Rank rank = 0; rank < members; ++rank) nodes_.emplace_back(members, rank);
  }

  /// Faults and wishes, as many as the seed likes, and then only what must happen by itself.
  void run() {
    late_deaths_ = below(2) == 0;
    const std::uint32_t troubles = late_deaths_ ? 1 : below(4) + 1;
    deaths_ = below(2) == 0 ? below(size()) : 0;
    if (late_deaths_) deaths_ = (size() - 1) / 2;
    for (bool& slow : slow_) slow = below(2) == 0;
    for (std::uint32_t i = 0; i < troubles; ++i) {
      for (std::uint32_t steps = below(40); steps > 0; --steps) anything();
      trouble();
      check_safety();
    }
    for (std::uint32_t steps = below(400 * size()); steps > 0; --steps) anything();
    ASSERT_TRUE(settle()) << "it does not come to rest";
    check_safety();
    check_progress();
  }

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  Node& some() { return nodes_[below(size())]; }

  void anything() {
    const Rank rank = below(size());
    Node& node = nodes_[rank];
    if (!node.runs()) return;
    switch (below(4)) {
      case 0:
        return receive(rank, below(size()));
      case 1:
        return detect(node, below(size()));
      case 2:
        return work(rank);
      default:
        step(rank);
    }
  }

  /// The next version of a row arrives, whole, as the fabric promises.
  void receive(Rank rank, Rank from) {
    Node& node = nodes_[rank];
    if (node.arriving[from].empty() || node.change.mine().suspects.has(from)) return;
    const bool accepted = node.arriving[from].front().accepted != 0;
    if (accepted && slow_[from * kMostMembers + rank] && below(20) != 0) return;
    node.copies[from] = node.arriving[from].front();
    node.arriving[from].pop_front();
  }

  void detect(Node& node, Rank other) {
    if (node.detects.has(other)) node.failed.add(other);
  }

  /// Receives a message of somebody's, tells so, and delivers what all are known to have.
  void work(Rank rank) {
    Node& node = nodes_[rank];
    if (node.change.state() != ViewState::working) return;
    const Rank sender = below(size());
    ++node.received[sender];
    publish(rank);
    for (Rank from = 0; from < size(); ++from) {
      std::uint64_t all_have = node.received[from];
      for (Rank other = 0; other < size(); ++other)
        if (other != rank) all_have = std::min(all_have, node.copies[other].received[from]);
      node.delivered[from] = std::max(node.delivered[from], all_have);
    }
  }

  void step(Rank rank) {
    Node& node = nodes_[rank];
    const auto rows = [&](Rank other) -> const Row& { return node.copies[other]; };
    const Ballot accepted = node.change.mine().accepted;
    const bool changed = node.change.step(rows, {.failed = node.failed,
                                                 .wants_to_leave = node.leaves,
                                                 .received = node.received,
                                                 .plan = node.plan});
    if (changed) publish(rank);
    const bool late = node.change.mine().ended || node.change.mine().accepted != accepted;
    // What it says last is what matters most.
    if (changed && deaths_ > 0 && (late || !late_deaths_) && below(2) == 0) {
      --deaths_;
      return crash(rank);
    }
    if (!node.runs()) lose(rank);  // it leaves the fabric
  }

  void publish(Rank rank) {
    const Node& node = nodes_[rank];
    Row row = node.change.mine();
    if (row.promised == 0) row.received = node.received;
    for (Rank other = 0; other < size(); ++other)
      if (other != rank && !cut_[rank * kMostMembers + other])
        nodes_[other].arriving[rank].push_back(row);
  }

  void trouble() {
    const Rank one = below(size());
    const Rank other = below(size());
    switch (below(late_deaths_ ? 2 : 5)) {
      case 0:
        nodes_[one].leaves = true;
        return;
      case 1:
        nodes_[one].plan = ++plans_;
        return;
      case 2:
        return crash(one);
      case 3:
        if (one != other) cut(one, other);
        return;
      default:  // slow, and so taken for dead by some
        if (one != other) cut(one, other, true);
    }
  }

  /// Of what it has said last some hear, and some do not.
  void crash(Rank rank) {
    nodes_[rank].crashed = true;
    const bool unheard = below(2) == 0;
    for (Node& node : nodes_) {
      std::deque<Row>& rows = node.arriving[rank];
      rows.resize(unheard ? 0 : below(static_cast<std::uint32_t>(rows.size()) + 1));
    }
    lose(rank);
  }
  void lose(Rank rank) {
    for (Node& node : nodes_) node.detects.add(rank);
  }
  /// Whoever hears nothing notices. Cut one way, the other one learns of it from what it says only.
  void cut(Rank one, Rank other, bool one_way = false) {
    cut_[one * kMostMembers + other] = true;
    nodes_[other].detects.add(one);
    if (one_way) return;
    cut_[other * kMostMembers + one] = true;
    nodes_[one].detects.add(other);
  }

  /// Whether nothing more will happen, after letting everything happen that can.
  bool settle() {
    slow_.fill(false);
    bool again = true;
    for (std::uint32_t rounds = 0; again && rounds < 100; ++rounds) {
      again = false;
      for (Rank rank = 0; rank < size(); ++rank) {
        Node& node = nodes_[rank];
        if (!node.runs()) continue;
        for (Rank other = 0; other < size(); ++other) {
          detect(node, other);
          while (!node.arriving[other].empty() && !node.change.mine().suspects.has(other))
            receive(rank, other), again = true;
        }
        const Row before = node.change.mine();
        const ViewState stood = node.change.state();
        step(rank);
        again |= stood != node.change.state() || before.accepted != node.change.mine().accepted ||
                 before.promised != node.change.mine().promised ||
                 !(before.suspects == node.change.mine().suspects);
      }
    }
    return !again;
  }

  void check_safety() const {
    const Decision* decided = nullptr;
    for (const Node& node : nodes_) {
      if (node.change.state() != ViewState::decided && node.change.state() != ViewState::excluded)
        continue;
      ASSERT_TRUE(decided == nullptr || *decided == node.change.decision()) << "GRP-A1";
      decided = &node.change.decision();
    }
    if (decided == nullptr) return;
    for (const Rank rank : decided->survivors) {
      ASSERT_NE(nodes_[rank].change.mine().promised, 0U) << "GRP-A2";
      for (Rank sender = 0; sender < size(); ++sender)
        ASSERT_GE(nodes_[rank].change.mine().received[sender], decided->trim[sender]) << "GRP-A2";
    }
    for (const Node& node : nodes_)
      for (Rank sender = 0; sender < size(); ++sender)
        ASSERT_LE(node.delivered[sender], decided->trim[sender])
            << "GRP-A3: somebody delivered more";
  }

  /// GRP-A5: nobody who runs waits for a view that will never end.
  void check_progress() const {
    for (Rank rank = 0; rank < size(); ++rank) {
      const Node& node = nodes_[rank];
      ASSERT_FALSE(node.runs() && node.change.state() == ViewState::wedged) << "member " << rank;
    }
  }

  std::minstd_rand random_;
  std::vector<Node> nodes_;
  std::array<bool, kMostMembers * kMostMembers> cut_{};
  std::array<bool, kMostMembers * kMostMembers> slow_{};
  PlanId plans_ = 0;
  std::uint32_t deaths_ = 0;  // that may still come at a bad moment
  bool late_deaths_ = false;  // after something was accepted
};

TEST(ViewChange, AgreesWhateverHappens) {
  std::uint32_t decided = 0;
  std::uint32_t stopped = 0;
  const test::Seeds seeds(kSeeds);
  test::for_each_seed(seeds, [&](std::uint64_t number) {
    const auto seed = static_cast<std::uint32_t>(number);
    OldView view(seed % kMostMembers + 1, seed);
    view.run();
    for (const Node& node : view.nodes()) {
      decided += node.change.state() == ViewState::decided ? 1 : 0;
      stopped += node.change.state() == ViewState::minority ? 1 : 0;
    }
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(decided, kSeeds);
  EXPECT_GT(stopped, kSeeds / 50);
}

}  // namespace
}  // namespace dunlin::group
