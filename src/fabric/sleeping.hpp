#pragma once

#include <cstdint>
#include <functional>

#include <dunlin/fabric/pending_join.hpp>

namespace dunlin {

/// Arms the doorbells of the fabrics that `collect` gives, polls once more, and sleeps if that
/// found nothing: until a doorbell rings, or so much time has passed. The last poll finds arrivals
/// from before the doorbells were armed; later ones ring. Returns what the poll said. Fabrics may
/// come and go in that poll.
bool sleep_unless(const std::function<bool()>& poll, const std::function<Waits()>& collect,
                  std::uint64_t timeout_ns);

}  // namespace dunlin
