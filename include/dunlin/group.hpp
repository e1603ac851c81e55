#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// A group moves through numbered views: ordered lists of members on which all its members agree.
/// Crashes, leaves and joiners end a view and begin the next. Members that go on from one view to
/// the next have delivered the same messages in it (virtual synchrony); a minority stops, so a
/// group never splits into two. One thread at a time uses a group and its fabric; all progress is
/// made in poll().
///
///     auto fabric = dunlin::shm::join({.group = "rack7", .names = {"a", "b", "c"}, .name = "a"});
///     dunlin::Group group(*fabric);
///     group.on_view([](const dunlin::View& view) { std::cout << view << '\n'; });
///     dunlin::run(group);
///
/// Others may join, if all give a rendezvous:
///
///     const auto place = dunlin::shm::rendezvous({.group = "rack7"});
///     dunlin::Group group(*fabric, {.rendezvous = place});
///     auto late = dunlin::Group::join("d", {.rendezvous = place});   // in another process
///
/// docs/group.md has the promises, the protocol, and the sources of its ideas.
namespace dunlin {

class TableCore;
class SubgroupParticipant;
struct View;
struct MemberEvent;
struct GroupOptions;
struct SubgroupJoin;
struct SubgroupInfo;

class Group {
 public:
  using ViewHandler = std::function<void(const View&)>;

