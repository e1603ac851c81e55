#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace dunlin::test {

#ifdef __has_feature  // clang's way to say it
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How often a test does what it does for each of many seeds, or over and over. `./run test --all`
/// sets DUNLIN_ALL_ROUNDS: then the release tree does all rounds. `./run test` does a quarter of
/// them. A sanitizer, which takes five to thirty times as long, does an eighth.
inline std::uint32_t rounds(std::uint32_t all) {
  static const std::uint32_t part = kSanitized ? 8 : std::getenv("DUNLIN_ALL_ROUNDS") ? 1 : 4;
  return std::max(all / part, 1U);
}

}  // namespace dunlin::test
