#include "fabric/shm/start_agreement.hpp"

#include <algorithm>

namespace dunlin::shm {
namespace {

/// Each round that was reported and failed cost the life of a member; so far fewer rounds matter.
constexpr std::size_t kRememberedRounds = 64;

std::uint64_t hash_of(const StartAgreement::Incarnations& incarnations) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, by words, with a final mix
  for (std::uint64_t incarnation : incarnations) hash = (hash ^ incarnation) * 0x100000001b3;
  hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

}  // namespace

StartAgreement::StartAgreement(Rank self, std::uint64_t incarnation, std::uint32_t members)
    : self_(self), present_(members, 0), reports_(members, 0) {
  present_[self] = incarnation;
}

void StartAgreement::met(Rank rank, std::uint64_t incarnation) { present_[rank] = incarnation; }

void StartAgreement::lost(Rank rank) {
  present_[rank] = 0;
  reports_[rank] = 0;
  report_is_out_ = false;
}

void StartAgreement::on_ready(Rank from, std::uint64_t round) {
  reports_[from] = round;
  decide_if_possible();
}

void StartAgreement::on_go(std::uint64_t round) {
  if (decided_) return;
  const auto known = std::find_if(reported_.begin(), reported_.end(),
                                  [&](const Round& r) { return r.hash == round; });
  if (known != reported_.end()) decided_ = *known;
}

std::optional<std::uint64_t> StartAgreement::take_report() {
  if (decided_ || !complete()) return std::nullopt;
  if (report_is_out_) return std::nullopt;
  report_is_out_ = true;
  const std::uint64_t round = hash_of(present_);
  if (reported_.size() == kRememberedRounds) reported_.erase(reported_.begin());
  reported_.push_back({round, present_});
  reports_[self_] = round;
  decide_if_possible();
  return round;
}

const StartAgreement::Incarnations* StartAgreement::decided() const noexcept {
  return decided_ ? &decided_->incarnations : nullptr;
}

std::uint64_t StartAgreement::decided_round() const noexcept {
  return decided_ ? decided_->hash : 0;
}

bool StartAgreement::complete() const noexcept {
  return std::find(present_.begin(), present_.end(), 0) == present_.end();
}

bool StartAgreement::all_reported(std::uint64_t round) const noexcept {
  return std::all_of(reports_.begin(), reports_.end(),
                     [&](std::uint64_t report) { return report == round; });
}

void StartAgreement::decide_if_possible() {
  if (self_ != 0 || decided_ || !complete() || reported_.empty()) return;
  if (reported_.back().incarnations == present_ && all_reported(reported_.back().hash))
    decided_ = reported_.back();
}

}  // namespace dunlin::shm
