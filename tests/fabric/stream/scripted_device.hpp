#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "fabric/alignment.hpp"
#include "fabric/stream/scripted_peer.hpp"

/// Devices that do what the test lets them, in the group of two of scripted_peer.hpp.
namespace dunlin::stream::test {

class ScriptedDeviceOperations final : public DeviceOperations {
 public:
  Abilities able{.ordered_writes = true,
                 .partial_words = true,
                 .reads = true,
                 .atomics = true,
                 .max_inline_bytes = 64,
                 .queue_slots = 64};
  bool full = false;
  std::vector<Operation> operations;               // all that were started
  std::vector<const std::byte*> reachable;         // opened, and not closed
  std::array<std::uint64_t, 2> done{};             // up to this place, by peer
  std::function<void(const Operation&)> on_start;  // is told first

  void finish_all() { done = places_; }

  const Abilities& abilities() const noexcept override { return able; }
  Key open(std::span<std::byte> memory) override {
    reachable.push_back(memory.data());
    return {reinterpret_cast<std::uintptr_t>(memory.data()), 7};
  }
  void close(std::span<std::byte> memory) noexcept override {
    std::erase(reachable, memory.data());
  }
  bool can(const Operation& operation) const noexcept override { return operation.bytes <= 128; }
  Started start(const Operation& operation, const Key&, std::uint64_t) noexcept override {
    if (full) return Started::full;
    if (on_start) on_start(operation);
    operations.push_back(operation);
    ++places_[operation.peer];
    const bool fetch = operation.kind == OperationKind::read || is_atomic(operation.kind);
    if (fetch) fetches_[operation.peer] = places_[operation.peer];
    const bool told = operation.completion != nullptr && operation.when == Notify::remotely;
    if (operation.completion != nullptr && (fetch || told))
      unfinished_.push_back({operation.peer, operation.completion});
    return fetch || told ? Started::pending : Started::done;
  }
  void ring(Rank) noexcept override {}
  std::uint64_t started(Rank peer) const noexcept override { return places_[peer]; }
  std::uint64_t fetches(Rank peer) const noexcept override { return fetches_[peer]; }
  bool finished(Rank peer, std::uint64_t up_to) const noexcept override {
    return done[peer] >= up_to;
  }
  void forget(const Completion& completion) noexcept override {
    std::erase_if(unfinished_, [&](const Waiting& one) { return one.completion == &completion; });
  }
  void give_up(Rank peer, Receiver& receiver) noexcept override {
    for (const Waiting& one : unfinished_)
      if (one.peer == peer) receiver.take_finished(peer, *one.completion, false);
    std::erase_if(unfinished_, [&](const Waiting& one) { return one.peer == peer; });
    done[peer] = places_[peer];
  }

 private:
  struct Waiting {
    Rank peer;
    Completion* completion;
  };
  std::array<std::uint64_t, 2> places_{};
  std::array<std::uint64_t, 2> fetches_{};
  std::vector<Waiting> unfinished_;
};

/// Outlives the fabric that uses it.
struct ScriptedDevices {
  ScriptedDeviceOperations reach;
};

/// A peer with devices, a box on both sides, and nothing that is not sent.
struct PeerWithDevices : ScriptedDevices, ScriptedPeer {
  Region box;
  explicit PeerWithDevices(bool says_hello = true) : ScriptedPeer(says_hello, 0, 0, &reach) {
    if (says_hello) meet();
  }
  void meet() {
    box = announce_box();
    announce_theirs();
    transport->outgoing.clear();
  }
  [[nodiscard]] Operation word(std::uint64_t offset = 0) const {
    static const std::uint64_t value = 7;
    return write(1, box.id(), offset, &value, 8);
  }
  [[nodiscard]] bool is_reachable(const std::byte* memory) const {
    return std::find(reach.reachable.begin(), reach.reachable.end(), memory) !=
           reach.reachable.end();
  }
};

}  // namespace dunlin::stream::test
