#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/meeting/address.hpp"
#include "fabric/meeting/connection.hpp"
#include "fabric/meeting/gathering.hpp"
#include "fabric/stepped_formation.hpp"

namespace dunlin::meeting {

/// Serves a meeting at a claimed address, step by step.
///
/// Whoever connects is a *stranger* until it has proved that it knows the secret and has introduced
/// itself; then it is a *guest*. Strangers are few, small and short-lived (RDV-N4).
class Host {
 public:
  Host(const Plan& plan, Bytes card, Claim claim, std::uint64_t deadline_ns);
  /// Goes on; the roster when all have met. Error says who is missing.
  [[nodiscard]] std::optional<Roster> poll();
  /// For what, until then.
  [[nodiscard]] Awaited awaited() const;

 private:
  struct Visitor {
    Connection connection;
    std::string from;
    std::uint64_t until_ns;  // of a stranger, or one who leaves
    std::optional<Gathering::Ticket> ticket = {};
    bool leaving = false;  // has heard why; we wait until it hangs up
    bool gone = false;
    bool readable = true;     // as far as we know
    std::uint32_t round = 0;  // that we are telling, or have told
    std::uint32_t told = 0;   // members of that round
    bool told_all = false;
  };

  // Who comes and goes.
  void accept_strangers(std::uint64_t now_ns);
  void make_room();
  void make_room_for_descriptor(std::uint64_t now_ns);
  void hear(Visitor& visitor);
  void hear_frame(Visitor& visitor, const Frame& frame);
  void introduce(Visitor& visitor, const Frame& frame);
  void refuse(Visitor& visitor, const std::string& why);
  void refuse_all(const std::string& why);
  void dismiss(Visitor& visitor);
  void speak(Visitor& visitor);
  void drop(Visitor& visitor);
  void note_stranger(const Visitor& visitor);
  void sweep(std::uint64_t now_ns);

  // What guests are told.
  void tell_roster(Visitor& visitor);
  void tell_news(std::uint64_t now_ns);
  void tell_go();
  void advance();

  void look();
  [[nodiscard]] bool over() const;
  [[nodiscard]] Roster roster() const;
  [[noreturn]] void give_up();
  [[nodiscard]] std::size_t strangers() const;

  const Plan& plan_;
  Gathering gathering_;
  Claim claim_;
  std::uint64_t deadline_ns_;
  std::vector<std::unique_ptr<Visitor>> visitors_;  // in order of arrival
  std::uint32_t key_round_ = 0;
  Digest key_{};
  bool told_go_ = false;
  bool news_ = false;  // that not all have heard
  std::uint64_t next_news_ns_ = 0;
  std::uint64_t next_accept_ns_ = 0;
  // What a user wants to know when not all have come.
  std::uint64_t without_proof_ = 0;
  std::string last_without_proof_;
  std::string last_refusal_;
  std::string refused_all_;  // why nobody can stay
};

}  // namespace dunlin::meeting
