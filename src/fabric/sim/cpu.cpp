#include "fabric/sim/cpu.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::sim {

void Cpu::attach(std::function<std::size_t()> poll) {
  polls_.push_back(std::move(poll));
  if (!in_round_) schedule(clock());
}

void Cpu::detach_all() {
  if (in_round_) {
    detached_ = polls_.size();  // the running part must outlive its own call
  } else {
    polls_.clear();
  }
}

void Cpu::run_soon(std::function<void()> action) {
  actions_.push_back(std::move(action));
  wake(timeline_.now);
}

void Cpu::schedule(Ticks at) {
  if (scheduled_ || stopped_) return;
  scheduled_ = true;
  timeline_.schedule(at, Happening::round, rank_);
}

Ticks Cpu::next_spin(Ticks at) const noexcept {
  if (period_ == 0) return std::max(at, clock_);
  if (at <= origin_ + period_) return origin_ + period_;
  const Ticks periods = (at - origin_ + period_ - 1) / period_;
  return origin_ + periods * period_;
}

void Cpu::wake(Ticks at) {
  if (in_round_) woken_in_round_ = true;
  if (scheduled_ || stopped_ || in_round_ || !has_program()) return;
  schedule(next_spin(std::max(at, paused_until_)));
}

void Cpu::wake_by(Ticks deadline) {
  requested_ = std::min(requested_, deadline);
  if (in_round_ || requested_ >= wake_pending_) return;
  wake_pending_ = std::max(requested_, timeline_.now);
  timeline_.schedule(wake_pending_, Happening::wake, rank_);
}

void Cpu::on_wake() {
  if (wake_pending_ <= timeline_.now) wake_pending_ = kNever;
  wake(timeline_.now);
}

void Cpu::on_round() {
  scheduled_ = false;
  if (stopped_ || !has_program()) return;
  const Ticks free_at = std::max(clock_, paused_until_);
  if (free_at > timeline_.now) return schedule(free_at);

  const Ticks begin = clock_ = timeline_.now;
  requested_ = kNever;
  woken_in_round_ = false;
  in_round_ = true;
  std::size_t progress = 1;  // counts for a round that ends with an exception
  try {
    progress = actions_.empty() ? run_polls() : run_actions();
  } catch (...) {
    end_round(begin, progress);
    throw;
  }
  end_round(begin, progress);
}

void Cpu::end_round(Ticks begin, std::size_t progress) {
  in_round_ = false;
  if (clock_ == begin) clock_ += least_round_;
  timeline_.digest.fold(clock_);
  for (; detached_ > 0; --detached_) polls_.pop_front();

  if (progress > 0 || woken_in_round_ || !actions_.empty()) return schedule(clock_);
  spin_from(begin);
}

void Cpu::spin_from(Ticks begin) {
  origin_ = begin;
  period_ = clock_ - begin;
  if (requested_ != kNever) wake_by(requested_);
}

/// Runs actions before the polls, in a round of their own, which never counts as fruitless.
std::size_t Cpu::run_actions() {
  const std::size_t present = actions_.size();
  for (std::size_t i = 0; i < present; ++i) {
    const auto action = std::move(actions_.front());
    actions_.pop_front();
    action();
  }
  return present;
}

std::size_t Cpu::run_polls() {
  std::size_t progress = 0;
  for (std::size_t i = 0; i < polls_.size() && !stopped_; ++i)
    if (i >= detached_) progress += polls_[i]();  // otherwise the program went in this round
  return progress;
}

/// Pauses the processor. A pause in the middle of a round, or of a fruitless one, delays its end.
Ticks Cpu::pause(Ticks duration) {
  const Ticks until = saturating_add(timeline_.now, duration);
  const Ticks former = std::max(paused_until_, timeline_.now);
  if (until <= former) return 0;
  const Ticks longer = until - former;
  paused_until_ = until;
  if (clock_ > timeline_.now) clock_ = saturating_add(clock_, longer);
  if (!scheduled_) origin_ = saturating_add(origin_, longer);
  return longer;
}

/// Changes the speed; a fruitless round that is under way ends at the old speed.
void Cpu::slow(double factor) {
  const Ticks next = next_spin(timeline_.now);
  period_ = scaled(period_, factor / slowness_);
  slowness_ = factor;
  origin_ = next - std::min(next, period_);
}

}  // namespace dunlin::sim
