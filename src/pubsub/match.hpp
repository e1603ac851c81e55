#pragma once

#include <string>

#include <dunlin/pubsub/qos.hpp>

/// Compares the policies that a writer offers with those that a reader requests. Pure.
namespace dunlin::pubsub {

/// Describes the first policy by which they do not match, with the value of each side:
/// "reliability: best_effort is offered, reliable is requested". Empty: they match.
[[nodiscard]] std::string mismatch(const DataWriterQos& offered, Level level,
                                   const DataReaderQos& requested);
/// The durability that a level offers.
[[nodiscard]] Durability::Kind offered_durability(Level level) noexcept;

}  // namespace dunlin::pubsub
