#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/core/core.hpp"
#include "fabric/mixed/host.hpp"
#include "fabric/shm/shm_backend.hpp"
#include "fabric/stream/stream_backend.hpp"

/// A backend that has two parts: shared memory for the peers that can share it, streams for the
/// others. Both use one core, and the ranks of one group. docs/mixed.md gives MIX-H1 to MIX-B4.
///  MIX-B1  Each peer is reached by one of the two from its admission to its end, and both sides
///      have chosen the same. So what holds of operations to one peer holds here as it does there.
///  MIX-B2  A region is one segment: shared memory maps it to the peers of this host, and streams
///      apply what others send to the same pages.
///  MIX-B3  Atomics on a region are all done by processors.
///  MIX-B4  arm() arms both, and the arrivals of both make a watched descriptor readable.
namespace dunlin::mixed {

/// The parts from which a mixed fabric is made.
struct Parts {
  OwnHost own;
  std::unique_ptr<shm::ShmBackend> host;  // null: this member shares no memory
  std::unique_ptr<stream::StreamBackend> network;
  std::string network_name;
  std::string network_description;
  std::string place;      // what a launcher said; may be empty
  std::vector<Way> ways;  // by rank
};

class MixedBackend final : public FabricBackend {
 public:
  explicit MixedBackend(Parts parts);

  Posted post(std::span<const Operation> batch) noexcept;
  std::size_t poll() noexcept {
    if (!core().begin_poll()) return 0;
    if (host_) host_->take_arrivals();
    network_->take_arrivals();
    return core().end_poll();
  }
  [[nodiscard]] Refusal send(Rank peer, std::uint32_t channel,
                             std::span<const std::byte> message) noexcept override {
    return part_of(peer).send(peer, channel, message);
  }
  [[nodiscard]] std::span<std::byte> memory_of(Rank peer, RegionId region) noexcept override {
    return part_of(peer).memory_of(peer, region);
  }
  void wake(Rank peer) noexcept override { part_of(peer).wake(peer); }
  void forget(const Completion& completion) noexcept override { network_->forget(completion); }

  void start() override;
  [[nodiscard]] std::vector<std::byte> endpoint() const override;
  void admit(const Admission& admission) override;
  void close(Rank peer) noexcept override;
  [[nodiscard]] Fenced fence(Rank peer) noexcept override { return part_of(peer).fence(peer); }
  void drain(Rank peer) override { part_of(peer).drain(peer); }
  void attend_soon() noexcept override {
    if (host_) host_->attend_soon();
  }
  [[nodiscard]] std::string detail_of(Rank peer) const override {
    return part_of(peer).detail_of(peer);
  }
  [[nodiscard]] std::uint32_t host_members() const noexcept override {
    return host_ ? host_->host_members() : network_->host_members();
  }

  [[nodiscard]] std::span<std::byte> map(RegionId id, const LocalRegion& region) override;
  void open(RegionId id, const LocalRegion& region, RemoteRegion& own) override;
  void announce(Rank peer, RegionId id, const LocalRegion& region) override {
    part_of(peer).announce(peer, id, region);
  }
  void withdraw(Rank peer, RegionId id, const LocalRegion& region) noexcept override {
    part_of(peer).withdraw(peer, id, region);
  }
  void unmap(RegionId id, const LocalRegion& region) noexcept override;
  void connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept override {
    part_of(peer).connect(peer, id, there);
  }
  void disconnect(Rank peer, RegionId id) noexcept override { part_of(peer).disconnect(peer, id); }
  void let_go(Rank peer, RemoteRegion& there) noexcept override {
    part_of(peer).let_go(peer, there);
  }

  [[nodiscard]] std::uint64_t signs_of_life(Rank peer) const noexcept override {
    return part_of(peer).signs_of_life(peer);
  }
  void beat() noexcept override;
  [[nodiscard]] std::uint64_t longest_beat_interval_ns() const noexcept override {
    return network_->longest_beat_interval_ns();
  }

  [[nodiscard]] std::uint64_t now_ns() const noexcept override { return network_->now_ns(); }
  void arm() noexcept override;
  void disarm(bool only_rung) noexcept override;
  [[nodiscard]] bool may_wait() noexcept override;
  [[nodiscard]] std::uint64_t next_duty_ns() const noexcept override;

 private:
  [[nodiscard]] bool is_here(Rank peer) const noexcept {
    return peer < ways_.size() && ways_[peer].here;
  }
  [[nodiscard]] FabricBackend& part_of(Rank peer) const noexcept {
    return is_here(peer) ? static_cast<FabricBackend&>(*host_) : *network_;
  }
  void describe() const;

  std::unique_ptr<shm::ShmBackend> host_;
  std::unique_ptr<stream::StreamBackend> network_;
  std::vector<Way> ways_;  // by rank
  OwnHost own_;
  std::string network_name_;
  std::string network_description_;
  std::string place_;
};

/// The admission for members of one host. They show each other a key over sockets that are not
/// encrypted, so this key must tell nothing of the key by which the network's connections are made.
[[nodiscard]] Admission within_host(Admission admission);

/// Describes the way to each peer: "shared memory with 'b' (rank 1): on this host; tcp at ... with
/// 'c' (rank 2): on another host".
[[nodiscard]] std::string describe_ways(std::span<const Way> ways, Rank own,
                                        const std::vector<std::string>& names,
                                        const std::string& network);

}  // namespace dunlin::mixed
