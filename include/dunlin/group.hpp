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
///     auto fabric = dunlin::join({.group = "rack7", .names = {"a", "b", "c"}, .name = "a"});
///     dunlin::Group group(*fabric);
///     group.on_view([](const dunlin::View& view) { std::cout << view << '\n'; });
///     dunlin::run(group);
///
/// Others may join, if all give a rendezvous:
///
///     const auto place = dunlin::make_rendezvous({.group = "rack7"});
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

  /// The first view has all members of the fabric, or those of options.further. The fabric must
  /// outlive the group. Does not wait for the other members. Throws Error.
  Group(Fabric& fabric, GroupOptions options);
  explicit Group(Fabric& fabric);
  /// Joins a running group under that name, and returns when this member is in a view: attach its
  /// participants then, and poll(). Needs options.rendezvous. Throws Error if the group refuses
  /// this member, or the time is up.
  [[nodiscard]] static std::unique_ptr<Group> join(const std::string& name, GroupOptions options,
                                                   std::uint32_t timeout_ms = 30'000);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// The fabric that the constructor was given, or that join() made; it never changes.
  [[nodiscard]] Fabric& fabric() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const View& view() const noexcept;
  /// The number of members of the first view, which have the first ranks of the fabric.
  [[nodiscard]] std::uint32_t founders() const noexcept;
  /// Sets the handler that poll() calls with every view, the first one too: after the last delivery
  /// of the former view, and before the first delivery of this one. Replaces an earlier handler;
  /// null: none. An exception of the handler comes out of poll(), once the view has begun.
  void on_view(ViewHandler handler);
  /// Sets the handler that poll() calls with what this member sees happen to a member, for people
  /// to read. Replaces an earlier handler; null: none.
  using MemberHandler = std::function<void(const MemberEvent&)>;
  void on_member(MemberHandler handler);
  /// Attaches the participant that does the work of a subgroup that this member is in. Needed
  /// before the first poll(), which otherwise ends the group here and throws. It must outlive the
  /// last poll(), and be destroyed before the group, because it uses its fabric. Throws Error for a
  /// subgroup that was not declared, or that has a participant already.
  void attach(const std::string& subgroup, SubgroupParticipant& participant);

  // --- subgroups that come and go at run time ----------------------------------------------------
  // A program asks for these subgroups at any time after the constructor, by name, and they change
  // in poll(). A change stops only the subgroup that it concerns. (docs/group.md, GRP-D1 to
  // GRP-D8.) A layer above calls these functions; a program with a multicast calls
  // Multicast::join().

  /// Asks to be in that subgroup, which begins with the first member that asks for it. The
  /// participant is told when the subgroup begins, and of each change; it must live until left() or
  /// detach_subgroup(). Throws Error for an invalid name or option, and for a subgroup that was
  /// declared or in which this member is already.
  void join_subgroup(const std::string& subgroup, SubgroupParticipant& participant,
                     SubgroupJoin join);
  /// Asks that this member becomes a sender of the subgroup, or ceases to be one. Throws Error
  /// unless this member is in the subgroup, or has asked to be.
  void change_subgroup(const std::string& subgroup, bool sends);
  /// Asks that this member leaves the subgroup, once its participant has handed over what was sent
  /// here; the participant's left() is called then. Does nothing if this member is in no such
  /// subgroup.
  void leave_subgroup(const std::string& subgroup);
  /// Takes this member out of the participant's subgroup, and tells the others; the participant is
  /// not called any more. Drops messages that were received and not delivered. Does nothing if the
  /// participant has left, or never joined.
  void detach_subgroup(SubgroupParticipant& participant) noexcept;
  /// Asks that all members of the subgroup leave it. Any member of the group may call this.
  void remove_subgroup(const std::string& subgroup);
  /// The subgroups that came at run time, by name, as the members have told each other; without the
  /// declared ones. All members see the same changes of a subgroup in the same order.
  [[nodiscard]] std::vector<SubgroupInfo> subgroups() const;
  /// A number that grows when subgroups() changes.
  [[nodiscard]] std::uint64_t subgroup_changes() const noexcept;
  /// Sets the handler that poll() calls with each change of each subgroup that came at run time,
  /// also if this member is not in it: after the last change it has no members. Replaces an earlier
  /// handler; null: none.
  using SubgroupHandler = std::function<void(const SubgroupInfo&)>;
  void on_subgroup(SubgroupHandler handler);

  /// Asks that this member leaves the group, once the others have what was sent here
  /// (MulticastOptions::hand_over_ms); poll() until ended(). The others go on in a view without it.
  void leave();
  /// Whether this member is in no view any more, and the other members know all that it knew.
  [[nodiscard]] bool ended() const noexcept;
  /// A sentence that says why this member is in no view any more; empty while it is in one.
  [[nodiscard]] const std::string& why_ended() const noexcept;
  /// A sentence that says why no process can join at present: this member leads, and could not open
  /// its listener at the rendezvous. It tries again every 20 ms. Empty if it could, or need not.
  [[nodiscard]] std::string why_closed() const;

  /// Makes all progress. Returns how many things were done. Throws what upcalls threw, and Error if
  /// an upcall of this group calls it.
  std::size_t poll();
  /// What run() waits for besides the fabric of the constructor.
  [[nodiscard]] Waits waits() const;
  /// Throws Error if this member had to stop, and did not just leave.
  void check() const;

  /// All that this member knows of the view, of the other members and of changing subgroups, in a
  /// few lines: for people who look for the cause of a hang.
  [[nodiscard]] std::string describe() const;
  /// Visits the tables on which views are agreed, those of past views too: to look at, not to keep.
  void each_table(const std::function<void(const TableCore&)>& look) const;

 private:
  friend class GroupEntry;
  struct State;
  explicit Group(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct View {
  std::uint64_t number = 0;                // the first view is 1
  std::vector<std::string> members = {};   // by age: members of the former view come first
  std::vector<Rank> ranks = {};            // the members' ranks in the fabric
  std::uint32_t me = 0;                    // this member's index in `members`
  std::vector<std::string> departed = {};  // members of the former view that are not in this one
  std::vector<std::string> left = {};      // those of `departed` that asked to leave
  std::vector<std::string> joined = {};    // members that were not in the former view
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
  std::uint64_t view = 0;  // the view that begins, or else the present one
  std::string why = {};    // a sentence; empty where the kind says all
  /// After how long. Suspected: the silence that was too long (0: it was noticed otherwise).
  /// Removed: since it was suspected here. Killed: since its connection was closed here.
  std::uint64_t after_ns = 0;
};

/// A subset of the members that do something together, such as a multicast. All members of the
/// group declare the same subgroups, in the same order, whether they are in them or not.
struct SubgroupSpec {
  std::string name;                       // [A-Za-z0-9._-], at most kMaxSubgroupNameBytes
  std::vector<std::string> members = {};  // names; empty: all. In a view: those that are there
  std::vector<std::string> senders = {};  // the members that may send; empty: all of them
};

/// A subgroup in one view.
struct Subgroup {
  std::string name;
  std::uint64_t view = 0;
  /// For a subgroup that came at run time: the number of its last change in the view.
  std::uint64_t change = 0;
  std::vector<Rank> members = {};           // ranks in the fabric, in the view's order
  std::vector<std::uint32_t> senders = {};  // indices in `members`, ascending
  bool lacks_state = false;                 // nothing may be delivered here before take_state()
  bool had_members = false;                 // whether an earlier view had any members of it
  /// The generation of the subgroup's regions: different for each view, and each change in it.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return change == 0 ? view : view << kChangeBits | change;
  }
  static constexpr unsigned kChangeBits = 32;
};

/// How a member takes part in a subgroup that comes and goes at run time.
struct SubgroupJoin {
  bool sends = true;  // this member is one of the subgroup's senders
  /// A text that is the same for all members of the subgroup; at most kMaxSubgroupTextBytes. The
  /// first member's text counts: a member with another one is refused.
  std::string options = {};
  /// A description for other members, such as the type of the messages; at most
  /// kMaxSubgroupTextBytes. The first member's label counts, and later ones are ignored.
  std::string label = {};
  /// The subgroup begins once all of these members have asked for it: a durable subgroup that is
  /// restarted needs the members that have its log. The first member's list counts; empty: it
  /// begins at once.
  std::vector<std::string> founders = {};
};

/// A subgroup that came at run time, as it is after a change.
struct SubgroupInfo {
  std::string name;
  std::uint64_t view = 0;
  std::uint64_t change = 0;  // the number of the last change in the view; a later one is higher
  std::vector<std::string> members = {};  // in the view's order; empty: the subgroup has gone
  std::vector<std::string> senders = {};  // those of `members` that may send
  std::string options = {};
  std::string label = {};
};

/// A group beside the one that a fabric has, for other work of some of its members; it has its own
/// views, subgroups and names. It goes on without the dead of the fabric; a member that leaves it,
/// or is left behind by it, stays in the fabric. No member joins it later. (GRP-F1 to GRP-F4)
struct FurtherGroup {
  std::string name;                  // a name that no other group of the fabric has had
  std::vector<std::string> members;  // the first view's members, in this order; equal lists at all
  /// The channel of its control messages, which no other group of the fabric has. Messages on a
  /// channel hold back others until its group is made, so all members make it before they wait for
  /// each other.
  std::uint32_t channel;
};

struct GroupOptions {
  std::vector<SubgroupSpec> subgroups = {};
  /// Where others may join, a rendezvous made for the group's name: either all members give one, or
  /// none does and no process can join.
  std::shared_ptr<Rendezvous> rendezvous = nullptr;
  /// The description of a further group; none: this is the fabric's own group, which decides who is
  /// in the fabric.
  std::optional<FurtherGroup> further = std::nullopt;
};

/// A Group::join() that proceeds step by step, beside whatever else its thread does.
class GroupEntry {
 public:
  GroupEntry(const std::string& name, GroupOptions options, std::uint32_t timeout_ms = 30'000);
  ~GroupEntry();
  GroupEntry(const GroupEntry&) = delete;
  GroupEntry& operator=(const GroupEntry&) = delete;
  /// Makes progress, and does not wait. Returns the group once this member is in a view; null
  /// before. Throws what join() throws.
  [[nodiscard]] std::unique_ptr<Group> poll();
  [[nodiscard]] Waits waits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin
