#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/stepped_join.hpp"

namespace dunlin::shm {

[[nodiscard]] std::unique_ptr<SteppedJoin> begin_join(const JoinOptions& options,
                                                      const std::string& place);
[[nodiscard]] std::shared_ptr<Rendezvous> make_rendezvous(const JoinOptions& options,
                                                          std::vector<std::string> contacts);

}  // namespace dunlin::shm
