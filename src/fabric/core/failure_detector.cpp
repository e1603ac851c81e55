#include "fabric/core/failure_detector.hpp"

namespace dunlin {

FailureDetector::FailureDetector(std::uint32_t peers, std::uint64_t timeout_ns,
                                 std::uint64_t now_ns)
    : timeout_ns_(timeout_ns), now_ns_(now_ns), windows_(peers, Window{0, now_ns}) {}

void FailureDetector::look(std::uint64_t now_ns) noexcept {
  const bool overslept = now_ns - now_ns_ > timeout_ns_ / 2;
  now_ns_ = now_ns;
  if (!overslept) return;
  for (Window& window : windows_) window.since_ns = now_ns;
}

bool FailureDetector::silent(Rank peer, std::uint64_t beats) noexcept {
  Window& window = windows_[peer];
  if (beats != window.beats) window = {beats, now_ns_};
  return timeout_ns_ != 0 && now_ns_ - window.since_ns >= timeout_ns_;
}

}  // namespace dunlin
