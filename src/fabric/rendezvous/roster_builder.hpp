#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric/rendezvous/plan.hpp"

namespace dunlin::rendezvous {

/// The host's view of the members of a rendezvous: which have come, which it waits for, and when
/// all know each other. Pure: frames that arrived go in, frames to send come out.
///
/// A *round* is a complete set of members. It begins whenever the last place is taken, and ends
/// when a member leaves; then the place is free again, and the next round has another roster.
///  RDV-R1  Ranks are given when a round begins: to each the one it asked for, and the remaining
///      ones to the others in order of arrival. So a member that asks for a rank gets it, however
///      late it comes.
///  RDV-R2  A round is decided when all its members have said that they know its roster; there is
///      no other after that.
class RosterBuilder {
 public:
  /// The host is the first member to come.
  RosterBuilder(const Plan& plan, Bytes endpoint_address);

  using Ticket = std::uint32_t;
  static constexpr Ticket kHost = 0;
  struct Verdict {
    std::optional<Ticket> admitted;
    std::string refusal = {};  // why it was not admitted
    bool taken = false;        // because another member has the place
    bool other_group = false;  // it may meet its group elsewhere
  };
  /// Admits a joiner, or says why not. `from` says in messages where the joiner came from.
  [[nodiscard]] Verdict admit(const JoinRequest& joiner, const std::string& from);
  void left(Ticket ticket);
  /// Notes that a member knows the round's roster. False if there is no such round, or the member
  /// said so before.
  [[nodiscard]] bool confirmed(Ticket ticket, std::uint32_t round);

  [[nodiscard]] std::size_t missing() const noexcept { return plan_.members() - here_.size(); }
  [[nodiscard]] bool complete() const noexcept { return missing() == 0; }
  [[nodiscard]] bool decided() const noexcept { return decided_; }
  /// The number of the current round; the first is 1.
  [[nodiscard]] std::uint32_t round() const noexcept { return round_; }

  // These are about the current round.
  [[nodiscard]] Rank rank_of(Ticket ticket) const { return here_.at(ticket).rank; }
  [[nodiscard]] Bytes endpoint_address_of(Rank rank) const {
    return here_.at(by_rank_[rank]).endpoint_address;
  }

  /// Which members have come: "2 of 4 members have come; missing: rank 1, 'c' (rank 2)", or which
  /// have not confirmed.
  [[nodiscard]] std::string progress() const;

 private:
  struct Member {
    Rank asked_for;
    std::string from;
    std::vector<std::byte> endpoint_address;
    Rank rank = kAnyRank;
    std::uint32_t confirmed_round = 0;
  };
  [[nodiscard]] std::string mismatch(const JoinRequest& joiner) const;
  [[nodiscard]] const Member* holder_of(Rank rank) const;
  [[nodiscard]] std::vector<bool> asked_for() const;  // by rank
  void sit_down(Member member);
  void begin_round();
  void decide_if_possible();
  [[nodiscard]] std::string missing_names() const;

  const Plan& plan_;
  std::map<Ticket, Member> here_;  // in order of arrival
  std::vector<Ticket> by_rank_;    // in the current round
  Ticket next_ticket_ = kHost;
  std::uint32_t round_ = 0;
  bool decided_ = false;
};

}  // namespace dunlin::rendezvous
