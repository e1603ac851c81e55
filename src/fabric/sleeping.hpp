#pragma once

#include <cstdint>
#include <functional>

#include <dunlin/fabric/pending_join.hpp>

namespace dunlin {

/// Arms the doorbells of the fabrics that `collect` gives, polls once more, and sleeps if that
/// found nothing: until a doorbell rings, or so much time has passed. The last poll finds arrivals
/// from before the doorbells were armed; later ones ring. Returns what the poll said. Fabrics may
/// come and go in that poll.
///
/// `around`, if there is one, is given the wait alone, which uses no fabric: other threads may use
/// the fabrics meanwhile.
bool sleep_unless(const std::function<bool()>& poll, const std::function<Waits()>& collect,
                  std::uint64_t timeout_ns,
                  const std::function<void(const std::function<void()>& wait)>& around = nullptr);

}  // namespace dunlin
