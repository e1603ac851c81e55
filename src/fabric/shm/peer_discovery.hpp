#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/backoff.hpp"
#include "fabric/shm/address.hpp"
#include "fabric/shm/link.hpp"
#include "fabric/shm/start_agreement.hpp"
#include "fabric/stepped_join.hpp"

/// Finds the other members on this host. Each member claims its rank's address and listens there,
/// connects to all lower ranks, and lets a StartAgreement decide when the group is complete.
namespace dunlin::shm {

class PeerDiscovery {
 public:
  explicit PeerDiscovery(const JoinOptions& options);
  /// Makes progress; returns the attachment once all members are here, and nothing after that.
  /// Throws Error that names the members that did not come in time.
  [[nodiscard]] std::optional<Attachment> poll();
  /// What poll() waits for.
  [[nodiscard]] Awaited awaited() const;
  /// The members that are not here yet, and the state of each.
  [[nodiscard]] std::string missing_members() const;

 private:
  struct Arrival {
    Descriptor socket;
    Counterpart who;
  };

  // These are in claim.cpp.
  [[nodiscard]] bool claim_rank();
  void outlast_the_dying(std::uint64_t now_ns);
  [[nodiscard]] bool claim_one_of_those_wanted();
  [[noreturn]] void throw_taken() const;
  void make_base();

  // These are in peer_discovery.cpp.
  void step();
  void advance();
  void send_go_to_all();
  [[nodiscard]] Attachment finish();
  [[noreturn]] void throw_incomplete() const;

  // These are in greeting.cpp.
  void connect_to_lower();
  void connect_to(Rank rank);
  void probe_higher();
  void read_probes();
  void accept_arrivals();
  void read_arrivals();
  [[nodiscard]] bool still_silent(Arrival& arrival);
  void admit(Arrival& arrival, Received& hello);
  void read_links();
  void read_link(Rank rank);
  void handle(Rank rank, Received& received);
  void greet(Rank rank, Received& hello);
  void lose(Rank rank, const std::string& why);
  [[nodiscard]] std::string mismatch(const Packet& hello, pid_t pid) const;

  [[nodiscard]] bool met(Rank rank) const { return links_[rank].incarnation != 0; }
  [[nodiscard]] std::string group_text() const { return "group '" + self_.group + "'"; }
  [[nodiscard]] std::string who(Rank rank) const;
  [[nodiscard]] static std::string stranger(const Counterpart& holder);

  Identity self_;
  Access access_;
  std::uint32_t timeout_ms_;
  std::uint64_t deadline_ns_;  // for a rank; then for the others

  std::vector<Rank> wanted_;
  std::uint64_t grace_until_ns_;
  std::uint64_t next_claim_ns_ = 0;
  std::optional<std::vector<pid_t>> holders_;  // of wanted ranks, after the grace time
  bool some_are_dying_ = true;
  Descriptor listener_;
  Descriptor bell_;
  OwnMapping base_;
  std::vector<Link> links_;
  std::vector<std::string> notes_;  // by rank: what became of a member that came and is gone
  std::vector<Arrival> arrivals_;   // connected, but not identified yet
  std::vector<Descriptor> probes_;  // by rank
  std::optional<StartAgreement> agreement_;  // set once we have a rank
  std::uint64_t next_try_ns_ = 0;
  Backoff tries_{1'000'000, 16'000'000};
  std::uint64_t next_probe_ns_ = 0;
};

}  // namespace dunlin::shm
