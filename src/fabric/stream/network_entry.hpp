#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/entering.hpp"
#include "fabric/rendezvous/peer_endpoints.hpp"
#include "fabric/stepped_join.hpp"
#include "fabric/stream/network_join.hpp"
#include "fabric/stream/stream_backend.hpp"

namespace dunlin::stream {

/// A newcomer's way into a fabric over streams: it listens from the beginning, and connects to the
/// members that were there before it, until all have accepted it (STR-J1).
///
/// `Network` is a Transport that also has endpoint(), enter(), connected(), unconnected() and
/// awaited().
template <class Network>
class NetworkEntry final : public SteppedEntry {
 public:
  struct Parts {
    std::unique_ptr<Network> network;
    std::uint32_t timeout_ms;
    std::uint32_t silence_timeout_ms;
    Describe describe;
  };
  explicit NetworkEntry(Parts parts)
      : parts_(std::move(parts)), endpoint_(parts_.network->endpoint()) {}

  [[nodiscard]] std::vector<std::byte> endpoint() const override { return endpoint_; }

  void begin(const dunlin::Entry& entry) override {
    if (entry_) throw Error("group '" + entry.group + "': this newcomer has begun to come already");
    check(entry);
    take_members(setup_, entry);
    all_ = peers_of(entry);
    entry_ = entry;
    deadline_ns_ = read_clock_ns(CLOCK_MONOTONIC) + parts_.timeout_ms * kNsPerMs;
    parts_.network->enter(entry.rank(), all_.endpoint_addresses, all_.our_proofs, all_.their_proofs,
                          setup_.absent);
    begin_anew();
  }

  [[nodiscard]] std::string missing() const override {
    std::string all;
    if (!entry_ || !parts_.network) return all;
    for (const Rank peer : parts_.network->unconnected())
      all += (all.empty() ? "" : ", ") + member_text(*entry_, peer);
    return all;
  }

 private:
  static constexpr std::uint64_t kNsPerMs = 1'000'000;

  /// The endpoints by rank; empty for ranks without a member.
  [[nodiscard]] rendezvous::PeerEndpoints peers_of(const dunlin::Entry& entry) const {
    rendezvous::PeerEndpoints all{
        .names = setup_.names, .endpoint_addresses = {}, .our_proofs = {}, .their_proofs = {}};
    all.endpoint_addresses.resize(all.names.size());
    for (const dunlin::Entry::Member& member : entry.members)
      all.endpoint_addresses[member.rank] = member.endpoint;
    for (std::size_t i = 0; i < entry.admission.newcomers.size(); ++i)
      all.endpoint_addresses[entry.admission.first + i] = entry.admission.newcomers[i].endpoint;
    for (Rank peer = 0; peer < all.names.size(); ++peer) {
      all.our_proofs.push_back(rendezvous::prove(entry.admission.key, entry.rank(), peer));
      all.their_proofs.push_back(rendezvous::prove(entry.admission.key, peer, entry.rank()));
    }
    return all;
  }

  std::unique_ptr<Fabric> step() override {
    if (!entry_) return nullptr;
    if (!parts_.network->connected()) {
      if (read_clock_ns(CLOCK_MONOTONIC) < deadline_ns_) return nullptr;
      throw Error("member " + member_text(*entry_, entry_->rank()) + " cannot come into group '" +
                  entry_->group + "': not linked within " + std::to_string(parts_.timeout_ms) +
                  " ms to " + missing() +
                  ": have all admitted it, and can it reach their addresses?");
    }
    Attachment attachment{.kind = {},
                          .description = {},
                          .group = entry_->group,
                          .rank = entry_->rank(),
                          .names = all_.names,
                          .silence_timeout_ms = parts_.silence_timeout_ms,
                          .formed_by_ns = deadline_ns_,
                          .our_proofs = all_.our_proofs,
                          .their_proofs = all_.their_proofs,
                          .absent = setup_.absent,
                          .prove = rendezvous::prove,
                          .transport = nullptr};
    parts_.describe(attachment, all_);
    attachment.transport = std::move(parts_.network);
    return make_stream_fabric(std::move(attachment));
  }

  Awaited awaited() override {
    if (!entry_) return {};
    Awaited news = parts_.network->awaited();
    news.by(deadline_ns_);
    return news;
  }

  Parts parts_;
  std::vector<std::byte> endpoint_;
  std::optional<dunlin::Entry> entry_;  // set once it has begun
  FabricSetup setup_;                   // has names, and ranks without a member
  rendezvous::PeerEndpoints all_;
  std::uint64_t deadline_ns_ = UINT64_MAX;
};

}  // namespace dunlin::stream
