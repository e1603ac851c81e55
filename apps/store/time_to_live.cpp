#include "store/time_to_live.hpp"

#include <algorithm>
#include <array>

namespace dunlin::app::resp {
namespace {

constexpr std::int64_t kMsPerS = 1'000;
constexpr std::array kUnits{TimeUnit{"ex", kMsPerS, false}, TimeUnit{"px", 1, false},
                            TimeUnit{"exat", kMsPerS, true}, TimeUnit{"pxat", 1, true}};
// The store keeps no longer one (its clocks count nanoseconds): a longer one becomes this one.
constexpr std::int64_t kMostMs = std::int64_t{1} << 42;  // 139 years

}  // namespace

const TimeUnit* find_time_unit(std::string_view word) noexcept {
  for (const TimeUnit& unit : kUnits)
    if (is_word(word, unit.word)) return &unit;
  return nullptr;
}

bool parse_time(std::string_view text, const TimeUnit& unit, const Session& session,
                std::uint64_t& ttl_ns) noexcept {
  std::int64_t ms = 0;
  if (!parse_integer(text, ms)) return false;
  const std::uint64_t now_ns = session.service().values().unix_ns();
  const auto now_ms = static_cast<std::int64_t>(now_ns / kNsPerMs);
  if (__builtin_mul_overflow(ms, unit.ms, &ms)) return false;
  // Redis refuses what is no moment that it could keep.
  std::int64_t moment_ms = 0;
  if (!unit.absolute && __builtin_add_overflow(ms, now_ms, &moment_ms)) return false;
  // A moment can be so long ago that no number tells how long.
  if (unit.absolute && __builtin_sub_overflow(ms, now_ms, &ms)) ms = 0;
  ms = std::clamp(ms, std::int64_t{0}, kMostMs);
  // A part of this millisecond is over, which counts in the time to a moment.
  const std::uint64_t over_ns = unit.absolute && ms > 0 ? now_ns % kNsPerMs : 0;
  ttl_ns = static_cast<std::uint64_t>(ms) * kNsPerMs - over_ns;
  return true;
}

const char* parse_ttl(std::string_view text, const TimeUnit& unit, const Session& session,
                      const char* invalid, std::uint64_t& ttl_ns) noexcept {
  std::int64_t number = 0;
  if (!parse_integer(text, number)) return kNotAnInteger;
  if (number <= 0 || !parse_time(text, unit, session, ttl_ns)) return invalid;
  ttl_ns = std::max(ttl_ns, std::uint64_t{1});
  return nullptr;
}

}  // namespace dunlin::app::resp
