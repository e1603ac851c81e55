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

  // --- views -------------------------------------------------------------------------------------
  // Called in this order, in every view that has this process in the subgroup. A subgroup that
  // comes at run time has a view of its own after each change.
  /// Begins the view. An exception ends the group here.
  virtual void begin(Fabric& fabric, const Subgroup& subgroup) = 0;
  virtual std::size_t poll() = 0;
  /// Whether nothing has happened here for many polls, and nothing waits to be sent: then this
  /// participant need not be polled each time, while others have work to do.
  [[nodiscard]] virtual bool rests() const noexcept { return false; }
  /// Called when this member will leave the group or this subgroup, which waits until this returns
  /// true: the others have what was sent here, or are waited for no longer. From the first call on,
  /// nothing more may be sent. `sends`: whether this member has asked to be a sender. One that is
  /// none, and will be none, does not wait: what it has left is never sent.
  [[nodiscard]] virtual bool hand_over([[maybe_unused]] bool sends) { return true; }
  /// The view will end: stop sending, receiving and delivering.
  virtual void wedge() noexcept = 0;
  /// How much of each sender's messages has been received; does not change once wedged.
  [[nodiscard]] virtual std::span<const std::uint64_t> received() const noexcept = 0;
  /// Ends the view. `trim` says how much of each sender's messages counts, for all members that go
  /// on (`staying`, their ranks): deliver that, and no more. An exception comes out of poll(), once
  /// the next view has been entered.
  virtual void finish(std::span<const std::uint64_t> trim, std::span<const Rank> staying) = 0;

  // --- for members that come into a group that runs already --------------------------------------
  /// Whether this participant needs the members' state before it delivers anything.
  [[nodiscard]] virtual bool wants_state() const noexcept { return false; }
  /// The state for a participant at another member; none while it is not available.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> give_state() { return std::nullopt; }
  /// Takes the state of another member, in the view at hand.
  virtual void take_state(std::span<const std::byte>) {}

  // --- for a subgroup that came at run time ------------------------------------------------------
  /// Whether this participant, which has not been given the state, can begin the subgroup without
  /// one, after finish(): all members that had the state are gone. If it cannot, it is told that it
  /// has left.
  [[nodiscard]] virtual bool can_begin_anew() const noexcept { return true; }
  /// Called when this member is no more in the subgroup: the last call. `why` is a sentence, or
  /// empty if this member asked for it.
  virtual void left(const std::string& /*why*/) {}
};

}  // namespace dunlin
