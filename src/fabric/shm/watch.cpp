#include "fabric/shm/shm_backend.hpp"

/// What is done now and then; and going to sleep without missing anything, for which docs/fabric.md
/// has the proof.
///  SHM-W1  The sleeper sets `sleeping`, then makes a barrier on all processors, then polls once
///      more, and sleeps only if that found nothing.
///  SHM-W2  A writer places its bytes, then looks at `sleeping`.
///  SHM-W3  Between the two the writer's compiler keeps the order, and its processor by a fence of
///      its own or the sleeper's barrier: so the poll sees the bytes or the writer sees `sleeping`.
///  SHM-W4  A writer that finds the number of a sleep in `sleeping` rings the bell, then changes it
///      from that number to 0. The bell stays rung until the sleeper, awake again, silences it.
///  SHM-W5  A sleep ends in time for the sleeper's heartbeat and its appointments.
namespace dunlin::shm {
namespace {

constexpr std::uint64_t kWatchIntervalNs = 500'000;
/// Reading the processor's counter costs some 10 ns, the clock 25 to 70, the rest of a poll() 1 to
/// 2. A member that polls fast and then slowly beats its heart only after so many slow polls.
constexpr std::uint32_t kPollsPerTicks = 4;
constexpr std::uint64_t kUnsentPacketsRetryNs = 10'000'000;

}  // namespace

std::size_t ShmBackend::poll_slowly() noexcept {
  if (!core().begin_poll()) {
    polls_until_ticks_ = 1;
    return 0;
  }
  handle_arrivals();
  return core().end_poll();
}

void ShmBackend::handle_arrivals() noexcept {
  // A poll with something pending counts as well, whatever the countdown says.
  if (polls_until_ticks_ == 0 || memory::load(*pending_) != 0) look_at_clock();
  if (memory::load(*pending_) != 0) handle_pending();
  if (core().has_duties()) core().perform_duties();
}

/// Looks at the clock. Polls that are far apart all look; if several polls fit between two looks,
/// some are skipped.
void ShmBackend::look_at_clock() {
  const std::uint64_t ticks = read_ticks();
  if (!look_timer_.over(ticks)) {
    polls_until_ticks_ = kPollsPerTicks;
    return;
  }
  polls_until_ticks_ = 1;
  core().set_time(now_ns());
  look_timer_.restart(ticks, core().recent_ns());
  if (watch_now_ || core().recent_ns() - last_watch_ns_ >= kWatchIntervalNs) watch();
}

/// Makes the next poll() look.
void ShmBackend::look_soon() noexcept {
  polls_until_ticks_ = 1;
  look_timer_.expire();
}

void ShmBackend::watch() {
  watch_now_ = false;
  last_watch_ns_ = core().recent_ns();
  beat();
  read_control();
  if (listen_again_ns_ != UINT64_MAX) listen_again();
  late_.look(last_watch_ns_);
  core().watch();
}

void ShmBackend::beat() noexcept {
  memory::store(own_->heartbeats, ++heartbeats_);
  memory::store(own_->last_watch_ns, last_watch_ns_);
}

/// The peer's heartbeats. A member that died while the group was forming has none, and fails in
/// this poll.
std::uint64_t ShmBackend::signs_of_life(Rank peer) const noexcept {
  const BaseMapping* const base = attention_[peer].base;
  return base == nullptr ? 0 : memory::load(base->heartbeats);
}

// --- time and waiting ----------------------------------------------------------------------------

std::uint64_t ShmBackend::now_ns() const noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

void ShmBackend::arm() noexcept {
  memory::exchange(&own_->sleeping, ++sleeps_);  // a full fence, also for writers that fence
  if (self_.has_barriers) barrier_on_all_processors();
}

void ShmBackend::disarm(bool only_rung) noexcept {
  memory::store(own_->sleeping, 0);
  look_soon();                        // recent_ns() is from before the sleep
  if (!only_rung) watch_now_ = true;  // a peer's packet, its death, or our heartbeat
}

bool ShmBackend::may_wait() noexcept { return memory::load(own_->sleeping) != 0; }

std::uint64_t ShmBackend::next_duty_ns() const noexcept {
  const std::uint64_t unsent_ns =
      outgoing_ > 0 ? core().recent_ns() + kUnsentPacketsRetryNs : UINT64_MAX;
  return std::min({late_.due_ns(), unsent_ns, listen_again_ns_});
}

}  // namespace dunlin::shm
