#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dunlin/pubsub.hpp>

#include "bench/harness/turns.hpp"
#include "bench/multicast/patience.hpp"

namespace dunlin::bench {

/// A member of a group whose topics are measured. `delivered` counts the samples of its readers
/// from the beginning, and `goal` those that all turns so far have written: it is alike at all
/// members.
class TopicNode {
 public:
  TopicNode(Member& me, std::unique_ptr<Fabric> fabric, pubsub::ParticipantOptions options = {})
      : me_(me),
        fabric_(std::move(fabric)),
        group_(*fabric_),
        participant_(group_, std::move(options)) {
    subscription_ = fabric_->subscribe([this](const Event& event) {
      if (event.kind == Event::Kind::peer_failed) me_.lost(event.peer, event.text);
    });
  }
  [[nodiscard]] Member& me() noexcept { return me_; }
  [[nodiscard]] bool writes() const noexcept { return me_.rank() == 0; }
  [[nodiscard]] pubsub::DomainParticipant& participant() noexcept { return participant_; }
  std::size_t poll() { return participant_.poll() + (beside ? beside() : 0); }
  template <class Condition>
  void poll_until(Condition&& condition) {
    for (Patience patience; !condition();) patience.after(poll() > 0);
  }
  void meet() {
    me_.meet([this] { poll(); });
  }
  template <class Turn>
  std::optional<double> turn(Turn&& turn) {
    return take_turn(
        me_, [this] { poll(); }, std::forward<Turn>(turn));
  }

  std::uint64_t delivered = 0;
  std::uint64_t goal = 0;
  std::function<std::size_t()> beside = nullptr;  // polled with it, as other work of its thread

 private:
  Member& me_;
  std::unique_ptr<Fabric> fabric_;
  Subscription subscription_;
  dunlin::Group group_;
  pubsub::DomainParticipant participant_;
};

}  // namespace dunlin::bench
