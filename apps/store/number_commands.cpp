#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "store/command_table.hpp"
#include "store/real_number.hpp"
#include "store/session.hpp"
#include "store/string_value.hpp"

/// Commands that change a string by its former value.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

// --- INCR, DECR, INCRBY, DECRBY ------------------------------------------------------------------

Change decide_increment(void* context, std::optional<std::string_view> current) {
  Job& job = job_of(context);
  if (refuses(job, current)) return {};
  std::int64_t before = 0;
  std::int64_t after = 0;
  if (current && !parse_integer(*current, before)) return job.fail(kNotAnInteger);
  if (__builtin_add_overflow(before, job.number, &after))
    return job.fail("ERR increment or decrement would overflow");
  std::array<char, 24> digits;
  const auto [end, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), after);
  static_cast<void>(failure);  // 20 characters are enough for any number
  job.scratch.assign(digits.data(), static_cast<std::size_t>(end - digits.data()));
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_increment(Job& job, std::int64_t by) {
  job.number = by;
  return begin_update(job, decide_increment);
}

const char* begin_incr(Job& job) { return begin_increment(job, 1); }
const char* begin_decr(Job& job) { return begin_increment(job, -1); }

const char* begin_incrby(Job& job) {
  std::int64_t by = 0;
  return parse_integer(job.arguments[2], by) ? begin_increment(job, by) : kNotAnInteger;
}

const char* begin_decrby(Job& job) {
  std::int64_t by = 0;
  if (!parse_integer(job.arguments[2], by)) return kNotAnInteger;
  if (by == std::numeric_limits<std::int64_t>::min()) return "ERR decrement would overflow";
  return begin_increment(job, -by);
}

bool conclude_increment(Job& job, Reply& reply) {
  std::int64_t after = 0;
  static_cast<void>(parse_integer(job.scratch, after));  // decide_increment has written it
  return reply.integer(after);
}

// --- INCRBYFLOAT ---------------------------------------------------------------------------------

Change decide_increment_real(void* context, std::optional<std::string_view> current) {
  Job& job = job_of(context);
  if (refuses(job, current)) return {};
  long double before = 0;
  long double by = 0;
  static_cast<void>(parse_real(job.arguments[2], by));  // begin_incrbyfloat has looked
  if (current && !parse_real(*current, before)) return job.fail(kNotAFloat);
  if (!std::isfinite(before + by)) return job.fail("ERR increment would produce NaN or Infinity");
  job.scratch = real_text(before + by);
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_incrbyfloat(Job& job) {
  long double by = 0;
  if (!parse_real(job.arguments[2], by)) return kNotAFloat;
  return begin_update(job, decide_increment_real);
}

bool conclude_incrbyfloat(Job& job, Reply& reply) { return reply.bulk(job.scratch); }

// --- APPEND, SETRANGE ----------------------------------------------------------------------------

Change decide_append(void* context, std::optional<std::string_view> current) {
  Job& job = job_of(context);
  if (refuses(job, current)) return {};
  const std::string_view more = job.arguments[2];
  if (current.value_or("").size() + more.size() > kMaxArgumentBytes) return job.fail(kTooLong);
  job.scratch.assign(current.value_or(""));
  job.scratch += more;
  if (has_mark(job.scratch)) return job.fail(kMarked);
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_append(Job& job) { return begin_update(job, decide_append); }

bool conclude_append(Job& job, Reply& reply) {
  return reply.integer(static_cast<std::int64_t>(job.scratch.size()));
}

Change decide_setrange(void* context, std::optional<std::string_view> current) {
  Job& job = job_of(context);
  if (refuses(job, current)) return {};
  const std::string_view piece = job.arguments[3];
  job.scratch.assign(current.value_or(""));
  if (piece.empty()) return {};
  const auto offset = static_cast<std::size_t>(job.number);
  if (offset > kMaxArgumentBytes || offset + piece.size() > kMaxArgumentBytes)
    return job.fail(kTooLong);
  job.scratch.resize(std::max(job.scratch.size(), offset + piece.size()), '\0');
  job.scratch.replace(offset, piece.size(), piece);
  if (has_mark(job.scratch)) return job.fail(kMarked);
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_setrange(Job& job) {
  if (!parse_integer(job.arguments[2], job.number)) return kNotAnInteger;
  if (job.number < 0) return "ERR offset is out of range";
  return begin_update(job, decide_setrange);
}

constexpr std::array kNumberCommands{
    Command{"append", 3, Shape::one_key, true, begin_append, conclude_append},
    Command{"setrange", 4, Shape::one_key, true, begin_setrange, conclude_append},
    Command{"incr", 2, Shape::one_key, true, begin_incr, conclude_increment},
    Command{"decr", 2, Shape::one_key, true, begin_decr, conclude_increment},
    Command{"incrby", 3, Shape::one_key, true, begin_incrby, conclude_increment},
    Command{"decrby", 3, Shape::one_key, true, begin_decrby, conclude_increment},
    Command{"incrbyfloat", 3, Shape::one_key, true, begin_incrbyfloat, conclude_incrbyfloat}};

}  // namespace

std::span<const Command> number_commands() noexcept { return kNumberCommands; }

}  // namespace dunlin::app::resp
