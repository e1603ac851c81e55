#include "process/children.hpp"

#include <algorithm>
#include <csignal>

#include <poll.h>

namespace dunlin::process {

/// Signals all children before it waits for the first, so that they end at the same time.
Children::~Children() {
  for (const Child& child : all_) child.signal(SIGKILL);
}

std::size_t Children::running() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const Child& child) { return child.running(); }));
}

std::vector<Children::Ended> Children::ended() {
  std::vector<Ended> news;
  for (std::size_t index = 0; index < all_.size(); ++index) {
    if (!all_[index].running()) continue;
    if (const auto status = all_[index].ended()) news.push_back({index, *status});
  }
  return news;
}

bool Children::await(const std::vector<int>& others,
                     std::optional<std::chrono::milliseconds> timeout) {
  std::vector<pollfd> watched;
  for (const int other : others) watched.push_back({other, POLLIN, 0});
  for (Child& child : all_) {
    if (child.running()) watched.push_back({child.descriptor(), POLLIN, 0});
  }
  const int timeout_ms = timeout ? static_cast<int>(std::max<long>(0, timeout->count())) : -1;
  return poll(watched.data(), watched.size(), timeout_ms) != 0;
}

}  // namespace dunlin::process
