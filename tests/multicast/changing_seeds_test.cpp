#include <random>

#include "multicast/changing_group.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Members that create, join, change, leave, drop and remove subgroups, and that crash, hang, are
/// cut off, leave and come, as a seed says. All that are in a subgroup at the end have one history.
namespace dunlin {
namespace {

using test::ChangingGroup;
using test::ChangingMember;
using test::ChangingNode;
using test::Said;

constexpr std::uint32_t kChangingSeeds = 400;

class ChangingSeed {
 public:
  explicit ChangingSeed(std::uint64_t seed)
      : random_(seed),
        founders_(1 + below(5)),
        later_(below(3) == 0 ? 1 + below(2) : 0),
        topics_(1 + below(4)),
        unordered_(below(4) == 0),
        options_{.mode = unordered_ ? multicast::Mode::unordered : multicast::Mode::ordered,
                 .ring_bytes = std::size_t{1024} << below(4)},
        cluster_(founders_, later_, seed),
        gone_(founders_ + later_) {}

  void run() {
    for (Rank node = founders_; node < founders_ + later_; ++node) waiting_.push_back(node);
    for (std::uint32_t steps = 10 + below(60); steps > 0; --steps) {
      cluster_.world.run_for(1 + below(below(3) == 0 ? 200'000 : 10'000));
      step();
    }
    mend();
    cluster_.world.run_for(80'000'000);
    check();
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  [[nodiscard]] bool is_in(Rank node) {
    return !gone_[node] && cluster_[node].group && cluster_[node].group->why_ended().empty();
  }

  void step() {
    const Rank one = below(cluster_.size());
    if (below(12) == 0) return trouble(one);
    if (!is_in(one)) return;
    const std::string topic = "topic" + std::to_string(below(topics_));
    const std::uint32_t what = below(12);
    const std::uint32_t number = below(40);
    cluster_.world.on(one, [this, one, topic, what, number] {
      if (is_in(one)) act(cluster_[one], topic, what, number);
    });
  }

  void act(ChangingNode& node, const std::string& topic, std::uint32_t what, std::uint32_t number) {
    ChangingMember* const member = node.in(topic);
    const bool inside = member != nullptr && !member->multicast->left() && !member->asked_to_leave;
    switch (what) {
      case 0:
        if (!inside) return;
        member->asked_to_leave = true;
        return member->multicast->leave();
      case 1:
        if (member == nullptr) return;
        node.members.erase(topic);
        return;
      case 2:
        if (inside) member->multicast->set_sends(number % 2 == 0);
        return;
      case 3:
        if (number % 3 == 0) node.group->remove_subgroup(topic);
        return;
      case 4:
      case 5:
      case 6:
        if (!inside) node.join(topic, options_, {.sends = number % 4 != 0});
        return;
      default:
        for (std::uint32_t i = 0; member != nullptr && i < number; ++i)
          if (!member->send(number % 7 == 0 ? 2'000 : number)) return;
    }
  }

  void trouble(Rank one) {
    const Rank other = below(cluster_.size());
    switch (below(7)) {
      case 0:
        gone_[one] = true;
        return cluster_.world.crash(one);
      case 1:
        return cluster_.world.pause(one, below(3'000'000));
      case 2:
        if (one != other) cluster_.world.cut(one, other);
        return;
      case 3:
        if (!is_in(one)) return;
        gone_[one] = true;
        return cluster_.world.on(one, [this, one] { cluster_[one].group->leave(); });
      case 4:
        return cluster_.world.slow(one, 2 + below(20));
      default:
        if (waiting_.empty()) return;
        cluster_[waiting_.back()].come();
        cluster_.world.on(waiting_.back(), [] {});
        waiting_.pop_back();
    }
  }

  void mend() {
    for (Rank one = 0; one < cluster_.size(); ++one) {
      cluster_.world.slow(one, 1);
      for (Rank other = 0; other < cluster_.size(); ++other)
        if (one != other) cluster_.world.heal(one, other);
    }
  }

  void check() {
    for (Rank node = 0; node < cluster_.size(); ++node) {
      for (const auto& [topic, member] : cluster_[node].past) check_one(topic, *member);
      for (const auto& [topic, member] : cluster_[node].members) check_one(topic, *member);
    }
    for (std::uint32_t topic = 0; topic < topics_; ++topic)
      check_topic("topic" + std::to_string(topic));
  }

  /// What holds at any moment: each message once, in the order of its sender, from the first one.
  void check_one(const std::string& topic, const ChangingMember& member) {
    const std::string who = topic + " at node " + std::to_string(member.node);
    ASSERT_EQ(member.oddity, "") << who;
    const std::string& why = member.multicast->why_left();
    ASSERT_TRUE(why.empty() || why.ends_with("was removed")) << who << ": " << why;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> next;
    for (const Said& said : member.history) {
      const auto at = next.try_emplace({said.node, said.membership}, 0).first;
      ASSERT_EQ(at->second, said.index) << who << ": of node " << said.node;
      ++at->second;
    }
  }

  /// At rest: the members that are in it agree on who they are, and have one history.
  void check_topic(const std::string& topic) {
    const ChangingMember* first = nullptr;
    Rank first_node = 0;
    for (Rank node = 0; node < cluster_.size(); ++node) {
      if (!is_in(node)) continue;
      const ChangingMember* const member = cluster_[node].in(topic);
      if (member == nullptr || member->multicast->left()) continue;
      ASSERT_FALSE(member->asked_to_leave) << topic << ": node " << node << " is still in it";
      ASSERT_TRUE(member->multicast->joined()) << topic << ": node " << node << " still waits";
      const std::vector<Rank> members = nodes_of(node, *member);
      ASSERT_TRUE(std::ranges::find(members, node) != members.end())
          << topic << " at node " << node << text_of(node);
      for (const Rank rank : members) {
        ASSERT_TRUE(is_in(rank)) << topic << " has node " << rank << ", which is gone";
        ASSERT_TRUE(cluster_[rank].in(topic) != nullptr) << topic << " has node " << rank;
      }
      check_nothing_is_lost(topic, *member);
      if (first == nullptr) {
        first = member;
        first_node = node;
        continue;
      }
      ASSERT_EQ(members, nodes_of(first_node, *first)) << topic;
      ASSERT_EQ(member->multicast->subgroup().generation(),
                first->multicast->subgroup().generation())
          << topic;
      ASSERT_EQ(member->began, first->began) << topic << " at " << node << " and " << first_node;
      ASSERT_EQ(what_counts(*member), what_counts(*first))
          << topic << " at nodes " << first_node << " and " << node;
    }
    check_what_all_know(topic, first);
  }

  /// Of a member that came later, its rank in the fabric is not its number in the world.
  [[nodiscard]] std::vector<Rank> nodes_of(Rank at, const ChangingMember& member) {
    std::vector<Rank> nodes;
    for (const Rank rank : member.multicast->subgroup().members) {
      const std::string& name = cluster_[at].group->fabric().member_name(rank);
      nodes.push_back(static_cast<Rank>(std::stoul(name.substr(4))));
    }
    return nodes;
  }
  [[nodiscard]] std::string text_of(Rank node) {
    std::string text;
    for (const View& view : cluster_[node].views)
      text +=
          "\nview " + std::to_string(view.number) + " of " + std::to_string(view.members.size());
    for (const auto& [topic, member] : cluster_[node].members) {
      text += "\n" + topic + (member->multicast->left() ? " left" : "");
      for (const Subgroup& generation : member->generations) {
        text +=
            " {" + std::to_string(generation.view) + "," + std::to_string(generation.change) + ":";
        for (const Rank rank : generation.members) text += " " + std::to_string(rank);
        text += "}";
      }
    }
    for (const std::string& error : cluster_[node].errors) text += "\n" + error;
    return text;
  }

  /// MC-O4: what a member of it accepted.
  void check_nothing_is_lost(const std::string& topic, const ChangingMember& member) {
    if (!member.multicast->joined()) return;
    std::uint64_t delivered = 0;
    for (const Said& said : member.history)
      if (said.node == member.node && said.membership == member.membership) ++delivered;
    const Rank rank = cluster_[member.node].group->fabric().rank();
    if (!std::ranges::any_of(member.multicast->subgroup().senders, [&](std::uint32_t place) {
          return member.multicast->subgroup().members[place] == rank;
        }))
      return;  // what it could not send before it became none of the senders waits
    ASSERT_EQ(delivered, member.accepted) << topic << ": of node " << member.node;
  }

  void check_what_all_know(const std::string& topic, const ChangingMember* member) {
    for (Rank node = 0; node < cluster_.size(); ++node) {
      if (!is_in(node) || cluster_[node].views.empty()) continue;
      const std::vector<SubgroupInfo> infos = cluster_[node].group->subgroups();
      const auto found = std::ranges::find(infos, topic, &SubgroupInfo::name);
      ASSERT_EQ(found != infos.end(), member != nullptr) << topic << " at node " << node;
      if (member == nullptr) continue;
      ASSERT_EQ(found->members.size(), member->multicast->subgroup().members.size());
      ASSERT_EQ(found->view << Subgroup::kChangeBits | found->change,
                member->multicast->subgroup().generation());
    }
  }

  /// Unordered, of those who send no more some may have more than others.
  [[nodiscard]] std::vector<Said> what_counts(const ChangingMember& member) {
    std::vector<Said> history = member.history;
    if (!unordered_) return history;
    std::erase_if(history, [&](const Said& said) { return !still_sends(member, said); });
    std::ranges::sort(history);
    return history;
  }
  [[nodiscard]] bool still_sends(const ChangingMember& member, const Said& said) {
    const std::vector<Rank> members = nodes_of(member.node, member);
    const auto sender = std::ranges::find(members, said.node);
    const auto place = static_cast<std::uint32_t>(sender - members.begin());
    if (std::ranges::find(member.multicast->subgroup().senders, place) ==
        member.multicast->subgroup().senders.end())
      return false;
    for (const auto& [topic, other] : cluster_[said.node].members)
      if (other->membership == said.membership) return true;
    return false;
  }

  std::mt19937_64 random_;
  std::uint32_t founders_;
  std::uint32_t later_;
  std::uint32_t topics_;
  bool unordered_;
  MulticastOptions options_;
  ChangingGroup cluster_;
  std::vector<bool> gone_;
  std::vector<Rank> waiting_;
};

TEST(ChangingSubgroupsFromSeeds, LeaveTheMembersOfEachWithOneHistory) {
  test::for_each_seed(test::Seeds(test::rounds(kChangingSeeds)),
                      [](std::uint64_t seed) { ChangingSeed(seed).run(); });
}

/// Node 0 ceases to be a sender before all it has sent has gone, and then leaves.
TEST(ChangingSubgroupsFromSeeds, ALeaverDoesNotWaitForWhatItCannotSend) { ChangingSeed(496).run(); }

}  // namespace
}  // namespace dunlin
