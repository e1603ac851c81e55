#pragma once

#include <cstdint>
#include <functional>

#include <dunlin/fabric/pending_join.hpp>

namespace dunlin {

/// Arms the doorbells of what `collect` says, polls once more, and sleeps if that found nothing:
/// until one of them rings, or so much time has passed. What came before the doorbells were armed
/// is found by this poll; what comes after it rings. Returns what the poll said. Anything may come
/// and go in it.
bool sleep_unless(const std::function<bool()>& poll, const std::function<Waits()>& collect,
                  std::uint64_t timeout_ns);

}  // namespace dunlin
