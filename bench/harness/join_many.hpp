#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <dunlin/fabric.hpp>

namespace dunlin::bench {

/// Members `first` to `first + count - 1` of a group in one process, to be polled by its one
/// thread; joined by a thread each, as each waits for the others. Throws what any of them threw.
[[nodiscard]] std::vector<std::unique_ptr<Fabric>> join_many(
    Rank first, std::uint32_t count, const std::function<std::unique_ptr<Fabric>(Rank)>& join);

}  // namespace dunlin::bench
