#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

/// A group moves through numbered views: ordered lists of members on which all its members agree.
/// Crashes and leaves end a view and begin the next. Who goes on from one view to the next has seen
/// the same of it (virtual synchrony); a minority stops, so there are never two groups where there
/// was one. One thread at a time uses a group and its fabric; all progress is made in poll().
///
///     auto fabric = dunlin::shm::join({.group = "rack7", .names = {"a", "b", "c"}, .name = "a"});
///     dunlin::Group group(*fabric);
///     group.on_view([](const dunlin::View& view) { std::cout << view << '\n'; });
///     dunlin::run(group);
///
/// docs/group.md says what is promised, by which protocol, and where its ideas come from.
namespace dunlin {

struct View {
  std::uint64_t number = 0;           // the first one is 1
  std::vector<std::string> members;   // by age: who was in the view before comes first
  std::uint32_t me = 0;               // our place among them
  std::vector<std::string> departed;  // members of the view before that are not in this one
  friend std::ostream& operator<<(std::ostream& out, const View& view);
};

/// A part of the members that does something together, such as a multicast. All members of the
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
  std::vector<Rank> members;           // ranks in the fabric, in the view's order
  std::vector<std::uint32_t> senders;  // places in `members`, ascending
};

/// What a layer above does in a subgroup; called from the group's poll().
class SubgroupPart {
 public:
  SubgroupPart() = default;
  SubgroupPart(const SubgroupPart&) = delete;
  SubgroupPart& operator=(const SubgroupPart&) = delete;
  virtual ~SubgroupPart() = default;

  /// In every view that has this process in the subgroup, in this order:
  virtual void begin(Fabric& fabric, const Subgroup& subgroup) = 0;
  virtual std::size_t poll() = 0;
  /// The view will end: send, receive and deliver no more.
  virtual void wedge() noexcept = 0;
  /// How much of each sender has been received; does not change once wedged.
  [[nodiscard]] virtual std::span<const std::uint64_t> received() const noexcept = 0;
  /// How much of each sender counts, for all members that go on: deliver that, and no more.
  virtual void finish(std::span<const std::uint64_t> trim) = 0;
};

struct GroupOptions {
  std::vector<SubgroupSpec> subgroups = {};
};

class Group {
 public:
  using ViewHandler = std::function<void(const View&)>;

  /// The first view has all members of the fabric, which must outlive the group. Throws Error. Does
  /// not wait for the others.
  explicit Group(Fabric& fabric, GroupOptions options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] Fabric& fabric() const noexcept;
  [[nodiscard]] const View& view() const noexcept;
  /// Called from poll() with every view, the first one too: after the last delivery of the view
  /// before, and before the first of this one. Replaces an earlier handler.
  void on_view(ViewHandler handler);
  /// Who does the work of a subgroup: before the first poll(); it must outlive the group. Throws
  /// Error for a subgroup that was not declared, or that somebody does already.
  void attach(const std::string& subgroup, SubgroupPart& part);

  /// Asks to be let go; poll() until ended(). The other members go on in a view without us.
  void leave();
  /// Whether we are in no view any more, and everybody knows what we knew.
  [[nodiscard]] bool ended() const noexcept;
  /// Why: a sentence. Empty while we are in a view.
  [[nodiscard]] const std::string& why_ended() const noexcept;

  std::size_t poll();
  /// Throws Error if we had to stop, and did not just leave.
  void check() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin
