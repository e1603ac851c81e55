#pragma once

#include <cstdint>
#include <string>

#include "fabric/meeting/channel.hpp"
#include "fabric/meeting/plan.hpp"

namespace dunlin::meeting {

/// A guest's side of a meeting, once both trust each other: introduces itself, collects the roster,
/// confirms it, and hears how it ends. Pure: answers go into the channel.
class Visit {
 public:
  Visit(const Plan& plan, Bytes card, Channel& channel)
      : plan_(plan), card_(card), channel_(channel) {}

  void introduce();

  enum class Outcome : std::uint8_t {
    waiting,
    met,       // roster()
    refused,   // text()
    given_up,  // text()
    violated   // the host broke the protocol
  };
  [[nodiscard]] Outcome hear(const Frame& frame);

  [[nodiscard]] const Roster& roster() const noexcept { return roster_; }
  /// What the host said last: why it ends, or whom it waits for. Printable.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  [[nodiscard]] bool hear_member(Bytes body);
  [[nodiscard]] bool hear_roster(Bytes body);

  const Plan& plan_;
  Bytes card_;
  Channel& channel_;
  Roster roster_{};
  std::string text_;
  std::uint32_t round_ = 0;
  bool confirmed_ = false;
};

}  // namespace dunlin::meeting
