#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fabric/conformance/harness.hpp"

namespace dunlin::conformance {

/// A Group of a backend whose nodes exchange through the operating system or a device: all nodes
/// live in this process, join on threads of their own and run programs on threads of their own.
[[nodiscard]] std::unique_ptr<Group> start_real_group(const Backend& backend, std::uint32_t nodes);

/// A group name that no other test process uses, and this one never again.
[[nodiscard]] std::string fresh_group_name();

/// Very long; nothing that works ever takes it. Never asserted to have passed.
[[nodiscard]] bool patience_ends(std::uint64_t since_ns);
[[nodiscard]] std::uint64_t steady_now_ns();

}  // namespace dunlin::conformance
