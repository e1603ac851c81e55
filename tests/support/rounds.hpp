#pragma once

#include <algorithm>
#include <cstdint>

namespace dunlin::test {

#ifdef __has_feature  // clang's way to say it
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How often to do what is done for each of many seeds, or over and over: all rounds in release. A
/// sanitizer, which takes five to thirty times as long, sees in an eighth what there is to see.
constexpr std::uint32_t rounds(std::uint32_t all) {
  return kSanitized ? std::max(all / 8, 1U) : all;
}

}  // namespace dunlin::test
