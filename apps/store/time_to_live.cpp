#include "store/time_to_live.hpp"

#include <array>

namespace dunlin::app::resp {
namespace {

constexpr std::int64_t kMsPerS = 1'000;
constexpr std::array kUnits{TimeUnit{"ex", kMsPerS, false}, TimeUnit{"px", 1, false},
                            TimeUnit{"exat", kMsPerS, true}, TimeUnit{"pxat", 1, true}};
// Nanoseconds of it are still far from those values that mean something else.
constexpr std::int64_t kMostMs = std::int64_t{1} << 43;  // 278 years

}  // namespace

const TimeUnit* find_time_unit(std::string_view word) noexcept {
  for (const TimeUnit& unit : kUnits)
    if (is_word(word, unit.word)) return &unit;
  return nullptr;
}

bool parse_time(std::string_view text, const TimeUnit& unit, const Session& session,
                std::int64_t& ms) noexcept {
  std::int64_t number = 0;
  if (!parse_integer(text, number)) return false;
  if (number > kMostMs / unit.ms || number < -kMostMs / unit.ms) return false;
  ms = number * unit.ms;
  if (unit.absolute) ms -= static_cast<std::int64_t>(session.service().values().unix_ms());
  return true;
}

const char* parse_ttl(std::string_view text, const TimeUnit& unit, const Session& session,
                      const char* invalid, std::uint64_t& ttl_ns) noexcept {
  std::int64_t number = 0;
  std::int64_t ms = 0;
  if (!parse_integer(text, number)) return kNotAnInteger;
  if (number <= 0 || !parse_time(text, unit, session, ms)) return invalid;
  ttl_ns = ms <= 0 ? 1 : static_cast<std::uint64_t>(ms) * kNsPerMs;
  return nullptr;
}

}  // namespace dunlin::app::resp
