#pragma once

#include <memory>
#include <string>

#include <dunlin/join.hpp>

#include "fabric/stepped_join.hpp"

/// For tests: members that pretend to be on different hosts, and are in one process.
namespace dunlin::mixed {

/// Does what begin_join() does; members with equal `host` are on one host.
[[nodiscard]] std::unique_ptr<SteppedJoin> begin_join_on(const std::string& host,
                                                         const JoinOptions& options);
/// Does what Rendezvous::enter() does.
[[nodiscard]] std::unique_ptr<PendingEntry> begin_entry_on(const std::string& host,
                                                           const JoinOptions& options);

}  // namespace dunlin::mixed
