#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/limits.hpp>

/// Limits of what is agreed in an AgreedOrder; <dunlin/limits.hpp> has the others.
namespace dunlin {

/// The channel of an AgreedOrder on a fixed list of members, unless its options give another.
inline constexpr std::uint32_t kOrderChannel = kMaxChannels - 6;
inline constexpr std::size_t kMaxProposalBytes = kMaxMessageBytes - 16;

}  // namespace dunlin
