#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/counters/counters.hpp"

namespace dunlin::container {

class ContainerCounters;

/// What the containers of a Hub show to observers besides their own counters.
class HubCounters {
 public:
  HubCounters(Fabric& fabric, std::uint32_t channel)
      : fabric_(fabric), all_(fabric, "channel=" + std::to_string(channel)), channel_(channel) {}

  /// Called in each poll.
  inline void show(std::size_t in_flight) noexcept;

 private:
  friend class ContainerCounters;

  Fabric& fabric_;
  CounterSet all_;
  SharedCounter in_flight_ = all_.add_level("container.in_flight");
  const std::uint32_t channel_;
  std::vector<ContainerCounters*> containers_;
  std::uint64_t looked_at_ns_ = 0;
};

/// What one container shows to observers: calls of this process by the way in which they are done.
class ContainerCounters {
 public:
  /// Called every 10 ms while the process polls: how many entries there are, as far as is known.
  /// Not in each poll, because the words lie in cache lines that other members change.
  using Look = std::function<std::uint64_t()>;

  ContainerCounters(HubCounters& hub, const std::string& kind, const std::string& name,
                    std::uint64_t slots, Look look)
      : hub_(hub),
        look_(std::move(look)),
        all_(hub.fabric_,
             "container=" + name + "\nkind=" + kind + "\nchannel=" + std::to_string(hub.channel_)) {
    entries.set(SharedCounter::kUnknown);
    capacity.set(slots);
    hub_.containers_.push_back(this);
  }
  ~ContainerCounters() { std::erase(hub_.containers_, this); }
  ContainerCounters(const ContainerCounters&) = delete;
  ContainerCounters& operator=(const ContainerCounters&) = delete;

  void look() noexcept {
    if (look_ != nullptr) entries.set(look_());
  }

 private:
  HubCounters& hub_;
  Look look_;
  CounterSet all_;

 public:
  SharedCounter entries = all_.add_level("container.entries");
  SharedCounter capacity = all_.add_level("container.capacity");
  SharedCounter one_sided =
      all_.add("container.one_sided");  // on another member's part or the own one
  SharedCounter by_message = all_.add("container.by_message");  // on another's part
  SharedCounter local = all_.add("container.local");  // with the processor, on the own part
  SharedCounter served =
      all_.add("container.served");  // on the own part, for another member's message
};

void HubCounters::show(std::size_t in_flight) noexcept {
  constexpr std::uint64_t kLookNs = 10'000'000;
  in_flight_.set(in_flight);
  const std::uint64_t now = fabric_.recent_ns();
  if (now - looked_at_ns_ < kLookNs) return;
  looked_at_ns_ = now;
  for (ContainerCounters* const container : containers_) container->look();
}

}  // namespace dunlin::container
