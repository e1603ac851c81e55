#pragma once

#include <string>

#include <dunlin/pubsub/type_support.hpp>

#include "topic/type_tree.hpp"

namespace dunlin::app::topic {

/// A sample of the type from a JSON object; members that it leaves out are zero or empty. Throws
/// BadInput that names the member.
[[nodiscard]] pubsub::RawSample read_sample(const TypeTree& type, const std::string& json);

}  // namespace dunlin::app::topic
