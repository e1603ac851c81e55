#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/group.hpp>

/// The interface of a layer above a group, for one of its subgroups. A program that sends and
/// delivers messages needs only <dunlin/multicast.hpp>, which is such a layer.
namespace dunlin {

/// The work of a layer above in a subgroup; called from the group's poll().
class SubgroupParticipant {
 public:
  SubgroupParticipant() = default;
  SubgroupParticipant(const SubgroupParticipant&) = delete;
  SubgroupParticipant& operator=(const SubgroupParticipant&) = delete;
  virtual ~SubgroupParticipant() = default;

  // --- in every view that has this process in the subgroup, in this order; a subgroup that comes
  // at run time has a view of its own after each change ------------------------
  /// An exception ends the group here.
  virtual void begin(Fabric& fabric, const Subgroup& subgroup) = 0;
  virtual std::size_t poll() = 0;
  /// Nothing has happened here for many polls, and nothing waits to be sent: while other parts have
  /// work to do, this one need not be polled each time.
  [[nodiscard]] virtual bool rests() const noexcept { return false; }
  /// This member will leave the group or this subgroup, and waits until this returns true: the
  /// others have what was sent here, or are waited for no longer. Nothing more may be sent from the
  /// first call on.
  [[nodiscard]] virtual bool hand_over() { return true; }
  /// The view will end: send, receive and deliver no more.
  virtual void wedge() noexcept = 0;
  /// How much of each sender has been received; does not change once wedged.
  [[nodiscard]] virtual std::span<const std::uint64_t> received() const noexcept = 0;
  /// How much of each sender counts, for all members that go on (`staying`, their ranks): deliver
  /// that, and no more. An exception comes out of poll(), once the next view has been entered.
  virtual void finish(std::span<const std::uint64_t> trim, std::span<const Rank> staying) = 0;

  // --- for members that come into a group that works already -------------------------------------
  /// Whether this participant needs the members' state before it delivers anything.
  [[nodiscard]] virtual bool wants_state() const noexcept { return false; }
  /// The state for a participant at another member; none while it is not available.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> give_state() { return std::nullopt; }
  /// That of another member, in the view at hand.
  virtual void take_state(std::span<const std::byte>) {}

  // --- of a subgroup that came at run time -------------------------------------------------------
  /// Whether this part, which has not been given the state, can begin the subgroup without one,
  /// after finish(): all members that had the state are gone. Else it is told that it has left.
  [[nodiscard]] virtual bool can_begin_anew() const noexcept { return true; }
  /// This member is in it no more: the last call. `why`: a sentence, empty if this member asked for
  /// it.
  virtual void left(const std::string& /*why*/) {}
};

}  // namespace dunlin
