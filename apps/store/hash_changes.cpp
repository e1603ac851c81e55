#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/hash_fields.hpp"
#include "store/real_number.hpp"
#include "store/session.hpp"

/// Commands that change hashes.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

Change put_hash(Job& job, std::string_view hash) noexcept {
  static_assert(kMaxArgumentBytes == 1048576, "as the error says");
  if (hash.size() <= kMaxArgumentBytes) return put(hash);
  return job.fail("ERR the hash would be over 1048576 bytes, which is the limit of a value");
}

/// Writes to `after` the hash with one field changed, or added at its end.
Change put_field(Job& job, std::string_view hash, const HashFields::Field& changed,
                 std::string& after) {
  after.reserve(hash.size() + HashFields::kLengthsBytes + changed.name.size() +
                changed.value.size());
  after.assign(kHashMark);
  bool is_there = false;
  HashFields fields(hash);
  while (const auto field = fields.next()) {
    const bool is_it = field->name == changed.name;
    is_there = is_there || is_it;
    HashFields::append(after, is_it ? changed : *field);
  }
  if (!is_there) HashFields::append(after, changed);
  return put_hash(job, after);
}

// --- HSET, HMSET, HSETNX -------------------------------------------------------------------------

/// Writes to `after` the fields that are there, changed, and behind them those that are new.
/// Returns how many are new.
std::int64_t set_fields(std::string_view hash, std::span<const std::string_view> pairs,
                        std::string& after) {
  std::size_t bytes = hash.size() + pairs.size() / 2 * HashFields::kLengthsBytes;
  for (const std::string_view word : pairs) bytes += word.size();
  after.reserve(bytes);
  after.assign(kHashMark);
  NamedFields changes(pairs, 2);
  HashFields fields(hash);
  while (const auto field = fields.next()) {
    NamedFields::Field* const change = changes.find(field->name);
    if (change != nullptr) change->is_in_hash = true;
    HashFields::append(after, {field->name, change != nullptr ? *change->value : field->value});
  }
  std::int64_t added = 0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    NamedFields::Field& change = *changes.find(pairs[i]);
    if (std::exchange(change.is_in_hash, true)) continue;
    HashFields::append(after, {change.name, *change.value});
    ++added;
  }
  return added;
}

Task hset(Job& job, Reply& reply) {
  if (job.arguments.size() % 2 != 0) co_return "ERR wrong number of arguments for 'hset' command";
  const auto pairs = std::span<const std::string_view>(job.arguments).subspan(2);
  std::string after;
  std::int64_t added = 0;
  co_await job.update(kHashMark, [&](std::optional<std::string_view> current) {
    added = set_fields(current.value_or(kHashMark), pairs, after);
    return put_hash(job, after);
  });
  co_return reply.integer(added);
}

Task hmset(Job& job, Reply& reply) {
  if (job.arguments.size() % 2 != 0) co_return "ERR wrong number of arguments for 'hmset' command";
  const auto pairs = std::span<const std::string_view>(job.arguments).subspan(2);
  std::string after;
  co_await job.update(kHashMark, [&](std::optional<std::string_view> current) {
    set_fields(current.value_or(kHashMark), pairs, after);
    return put_hash(job, after);
  });
  co_return reply.ok();
}

Task hsetnx(Job& job, Reply& reply) {
  const HashFields::Field field{job.arguments[2], job.arguments[3]};
  std::string after;
  bool is_new = false;
  co_await job.update(kHashMark, [&](std::optional<std::string_view> current) -> Change {
    const std::string_view hash = current.value_or(kHashMark);
    is_new = !HashFields::find(hash, field.name);
    return is_new ? put_field(job, hash, field, after) : Change{};
  });
  co_return reply.integer(is_new ? 1 : 0);
}

// --- HINCRBY, HINCRBYFLOAT -----------------------------------------------------------------------

Task hincrby(Job& job, Reply& reply) {
  std::int64_t by = 0;
  if (!parse_integer(job.arguments[3], by)) co_return kNotAnInteger;
  const std::string_view name = job.arguments[2];
  std::string after;
  std::int64_t sum = 0;
  co_await job.update(kHashMark, [&](std::optional<std::string_view> current) {
    const std::string_view hash = current.value_or(kHashMark);
    const auto before = HashFields::find(hash, name);
    std::int64_t number = 0;
    if (before && !parse_integer(*before, number))
      return job.fail("ERR hash value is not an integer");
    if (__builtin_add_overflow(number, by, &sum))
      return job.fail("ERR increment or decrement would overflow");
    return put_field(job, hash, {name, fmt::format("{}", sum)}, after);
  });
  co_return reply.integer(sum);
}

Task hincrbyfloat(Job& job, Reply& reply) {
  long double by = 0;
  if (!parse_real(job.arguments[3], by)) co_return kNotAFloat;
  if (!std::isfinite(by)) co_return "ERR value is NaN or Infinity";
  const std::string_view name = job.arguments[2];
  std::string after;
  std::string sum;
  co_await job.update(kHashMark, [&](std::optional<std::string_view> current) {
    const std::string_view hash = current.value_or(kHashMark);
    const auto before = HashFields::find(hash, name);
    long double number = 0;
    if (before && !parse_real(*before, number)) return job.fail("ERR hash value is not a float");
    if (!std::isfinite(number + by)) return job.fail("ERR increment would produce NaN or Infinity");
    sum = real_text(number + by);
    return put_field(job, hash, {name, sum}, after);
  });
  co_return reply.bulk(sum);
}

// --- HDEL ----------------------------------------------------------------------------------------

Task hdel(Job& job, Reply& reply) {
  const auto names = std::span<const std::string_view>(job.arguments).subspan(2);
  std::string after;
  std::int64_t removed = 0;
  co_await job.update(kHashMark, [&](std::optional<std::string_view> current) -> Change {
    after.assign(kHashMark);
    removed = 0;
    if (!current) return {};
    after.reserve(current->size());
    HashFields fields(*current);
    NamedFields named(names, 1);
    while (const auto field = fields.next()) {
      if (named.find(field->name) != nullptr) {
        ++removed;
      } else {
        HashFields::append(after, *field);
      }
    }
    if (removed == 0) return {};
    return after.size() == kMarkBytes ? kErase : put(after);
  });
  co_return reply.integer(removed);
}

constexpr std::array kHashChangeCommands{
    Command{"hset", -4, Shape::one_key, true, hset},
    Command{"hmset", -4, Shape::one_key, true, hmset},
    Command{"hsetnx", 4, Shape::one_key, true, hsetnx},
    Command{"hincrby", 4, Shape::one_key, true, hincrby},
    Command{"hincrbyfloat", 4, Shape::one_key, true, hincrbyfloat},
    Command{"hdel", -3, Shape::one_key, true, hdel}};

}  // namespace

std::span<const Command> hash_change_commands() noexcept { return kHashChangeCommands; }

}  // namespace dunlin::app::resp
