#include "daemon/attached_backend.hpp"

#include <atomic>

#include "assert.hpp"
#include "fabric/shm/membarrier.hpp"

namespace dunlin::attached {
namespace {

/// One poll in so many reads the clock and, by a system call, the socket.
constexpr std::uint32_t kClientPollsPerLook = 1'024;
constexpr std::uint64_t kSocketTag = 1;

}  // namespace

AttachedBackend::AttachedBackend(Descriptor socket, Control& control, AttachedMembers& members,
                                 std::string daemon, const Packet& welcome)
    : socket_(std::move(socket)),
      control_(control),
      members_(members),
      daemon_(std::move(daemon)),
      beat_ns_(std::uint64_t{welcome.beat_ms} * 1'000'000),
      needs_fence_(!shm::register_for_barriers() || welcome.needs_fence != 0) {
  DUNLIN_ASSERT_ALWAYS(socket_, "DMN-4: the end of the connection is the daemon's");
}

AttachedBackend::~AttachedBackend() {
  if (has_core() && core().in_own_process()) hang_up(socket_);
}

void AttachedBackend::start() {
  if (!core().sleeper().watch(socket_.get(), kSocketTag))
    throw Error("watching the connection to the " + daemon_ + " failed: " + error_text(errno));
}

void AttachedBackend::ring_if_daemon_rests() noexcept {
  // The request must be visible before the look, by a fence here or by the daemon's barrier.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (needs_fence_) [[unlikely]]
    shm::full_fence();
  if (memory::load(control_.daemon_rests) != 0) [[unlikely]]
    ring(socket_);
}

void AttachedBackend::look() noexcept {
  polls_until_look_ = kClientPollsPerLook;
  const std::uint64_t now = now_ns();
  core().set_time(now);
  if (beat_ns_ != 0 && now >= next_beat_ns_) {
    memory::store(control_.beats, ++beats_);
    next_beat_ns_ = now + beat_ns_;
  }
  if (!take_rings(socket_))
    members_.stop("the " + daemon_ +
                  " has ended, or has cut this process off: destroy the space, and attach again");
}

void AttachedBackend::admit(const Admission&) {
  throw Error("a process that is attached to a daemon cannot admit members");
}

std::span<std::byte> AttachedBackend::map(RegionId, const LocalRegion&) {
  throw Error("a process that is attached to a daemon has no memory of its own to share");
}

std::uint64_t AttachedBackend::now_ns() const noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

void AttachedBackend::arm() noexcept {
  memory::exchange(&control_.client_sleeps, 1);  // before the last poll
}

void AttachedBackend::disarm(bool only_rung) noexcept {
  memory::store(control_.client_sleeps, 0);
  if (!only_rung) polls_until_look_ = 1;
}

std::uint64_t AttachedBackend::next_duty_ns() const noexcept {
  return beat_ns_ == 0 ? UINT64_MAX : next_beat_ns_;
}

}  // namespace dunlin::attached
