#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pubsub/type_tree.hpp"

namespace dunlin::pubsub {

/// The RawSample::key_hash of these bytes of a sample: 0 if the type has no keys. Throws Error if
/// the bytes are no sample of the type.
[[nodiscard]] std::uint64_t key_hash_of(const TypeTree& type, std::span<const std::byte> payload);

}  // namespace dunlin::pubsub