  /// The first view has all members of the fabric, which must outlive the group, or those of
  /// options.further. Throws Error. Does not wait for the others.
  Group(Fabric& fabric, GroupOptions options);
  explicit Group(Fabric& fabric);
  /// Joins a running group under that name, and returns when this member is in a view: attach its
  /// participants, then poll(). Needs options.rendezvous. Throws Error if it is refused, or not in
  /// within that time.
  [[nodiscard]] static std::unique_ptr<Group> join(const std::string& name, GroupOptions options,
                                                   std::uint32_t timeout_ms = 30'000);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// The same one as long as the group lasts: given to the constructor, or made by join().
  [[nodiscard]] Fabric& fabric() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const View& view() const noexcept;
  /// How many members the first view had: those of the fabric's first ranks.
  [[nodiscard]] std::uint32_t founders() const noexcept;
  /// Called from poll() with every view, the first one too: after the last delivery of the view
  /// before, and before the first of this one. Replaces an earlier handler; null: none. An
  /// exception of the handler comes out of poll(), once the view has begun.
  void on_view(ViewHandler handler);
  /// Called from poll() with what this member sees happen to a member, for people to read. Replaces
  /// an earlier handler; null: none.
  using MemberHandler = std::function<void(const MemberEvent&)>;
  void on_member(MemberHandler handler);
  /// Attaches the participant that does the work of a subgroup that this member is in. Needed
  /// before the first poll(), which otherwise ends the group here and throws. It must outlive the
  /// last poll(), and be destroyed before the group, because it uses its fabric. Throws Error for a
  /// subgroup that was not declared, or that has a participant already.
  void attach(const std::string& subgroup, SubgroupParticipant& participant);

  // --- subgroups that come and go at run time ----------------------------------------------------
  // These are asked for at any time after the constructor, by name, and change in poll(). A change
  // stops only the subgroup that it concerns. (docs/group.md, GRP-D1 to GRP-D8.) A layer above
  // calls them; a program with a multicast calls Multicast::join().

  /// Asks to be in that subgroup, which begins with the first member that asks for it. The
  /// participant is told when it begins, and of each change, and must stay until left() or
  /// detach_subgroup(). Throws Error for an invalid name or option, and for a subgroup that was
  /// declared or in which this member is.
  void join_subgroup(const std::string& subgroup, SubgroupParticipant& participant,
                     SubgroupJoin join);
  /// Asks to be among its senders, or not to be any more. Throws Error unless this member is in it,
  /// or has asked to be.
  void change_subgroup(const std::string& subgroup, bool sends);
  /// Asks to be out of it, once the participant has handed over what was sent here; its left() is
  /// called when this member is. Does nothing if it is in no such subgroup.
  void leave_subgroup(const std::string& subgroup);
  /// This participant of such a subgroup is not called any more: this member is out of the
  /// subgroup, and tells the others. Messages that were received and not delivered are dropped.
  /// Does nothing if the participant has left, or never joined.
  void detach_subgroup(SubgroupParticipant& participant) noexcept;
  /// Asks that all its members leave it. Any member of the group may.
  void remove_subgroup(const std::string& subgroup);
  /// The subgroups that came at run time, by name, as the members have told each other; without the
  /// declared ones. All members see the same changes of a subgroup in the same order.
  [[nodiscard]] std::vector<SubgroupInfo> subgroups() const;
  /// Grows when subgroups() changes.
  [[nodiscard]] std::uint64_t subgroup_changes() const noexcept;
  /// Called from poll() with each change of each of these subgroups, also if this member is not in
  /// it: the last one has no members. Replaces an earlier handler; null: none.
  using SubgroupHandler = std::function<void(const SubgroupInfo&)>;
  void on_subgroup(SubgroupHandler handler);

  /// Asks to be let go, once the others have what was sent here (MulticastOptions::hand_over_ms);
  /// poll() until ended(). The other members go on in a view without us.
  void leave();
  /// Whether this member is in no view any more, and the others know all that it knew.
  [[nodiscard]] bool ended() const noexcept;
  /// Why: a sentence. Empty while we are in a view.
  [[nodiscard]] const std::string& why_ended() const noexcept;
  /// Why no process can join at present: this member leads, and could not open its listener at the
  /// rendezvous. It tries again, every 20 ms. Empty if it could, or need not.
  [[nodiscard]] std::string why_closed() const;

  /// All progress is made here. Returns whether there was any: a number of things done. Throws what
  /// upcalls threw, and Error in an upcall of the same group.
  std::size_t poll();
  /// For run(): what to wait for besides the fabric of the constructor.
  [[nodiscard]] Waits waits() const;
  /// Throws Error if we had to stop, and did not just leave.
  void check() const;

  /// All that this member knows of the view, of the other members and of changing subgroups, in a
  /// few lines: for people who look for the cause of a hang.
  [[nodiscard]] std::string describe() const;
  /// The tables on which views are agreed, those of past views too: to look at, not to keep.
  void each_table(const std::function<void(const TableCore&)>& look) const;

 private:
  friend class GroupEntry;
  struct State;
  explicit Group(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct View {
  std::uint64_t number = 0;                // the first one is 1
  std::vector<std::string> members = {};   // by age: members of the view before come first
  std::vector<Rank> ranks = {};            // theirs in the fabric
  std::uint32_t me = 0;                    // our place among them
  std::vector<std::string> departed = {};  // members of the view before that are not in this one
  std::vector<std::string> left = {};      // a part of these: they asked to be let go
  std::vector<std::string> joined = {};    // members that were not in the view before
  friend std::ostream& operator<<(std::ostream& out, const View& view);
};

/// What this member has seen happen to a member of its group, or to itself.
struct MemberEvent {
  enum class Kind : std::uint8_t {
    suspected,  // this member takes it for failed, and asks for a view without it
    removed,    // a view begins without it, because members cannot reach it
    killed,     // this member has killed its process (Fabric::fence)
    joined,     // it is new in the view that begins; once for this member itself
    left,       // a view begins without it, as it asked
    ended       // this member is in no view any more
  };
  Kind kind;
  std::string member;
  std::uint64_t view = 0;  // the one that begins, or else the present one
  std::string why = {};    // a sentence; empty where the kind says all
  /// After how long. Suspected: the silence that was too long (0: it was noticed otherwise).
  /// Removed: since it was suspected here. Killed: since its connection was closed here.
  std::uint64_t after_ns = 0;
};

/// A subset of the members that do something together, such as a multicast. All members of the
/// group declare the same subgroups, in the same order, whether they are in them or not.
struct SubgroupSpec {
  std::string name;                       // [A-Za-z0-9._-], at most kMaxSubgroupNameBytes
  std::vector<std::string> members = {};  // by name; empty: all. In a view: those that are there
  std::vector<std::string> senders = {};  // a part of these; empty: all of them
};

/// A subgroup in one view.
struct Subgroup {
  std::string name;
  std::uint64_t view = 0;
  std::uint64_t change = 0;                 // of one that came at run time: its number in the view
  std::vector<Rank> members = {};           // ranks in the fabric, in the view's order
  std::vector<std::uint32_t> senders = {};  // places in `members`, ascending
  bool lacks_state = false;                 // nothing may be delivered here before take_state()
  bool had_members = false;                 // in an earlier view; any at all
  /// Of its regions: different for each view, and each change in it.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return change == 0 ? view : view << kChangeBits | change;
  }
  static constexpr unsigned kChangeBits = 32;
};

/// How a member takes part in a subgroup that comes and goes at run time.
struct SubgroupJoin {
  bool sends = true;  // this member is one of its senders
  /// A text that is the same for all members of the subgroup; at most kMaxSubgroupTextBytes. The
  /// first member's text counts: a member with another one is refused.
  std::string options = {};
  /// A description for other members, such as the type of the messages; at most
  /// kMaxSubgroupTextBytes. The first member's label counts, and later ones are ignored.
  std::string label = {};
  /// The subgroup begins once all of these members have asked for it: a durable one that is
  /// restarted needs the members that have its log. The first member's list counts; empty: at once.
  std::vector<std::string> founders = {};
};

/// A subgroup that came at run time, as it is after a change.
struct SubgroupInfo {
  std::string name;
  std::uint64_t view = 0;
  std::uint64_t change = 0;               // its number in the view; a later one is higher
  std::vector<std::string> members = {};  // in the view's order; empty: it has gone
  std::vector<std::string> senders = {};  // a part of these
  std::string options = {};
  std::string label = {};
};

/// A group beside the one that a fabric has, for other work of some of its members: with views,
/// subgroups and names of its own. It goes on without the dead of the fabric; a member that leaves
/// it, or is left behind by it, stays in the fabric. No member joins it later. (GRP-F1 to GRP-F4)
struct FurtherGroup {
  std::string name;                  // that no other group of the fabric has had
  std::vector<std::string> members;  // of its first view, in this order: the same list at each
  /// Of its control messages; no other group of the fabric has it. Messages on a channel hold back
  /// others until its group is made, so all members make it before they wait for each other.
  std::uint32_t channel;
};

struct GroupOptions {
  std::vector<SubgroupSpec> subgroups = {};
  /// Where others may join: either all members give one, or none does and no process can join. It
  /// is made for the group's name.
  std::shared_ptr<Rendezvous> rendezvous = nullptr;
  /// None: this is the fabric's own group, which decides who is in the fabric.
  std::optional<FurtherGroup> further = std::nullopt;
};

/// Group::join() step by step, beside whatever else its thread does.
class GroupEntry {
 public:
  GroupEntry(const std::string& name, GroupOptions options, std::uint32_t timeout_ms = 30'000);
  ~GroupEntry();
  GroupEntry(const GroupEntry&) = delete;
  GroupEntry& operator=(const GroupEntry&) = delete;
  /// Goes on, and does not wait. The group, once we are in a view; null before. Throws as join().
  [[nodiscard]] std::unique_ptr<Group> poll();
  [[nodiscard]] Waits waits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin
