#include "fabric/shm/late_release.hpp"

#include <new>
#include <utility>

namespace dunlin::shm {

void LateRelease::add(std::shared_ptr<const mapping::Mapping> mapping,
                      std::uint64_t now_ns) noexcept {
  if (!mapping || mapping->memory().size() > kMostBytes) return;
  const std::size_t bytes = mapping->memory().size();
  if (resting_.empty()) due_ns_ = now_ns + kRestNs;
  try {
    resting_.push_back(std::move(mapping));
  } catch (const std::bad_alloc&) {
    return;  // then it goes at once
  }
  bytes_ += bytes;
  while (bytes_ > kMostBytes) give_back();
}

void LateRelease::look(std::uint64_t now_ns) noexcept {
  if (now_ns < due_ns()) return;
  give_back();
  due_ns_ = now_ns + kRestNs;
}

bool LateRelease::give_all_back() noexcept {
  const bool any = !resting_.empty();
  while (!resting_.empty()) give_back();
  return any;
}

void LateRelease::give_back() noexcept {
  bytes_ -= resting_.front()->memory().size();
  resting_.pop_front();
}

}  // namespace dunlin::shm
