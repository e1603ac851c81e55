#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/stepped_join.hpp"
#include "fabric/stream/transport.hpp"

namespace dunlin::stream {

/// A network over which a fabric may form, for a backend that has other ways, too.
class FormingNetwork {
 public:
  virtual ~FormingNetwork() = default;
  /// The address where it listens, from the first call on, for good. Throws Error.
  [[nodiscard]] virtual std::vector<std::byte> endpoint() = 0;
  /// Calls all ranks below the own rank that are not absent, and is called by those above. Throws
  /// Error if what a peer says cannot be.
  virtual void enter(Rank rank, std::span<const std::vector<std::byte>> endpoints,
                     std::span<const Proof> ours, std::span<const Proof> theirs,
                     std::span<const Rank> absent) = 0;
  /// Makes progress; true once there is a stream to each peer.
  [[nodiscard]] virtual bool connected() = 0;
  [[nodiscard]] virtual std::vector<Rank> unconnected() const = 0;
  [[nodiscard]] virtual Awaited awaited() const = 0;
  /// Gives the transport away, when all are connected.
  [[nodiscard]] virtual std::unique_ptr<Transport> release() = 0;
};

/// Requires that `Network` is a Transport which also has all of these functions but the last.
template <class Network>
class FormingOver final : public FormingNetwork {
 public:
  explicit FormingOver(std::unique_ptr<Network> network) : network_(std::move(network)) {}
  std::vector<std::byte> endpoint() override { return network_->endpoint(); }
  void enter(Rank rank, std::span<const std::vector<std::byte>> endpoints,
             std::span<const Proof> ours, std::span<const Proof> theirs,
             std::span<const Rank> absent) override {
    network_->enter(rank, endpoints, ours, theirs, absent);
  }
  bool connected() override { return network_->connected(); }
  std::vector<Rank> unconnected() const override { return network_->unconnected(); }
  Awaited awaited() const override { return network_->awaited(); }
  std::unique_ptr<Transport> release() override { return std::move(network_); }

 private:
  std::unique_ptr<Network> network_;
};

/// A network that a member can offer to the others.
struct Offer {
  std::string name;         // "tcp"
  std::string description;  // which network, and why it was chosen
  std::unique_ptr<FormingNetwork> network;
};

}  // namespace dunlin::stream
