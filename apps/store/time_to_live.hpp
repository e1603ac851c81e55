#pragma once

#include <cstdint>
#include <string_view>

#include "store/session.hpp"

/// Times to live, as Redis commands give them.
namespace dunlin::app::resp {

inline constexpr std::uint64_t kNsPerMs = 1'000'000;

struct TimeUnit {
  std::string_view word;  // the option of SET
  std::int64_t ms;
  bool absolute;  // since 1970
};

/// "ex", "px", "exat", "pxat"; null if it is none of them.
[[nodiscard]] const TimeUnit* find_time_unit(std::string_view word) noexcept;
/// The time from now on, 0 if it is over; false if the number is none, or too large.
[[nodiscard]] bool parse_time(std::string_view text, const TimeUnit& unit, const Session& session,
                              std::uint64_t& ttl_ns) noexcept;
/// The same of a time to live, which is at least 1; or the error, which is `invalid` if the number
/// is out of range. A moment that is past becomes the least time to live.
[[nodiscard]] const char* parse_ttl(std::string_view text, const TimeUnit& unit,
                                    const Session& session, const char* invalid,
                                    std::uint64_t& ttl_ns) noexcept;

}  // namespace dunlin::app::resp
