#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/rendezvous/address.hpp"
#include "fabric/rendezvous/connection.hpp"
#include "fabric/rendezvous/roster_builder.hpp"
#include "fabric/stepped_join.hpp"

namespace dunlin::rendezvous {

/// Serves a rendezvous at a claimed address, step by step.
///
/// A process that connects is a *stranger* until it has proved that it knows the secret and has
/// sent its join request; then it is a *joiner*. Strangers are few, small and short-lived (RDV-N4).
class Host {
 public:
  Host(const Plan& plan, Bytes endpoint_address, Claim claim, std::uint64_t deadline_ns);
  /// Makes progress; returns the roster when all have met. Throws Error that names the missing
  /// members.
  [[nodiscard]] std::optional<Roster> poll();
  /// What poll() waits for.
  [[nodiscard]] Awaited awaited() const;

 private:
  struct Session {
    Connection connection;
    std::string from;
    std::uint64_t until_ns;  // for a stranger, or a joiner that leaves
    std::optional<RosterBuilder::Ticket> ticket = {};
    bool leaving = false;  // whether it has heard why, and we wait until it hangs up
    bool gone = false;
    bool readable = true;            // as far as we know
    std::uint32_t round = 0;         // the round whose roster it is or was sent
    std::uint32_t sent_members = 0;  // how many members of that round it was sent
    bool roster_sent = false;
  };

  // These are about members that come and go.
  void accept_strangers(std::uint64_t now_ns);
  void make_room();
  void make_room_for_descriptor(std::uint64_t now_ns);
  void receive(Session& session);
  void on_frame(Session& session, const Frame& frame);
  void request_join(Session& session, const Frame& frame);
  void refuse(Session& session, const std::string& why);
  void refuse_all(const std::string& why);
  void dismiss(Session& session);
  void flush(Session& session);
  void drop(Session& session);
  void note_stranger(const Session& session);
  void sweep(std::uint64_t now_ns);

  // These are about the news for joiners.
  void send_roster(Session& session);
  void send_news(std::uint64_t now_ns);
  void send_go();
  void advance();

  void look();
  [[nodiscard]] bool over() const;
  [[nodiscard]] Roster roster() const;
  [[noreturn]] void give_up();
  [[nodiscard]] std::size_t strangers() const;

  const Plan& plan_;
  RosterBuilder builder_;
  Claim claim_;
  std::uint64_t deadline_ns_;
  std::vector<std::unique_ptr<Session>> sessions_;  // in order of arrival
  std::uint32_t key_round_ = 0;
  Digest key_{};
  bool go_sent_ = false;
  bool news_ = false;  // whether there is news that not all have heard
  std::uint64_t next_news_ns_ = 0;
  std::uint64_t next_accept_ns_ = 0;
  std::uint64_t pushed_out_ = 0;
  // These counts are for the user, when not all have come.
  std::uint64_t without_proof_ = 0;
  std::string last_without_proof_;
  std::string last_refusal_;
  std::string refused_all_;  // why no member can stay
};

}  // namespace dunlin::rendezvous
