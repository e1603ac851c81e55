#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "group/member_set.hpp"
#include "group/subgroup_message.hpp"

/// The leader of a view decides in which order the members' wishes change the subgroups that come
/// and go at run time. Pure: messages go in, messages come out. docs/group.md gives the rules
/// GRP-D1 to GRP-D9. The leader is the view's first member; a view in which it fails ends.
namespace dunlin::group {

class SubgroupLeader {
 public:
  /// Enters a view, which has room for that many subgroups.
  void enter(std::uint64_t view, std::vector<std::string> members, std::size_t room);
  void receive(Rank from, const SubgroupMessage& message);

  struct Outgoing {
    MemberSet to;
    SubgroupMessage message;
  };
  /// The messages to send, in this order.
  [[nodiscard]] std::vector<Outgoing> take();
  /// Whether all members have reported.
  [[nodiscard]] bool ready() const noexcept { return reported_ == all(); }
  [[nodiscard]] std::string describe() const;

 private:
  struct Entry {
    std::string options = {};
    std::string label = {};
    std::vector<std::string> founders = {};
    // --- what the members wish
    MemberSet in = {};                         // members that wish to be in
    MemberSet out = {};                        // members that wish to be out
    MemberSet sending = {};                    // senders among the members, and in `in`
    bool removed = false;                      // all members are to be out
    std::vector<std::uint32_t> attempts = {};  // by index in the view
    // --- what they have
    std::uint64_t generation = 0;  // the latest; 0: none
    bool exists = false;           // it has had members without a break until now
    MemberSet members = {};        // members of the latest generation
    MemberSet senders = {};
    std::optional<std::vector<std::uint64_t>> trim = {};  // the least received by those heard
    MemberSet lacking = {};              // of all members above: those without the state
    MemberSet anew = {};                 // of these: those left out for that, not heard yet
    bool latest_removes = false;         // one asked that all leave
    MemberSet behind = {};               // members that have an earlier generation,
    std::vector<SubgroupEnd> ends = {};  // which ends so
    std::set<std::uint64_t> had = {};    // generations that members have
    // --- the change under way
    bool wedging = false;
    MemberSet awaited = {};  // members that have not said what they received
    MemberSet parting = {};  // left by the last change, and not aware of it yet
    bool undecided = false;  // all of the above is what the proposed change makes it
  };
  using Entries = std::map<std::string, Entry>;

  /// Changes that are decided together, once the right members have accepted them.
  struct Proposal {
    std::uint64_t number = 0;  // the generation of its last change
    std::vector<std::string> names = {};
    MemberSet awaited = {};  // members that have one of these subgroups, and have not accepted
    MemberSet accepted = {};
  };

  [[nodiscard]] MemberSet all() const noexcept {
    return MemberSet::first(static_cast<std::uint32_t>(names_.size()));
  }
  void ask();
  void take_report(Rank from, const SubgroupReport& report);
  void take_membership(Rank from, Entry& entry, const SubgroupReport& report);
  static void take_latest(Entry& entry, const SubgroupReport& report);
  void take_wish(Rank from, const SubgroupReport& report);
  void remove_none(Rank from, const SubgroupReport& report);
  void wish_in(Rank from, Entry& entry, const SubgroupReport& report);
  void wish_out(Rank from, Entry& entry, const SubgroupReport& report);
  void take_wedged(Rank from, const SubgroupMessage& message);
  void take_parted(Rank from, const SubgroupMessage& message);
  void take_accepted(Rank from, const SubgroupMessage& message);
  [[nodiscard]] bool has_members(const std::string& name) const;
  [[nodiscard]] bool has_room_for(const std::string& name) const;
  void refuse(Rank to, const std::string& name, std::uint32_t attempt, const std::string& why);
  void refuse_all_in(const std::string& name, Entry& entry, const std::string& why);
  void establish_all();
  void advance(const std::string& name);
  [[nodiscard]] MemberSet next_members(const Entry& entry) const;
  [[nodiscard]] bool founders_are_here(const Entry& entry, const MemberSet& members) const;
  void add_change(SubgroupMessage& message, Proposal& proposal, const std::string& name);
  [[nodiscard]] SubgroupChange change(const std::string& name, Entry& entry);
  void propose(SubgroupMessage message, Proposal proposal);
  void drop_if_gone(const std::string& name);

  std::uint64_t view_ = 0;
  std::vector<std::string> names_;  // names of the view's members
  std::size_t room_ = 0;
  std::uint64_t changes_ = 0;  // how many in this view
  bool asked_ = false;
  MemberSet reported_;
  Entries entries_;
  std::vector<Proposal> proposals_;  // proposals that are not decided
  std::vector<Outgoing> outgoing_;
};

}  // namespace dunlin::group
