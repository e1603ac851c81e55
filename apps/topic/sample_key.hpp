#pragma once

#include "pubsub/sample_key.hpp"

namespace dunlin::app::topic {

using pubsub::key_hash_of;

}  // namespace dunlin::app::topic
