#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <dunlin/fabric.hpp>

/// How the members of a group agree that it is complete, so that join() returns in all of them or
/// in none; even if some die and are replaced meanwhile. Pure: packets that arrived go in, packets
/// to send come out.
///
/// Each process has a random incarnation number; a *round* is a full set of them, named by its
/// hash.
///  SHM-G1  A member that is connected to all others reports the round to rank 0 (`ready`), once.
///  SHM-G2  Rank 0 decides a round when it is connected to all of its members and all have reported
///      it; it then sends `go` to all. It decides once.
///  SHM-G3  A member that receives `go` for a round that it has reported sends it to all connected
///      members, then runs. So if any member that runs survives, all survivors of its round run.
///  SHM-G4  A member of the decided round that was lost meanwhile counts as failed from the start;
///      one that replaced it is refused.
namespace dunlin::shm {

class StartAgreement {
 public:
  using Incarnations = std::vector<std::uint64_t>;  // by rank; 0: that member is not here

  StartAgreement(Rank self, std::uint64_t incarnation, std::uint32_t members);

  void met(Rank rank, std::uint64_t incarnation);
  void lost(Rank rank);
  void on_ready(Rank from, std::uint64_t round);
  void on_go(std::uint64_t round);

  /// The round to report to rank 0 now, if it was not reported before.
  [[nodiscard]] std::optional<std::uint64_t> take_report();
  /// The members of the decided round; null: there is none yet.
  [[nodiscard]] const Incarnations* decided() const noexcept;
  [[nodiscard]] std::uint64_t decided_round() const noexcept;

  [[nodiscard]] bool here(Rank rank) const noexcept { return present_[rank] != 0; }
  [[nodiscard]] bool complete() const noexcept;

 private:
  struct Round {
    std::uint64_t hash;
    Incarnations incarnations;
  };
  [[nodiscard]] bool all_reported(std::uint64_t round) const noexcept;
  void decide_if_possible();

  Rank self_;
  Incarnations present_;
  std::vector<std::uint64_t> reports_;  // rank 0: the last round that each member reported
  std::vector<Round> reported_;         // the latest last
  bool report_is_out_ = false;          // whether the present members were reported
  std::optional<Round> decided_;
};

}  // namespace dunlin::shm
