#include "container/attention.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "container/hub.hpp"

namespace dunlin::container {

namespace {

constexpr std::size_t kBytes = 64;
/// A known wait is used for so long before it is read again.
constexpr std::uint64_t kReadAgainNs = 1'000'000;

}  // namespace

void PollIntervals::note(std::uint64_t now_ns, std::uint64_t awake_since_ns) noexcept {
  const bool follows = polls_ == last_polls_ + 1 && last_ns_ != 0;
  const std::uint64_t begin_ns = std::max(last_ns_, awake_since_ns);
  last_polls_ = polls_;
  last_ns_ = now_ns;
  if (!follows) return;
  last_gap_ns_ = now_ns - std::min(now_ns, begin_ns);
  const auto gap = static_cast<double>(last_gap_ns_);
  sum_ += gap;
  sum_of_squares_ += gap * gap;
  if (++gaps_ < kMostGaps && sum_ < kWindowNs) return;
  wait_ns_ = sum_ > 0 ? sum_of_squares_ / (2 * sum_) : 0;
  sum_ /= 2;
  sum_of_squares_ /= 2;
  gaps_ = 0;
}

Attention::Attention(Hub& hub)
    : hub_(hub),
      site_(std::make_unique<Site>(hub, "polls", std::to_string(hub.options.channel), kBytes,
                                   "polls 1")),
      known_(hub.progress.capacity()) {
  site_->announce();
}

Attention::~Attention() {
  for (Known& known : known_) hub_.fabric.abandon(known.done);
}

void Attention::poll() noexcept {
  if (!intervals_.wants_next()) return;
  intervals_.note(hub_.fabric.now_ns(), hub_.fabric.awake_since_ns());
  publish(static_cast<std::uint64_t>(intervals_.wait_ns()));
}

void Attention::publish(std::uint64_t wait_ns) noexcept {
  const std::uint64_t change =
      wait_ns > published_ns_ ? wait_ns - published_ns_ : published_ns_ - wait_ns;
  if (change <= published_ns_ / 8) return;
  published_ns_ = wait_ns;
  memory::store(*reinterpret_cast<std::uint64_t*>(site_->memory()), wait_ns);
}

double Attention::wait_ns_of(Rank rank) noexcept {
  if (rank >= known_.size()) return 0;
  Known& known = known_[rank];
  const std::uint64_t now_ns = hub_.fabric.recent_ns();
  if (now_ns >= known.look_ns) look(known, rank, now_ns);
  return known.wait_ns;
}

/// Takes what was asked for, or asks.
void Attention::look(Known& known, Rank rank, std::uint64_t now_ns) noexcept {
  if (!hub_.options.costs.measured()) return;  // the style does not depend on it
  if (!known.done.finished()) return;
  if (std::exchange(known.asked, false)) {
    if (!known.done.failed()) known.wait_ns = static_cast<double>(known.word);
    known.look_ns = now_ns + kReadAgainNs;
    return;
  }
  if (rank == hub_.fabric.rank() || !site_->connected(rank) || hub_.gone(rank)) return;
  known.done.reset();
  known.asked =
      hub_.fabric
          .post(read(rank, site_->region(), 0, &known.word, sizeof known.word).notify(known.done))
          .all();
}

}  // namespace dunlin::container
