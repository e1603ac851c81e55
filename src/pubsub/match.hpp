#pragma once

#include <string>

#include <dunlin/pubsub/qos.hpp>

/// What a writer offers and a reader requests, compared: pure.
namespace dunlin::pubsub {

/// The first policy by which they do not match, with what each side has: "reliability: best_effort
/// is offered, reliable is requested". Empty: they match.
[[nodiscard]] std::string mismatch(const DataWriterQos& offered, Level level,
                                   const DataReaderQos& requested);
/// What a level offers as durability.
[[nodiscard]] Durability::Kind offered_durability(Level level) noexcept;

}  // namespace dunlin::pubsub
