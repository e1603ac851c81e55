#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <dunlin/remote/membership.hpp>

#include "daemon/handshake.hpp"
#include "fabric/core/core.hpp"

/// The fabric of a process that is attached to a daemon: it has one member and no memory, but time,
/// waiting, and the daemon's rings, so that whatever waits for a fabric waits for the daemon.
namespace dunlin::attached {

/// A membership of one member, which lasts until the daemon ends.
class AttachedMembers final : public remote::Membership {
 public:
  [[nodiscard]] std::uint64_t generation() const noexcept override { return 1; }
  [[nodiscard]] bool contains(Rank rank) const noexcept override { return rank == 0; }
  [[nodiscard]] std::uint32_t founders() const noexcept override { return 1; }
  [[nodiscard]] const std::string& why_stopped() const noexcept override { return why_stopped_; }
  void stop(const std::string& why) {
    if (why_stopped_.empty()) why_stopped_ = why;
  }

 private:
  std::string why_stopped_;
};

class AttachedBackend final : public FabricBackend {
 public:
  AttachedBackend(Descriptor socket, Control& control, AttachedMembers& members, std::string daemon,
                  const Packet& welcome);
  ~AttachedBackend() override;

  /// Rings the daemon if it rests, after a request was published (DMN-R2).
  void ring_if_daemon_rests() noexcept;

  Posted post(std::span<const Operation> batch) noexcept {
    if (batch.empty()) return {};
    return {0, core().refuse(batch.front())};
  }
  std::size_t poll() noexcept {
    if (!core().begin_poll()) return 0;
    if (--polls_until_look_ == 0) look();
    if (core().has_duties()) core().perform_duties();
    return core().end_poll();
  }
  [[nodiscard]] Refusal send(Rank, std::uint32_t, std::span<const std::byte>) noexcept override {
    return Refusal::not_connected;
  }
  void forget(const Completion&) noexcept override {}

  void start() override;
  void close(Rank) noexcept override {}
  void drain(Rank) override {}
  void attend_soon() noexcept override { polls_until_look_ = 1; }
  void admit(const Admission& admission) override;
  [[nodiscard]] std::span<std::byte> map(RegionId id, const LocalRegion& region) override;
  void open(RegionId, const LocalRegion&, RemoteRegion&) override {}
  void announce(Rank, RegionId, const LocalRegion&) override {}
  void withdraw(Rank, RegionId, const LocalRegion&) noexcept override {}
  void unmap(RegionId, const LocalRegion&) noexcept override {}
  void connect(Rank, RegionId, const RemoteRegion&) noexcept override {}
  void disconnect(Rank, RegionId) noexcept override {}

  [[nodiscard]] std::uint64_t now_ns() const noexcept override;
  void arm() noexcept override;
  void disarm(bool only_rung) noexcept override;
  [[nodiscard]] std::uint64_t next_duty_ns() const noexcept override;

 private:
  void look() noexcept;

  Descriptor socket_;
  Control& control_;
  AttachedMembers& members_;
  std::string daemon_;
  std::uint64_t beat_ns_;
  bool needs_fence_;
  std::uint64_t next_beat_ns_ = 0;
  std::uint64_t beats_ = 0;
  std::uint32_t polls_until_look_ = 1;
};

}  // namespace dunlin::attached
