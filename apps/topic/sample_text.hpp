#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "topic/type_tree.hpp"

/// Samples as text, by the type of their topic.
namespace dunlin::app::topic {

/// A line a member, as `ros2 topic echo` prints them: "x: 1", with nested ones indented. Throws
/// Error for bytes that are no sample of the type.
[[nodiscard]] std::string print_sample(const TypeTree& type, std::span<const std::byte> payload);

}  // namespace dunlin::app::topic
