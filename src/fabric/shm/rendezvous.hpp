#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/segments/segment.hpp"
#include "fabric/shm/address.hpp"
#include "fabric/shm/base_segment.hpp"
#include "fabric/shm/formation.hpp"
#include "fabric/shm/identity.hpp"
#include "fabric/shm/packet.hpp"

/// Finding the other members on this host. Each claims its rank's address and listens there,
/// connects to all lower ranks, and lets Formation decide when the group is complete.
namespace dunlin::shm {

using segments::create_segment;
using segments::map_peer_segment;
using segments::Mapping;
using segments::OwnSegment;
using segments::PeerSegment;
using segments::SegmentInfo;
using segments::SegmentKind;

/// A member as the rendezvous found it.
struct Link {
  Descriptor socket = {};  // none: ourselves, or lost while the group was forming
  Descriptor bell = {};
  std::shared_ptr<Mapping> base = {};
  pid_t pid = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t silence_timeout_ms = 0;
  bool needs_fence = false;
};

/// What a complete rendezvous leaves behind.
struct Attachment {
  Identity self;
  Access access;
  Descriptor listener;
  Descriptor bell;
  OwnSegment base;
  std::vector<Link> links;  // by rank
};

class Rendezvous {
 public:
  explicit Rendezvous(const JoinOptions& options);
  /// Waits for all members; Error says who did not come.
  [[nodiscard]] Attachment run();

 private:
  struct Arrival {
    Descriptor socket;
    Counterpart who;
  };

  // Claiming a rank (claim.cpp).
  void claim_rank(const JoinOptions& options);
  void outlast_the_dying(const std::vector<Rank>& wanted, std::uint64_t deadline_ns);
  [[nodiscard]] bool claim_one_of(const std::vector<Rank>& wanted);
  [[noreturn]] void throw_taken(const std::vector<Rank>& wanted) const;
  void make_base();

  // The loop (rendezvous.cpp).
  void step();
  void advance();
  void tell_everyone_to_go();
  void wait_for_news(std::uint64_t deadline_ns);
  [[nodiscard]] Attachment finish();
  [[noreturn]] void throw_incomplete() const;
  [[nodiscard]] std::string missing_members() const;

  // Getting to know the others (greeting.cpp).
  void connect_to_lower();
  void connect_to(Rank rank);
  void probe_higher();
  void read_probes();
  void accept_arrivals();
  void read_arrivals();
  [[nodiscard]] bool still_silent(Arrival& arrival);
  void admit(Arrival& arrival, Received& hello);
  void read_link(Rank rank);
  void handle(Rank rank, Received& received);
  void greet(Rank rank, Received& hello);
  void lose(Rank rank, const std::string& why);
  [[nodiscard]] Packet introduction(PacketType type) const;
  [[nodiscard]] std::string mismatch(const Packet& hello, pid_t pid) const;

  [[nodiscard]] bool met(Rank rank) const { return links_[rank].incarnation != 0; }
  [[nodiscard]] std::string group_text() const { return "group '" + self_.group + "'"; }
  [[nodiscard]] std::string who(Rank rank) const;
  [[nodiscard]] static std::string stranger(const Counterpart& holder);

  Identity self_;
  Access access_;
  std::uint32_t timeout_ms_;
  Descriptor listener_;
  Descriptor bell_;
  OwnSegment base_;
  std::vector<Link> links_;
  std::vector<std::string> notes_;  // by rank: what became of one who came and is not here
  std::vector<Arrival> arrivals_;   // connected, and have not said who they are
  std::vector<Descriptor> probes_;  // by rank
  std::optional<Formation> formation_;
  std::uint64_t next_try_ns_ = 0;
  std::uint64_t try_interval_ns_;
  std::uint64_t next_probe_ns_ = 0;
};

}  // namespace dunlin::shm
