#pragma once

#include <cstdint>
#include <string>

#include "fabric/rendezvous/channel.hpp"
#include "fabric/rendezvous/plan.hpp"

namespace dunlin::rendezvous {

/// A joiner's side of a rendezvous, once both sides trust each other: introduces itself, collects
/// the roster, confirms it, and hears how the rendezvous ends. Pure: answers go into the channel.
class JoinerHandshake {
 public:
  JoinerHandshake(const Plan& plan, Bytes endpoint_address, Channel& channel)
      : plan_(plan), endpoint_address_(endpoint_address), channel_(channel) {}

  void request_join();

  enum class Outcome : std::uint8_t {
    waiting,
    met,       // roster() is there
    refused,   // text() says why
    given_up,  // text() says why
    violated   // the host broke the protocol
  };
  [[nodiscard]] Outcome receive(const Frame& frame);

  [[nodiscard]] const Roster& roster() const noexcept { return roster_; }
  /// The host's last message: why the rendezvous ends, or for which members it waits. Printable.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  [[nodiscard]] bool on_member(Bytes body);
  [[nodiscard]] bool on_roster(Bytes body);

  const Plan& plan_;
  Bytes endpoint_address_;
  Channel& channel_;
  Roster roster_{};
  std::string text_;
  std::uint32_t round_ = 0;
  bool confirmed_ = false;
};

}  // namespace dunlin::rendezvous
