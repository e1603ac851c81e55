#pragma once

#include "pubsub/type_tree.hpp"

namespace dunlin::app::topic {

using pubsub::has_delimiter;
using pubsub::number_bytes;
using pubsub::parse_type;
using pubsub::TypeNode;
using pubsub::TypeTree;

}  // namespace dunlin::app::topic
