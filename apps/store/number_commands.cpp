#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "store/command_table.hpp"
#include "store/real_number.hpp"
#include "store/session.hpp"

/// Commands that change a string by its former value.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

// --- INCR, DECR, INCRBY, DECRBY ------------------------------------------------------------------

Task increment(Job& job, Reply& reply, std::int64_t by) {
  std::int64_t after = 0;
  std::array<char, 24> digits;
  co_await job.update(kStringMark, [&](std::optional<std::string_view> current) {
    std::int64_t before = 0;
    if (current && !parse_integer(*current, before)) return job.fail(kNotAnInteger);
    if (__builtin_add_overflow(before, by, &after))
      return job.fail("ERR increment or decrement would overflow");
    const auto [end, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), after);
    static_cast<void>(failure);  // 20 characters are enough for any number
    return put({digits.data(), static_cast<std::size_t>(end - digits.data())});
  });
  co_return reply.integer(after);
}

Task incr(Job& job, Reply& reply) { return increment(job, reply, 1); }
Task decr(Job& job, Reply& reply) { return increment(job, reply, -1); }

Task incrby(Job& job, Reply& reply) {
  std::int64_t by = 0;
  if (!parse_integer(job.arguments[2], by)) return refuse(job, reply, kNotAnInteger);
  return increment(job, reply, by);
}

Task decrby(Job& job, Reply& reply) {
  std::int64_t by = 0;
  if (!parse_integer(job.arguments[2], by)) return refuse(job, reply, kNotAnInteger);
  if (by == std::numeric_limits<std::int64_t>::min())
    return refuse(job, reply, "ERR decrement would overflow");
  return increment(job, reply, -by);
}

Task incrbyfloat(Job& job, Reply& reply) {
  long double by = 0;
  if (!parse_real(job.arguments[2], by)) co_return kNotAFloat;
  std::string after;
  co_await job.update(kStringMark, [&](std::optional<std::string_view> current) {
    long double before = 0;
    if (current && !parse_real(*current, before)) return job.fail(kNotAFloat);
    if (!std::isfinite(before + by)) return job.fail("ERR increment would produce NaN or Infinity");
    after = real_text(before + by);
    return put(after);
  });
  co_return reply.bulk(after);
}

// --- APPEND, SETRANGE ----------------------------------------------------------------------------

Task append(Job& job, Reply& reply) {
  const std::string_view more = job.arguments[2];
  std::string after;
  co_await job.update(kStringMark, [&](std::optional<std::string_view> current) {
    const std::string_view before = current.value_or("");
    if (before.size() + more.size() > kMaxArgumentBytes) return job.fail(kTooLong);
    after.reserve(before.size() + more.size());
    after.assign(before);
    after += more;
    return has_mark(after) ? job.fail(kMarked) : put(after);
  });
  co_return reply.integer(static_cast<std::int64_t>(after.size()));
}

Task setrange(Job& job, Reply& reply) {
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[2], number)) co_return kNotAnInteger;
  if (number < 0) co_return "ERR offset is out of range";
  const auto offset = static_cast<std::size_t>(number);
  const std::string_view piece = job.arguments[3];
  std::string after;
  co_await job.update(kStringMark, [&](std::optional<std::string_view> current) -> Change {
    after.assign(current.value_or(""));
    if (piece.empty()) return {};
    if (offset > kMaxArgumentBytes || offset + piece.size() > kMaxArgumentBytes)
      return job.fail(kTooLong);
    after.resize(std::max(after.size(), offset + piece.size()), '\0');
    after.replace(offset, piece.size(), piece);
    return has_mark(after) ? job.fail(kMarked) : put(after);
  });
  co_return reply.integer(static_cast<std::int64_t>(after.size()));
}

constexpr std::array kNumberCommands{Command{"append", 3, Shape::one_key, true, append},
                                     Command{"setrange", 4, Shape::one_key, true, setrange},
                                     Command{"incr", 2, Shape::one_key, true, incr},
                                     Command{"decr", 2, Shape::one_key, true, decr},
                                     Command{"incrby", 3, Shape::one_key, true, incrby},
                                     Command{"decrby", 3, Shape::one_key, true, decrby},
                                     Command{"incrbyfloat", 3, Shape::one_key, true, incrbyfloat}};

}  // namespace

std::span<const Command> number_commands() noexcept { return kNumberCommands; }

}  // namespace dunlin::app::resp
