#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/rendezvous/peer_endpoints.hpp"
#include "fabric/stepped_join.hpp"
#include "fabric/stream/stream_backend.hpp"

namespace dunlin::stream {

/// A function that fills in what the network knows: kind, description, host_members.
using Describe = std::function<void(Attachment&, const rendezvous::PeerEndpoints&)>;

/// Forms a fabric over streams: its members meet, and then connect.
///
/// `Network` is a Transport that also has endpoint_address(), connect(), connected() and awaited().
template <class Network>
class NetworkJoin final : public SteppedJoin {
 public:
  struct Parts {
    std::unique_ptr<Network> network;
    rendezvous::Options rendezvous;
    std::string place;  // what a launcher said; empty: nothing
    std::uint32_t silence_timeout_ms;
    Describe describe;
  };
  explicit NetworkJoin(Parts parts) : parts_(std::move(parts)) {
    saying_where(
        [this] { exchange_.emplace(parts_.rendezvous, parts_.network->endpoint_address()); });
  }

 private:
  std::unique_ptr<Fabric> step() override {
    if (exchange_ && !meet()) return nullptr;
    if (!parts_.network->connected()) return nullptr;
    Attachment attachment{.kind = {},
                          .description = {},
                          .group = parts_.rendezvous.group,
                          .rank = rank_,
                          .names = all_.names,
                          .silence_timeout_ms = parts_.silence_timeout_ms,
                          .formed_by_ns = deadline_ns_,
                          .our_proofs = all_.our_proofs,
                          .their_proofs = all_.their_proofs,
                          .prove = rendezvous::prove,
                          .transport = nullptr};
    parts_.describe(attachment, all_);
    attachment.transport = std::move(parts_.network);
    return make_stream_fabric(std::move(attachment));
  }

  Awaited awaited() override {
    return exchange_ ? exchange_->awaited() : parts_.network->awaited();
  }

  /// Meets the others. All are there then, so connecting takes no time worth mentioning; but the
  /// rendezvous may have taken all of the time.
  bool meet() {
    std::optional<rendezvous::Roster> roster;
    saying_where([&] { roster = exchange_->poll(); });
    if (!roster) return false;
    exchange_.reset();
    rank_ = roster->rank;
    all_ = rendezvous::peer_endpoints(*roster);
    deadline_ns_ = read_clock_ns(CLOCK_MONOTONIC) + parts_.rendezvous.timeout_ms * kNsPerMs;
    parts_.network->connect(rank_, all_.endpoint_addresses, all_.our_proofs, all_.their_proofs,
                            deadline_ns_);
    return true;
  }

  template <class Action>
  void saying_where(Action action) const {
    try {
      action();
    } catch (const Error& error) {
      if (parts_.place.empty()) throw;
      throw Error(std::string(error.what()) + ". This member's place: " + parts_.place);
    }
  }

  static constexpr std::uint64_t kNsPerMs = 1'000'000;

  Parts parts_;
  std::optional<rendezvous::RosterExchange> exchange_;  // set until all have met
  Rank rank_ = 0;
  rendezvous::PeerEndpoints all_;
  std::uint64_t deadline_ns_ = 0;
};

}  // namespace dunlin::stream
