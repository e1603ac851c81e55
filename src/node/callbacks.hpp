#pragma once

#include <cstdint>
#include <memory>

#include <dunlin/node/engine.hpp>

namespace dunlin::node {

/// Lets execute_on() find the engine, as long as it exists. Returns its number, which is never 0.
[[nodiscard]] std::uint64_t register_node(const std::shared_ptr<Engine>& engine);
void unregister_node(std::uint64_t number) noexcept;

}  // namespace dunlin::node
