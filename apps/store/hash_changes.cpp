#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/hash_fields.hpp"
#include "store/real_number.hpp"
#include "store/session.hpp"
#include "store/typed_value.hpp"

/// Commands that change hashes.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

/// What is in the scratch becomes the hash.
Change put_hash(Job& job) noexcept {
  if (job.scratch.size() <= kMaxArgumentBytes)
    return {.action = Change::Action::put, .value = job.scratch};
  return job.fail("ERR the hash would be over 1048576 bytes, which is the limit of a value");
}
static_assert(kMaxArgumentBytes == 1048576, "as put_hash says");

/// The hash with one field changed, or added at its end.
Change put_field(Job& job, std::string_view hash, const HashFields::Field& changed) {
  job.scratch.assign(kHashMark);
  bool is_there = false;
  HashFields fields(hash);
  while (const auto field = fields.next()) {
    const bool is_it = field->name == changed.name;
    is_there = is_there || is_it;
    HashFields::append(job.scratch, is_it ? changed : *field);
  }
  if (!is_there) HashFields::append(job.scratch, changed);
  return put_hash(job);
}

// --- HSET, HMSET, HSETNX -------------------------------------------------------------------------

/// The fields that are there, changed, and behind them those that are new.
Change decide_hset(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  if (refuses(job, current, kHashMark)) return {};
  const std::string_view before = current.value_or(kHashMark);
  job.scratch.assign(kHashMark);
  job.number = 0;
  NamedFields changes(std::span<const std::string_view>(job.arguments).subspan(2), 2);
  HashFields fields(before);
  while (const auto field = fields.next()) {
    NamedFields::Field* const change = changes.find(field->name);
    if (change != nullptr) change->is_in_hash = true;
    HashFields::append(job.scratch,
                       {field->name, change != nullptr ? *change->value : field->value});
  }
  for (std::size_t i = 2; i < job.arguments.size(); i += 2) {
    NamedFields::Field& change = *changes.find(job.arguments[i]);
    if (std::exchange(change.is_in_hash, true)) continue;
    HashFields::append(job.scratch, {change.name, *change.value});
    ++job.number;
  }
  return put_hash(job);
}

const char* begin_hset(Job& job) {
  if (job.arguments.size() % 2 != 0) return "ERR wrong number of arguments for 'hset' command";
  return begin_update(job, decide_hset);
}

const char* begin_hmset(Job& job) {
  if (job.arguments.size() % 2 != 0) return "ERR wrong number of arguments for 'hmset' command";
  return begin_update(job, decide_hset);
}

Change decide_hsetnx(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  job.number = 0;
  if (refuses(job, current, kHashMark)) return {};
  const std::string_view hash = current.value_or(kHashMark);
  if (HashFields::find(hash, job.arguments[2])) return {};
  job.number = 1;
  return put_field(job, hash, {job.arguments[2], job.arguments[3]});
}

const char* begin_hsetnx(Job& job) { return begin_update(job, decide_hsetnx); }

// --- HINCRBY, HINCRBYFLOAT -----------------------------------------------------------------------

Change decide_hincrby(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  if (refuses(job, current, kHashMark)) return {};
  const std::string_view hash = current.value_or(kHashMark);
  const auto before = HashFields::find(hash, job.arguments[2]);
  std::int64_t number = 0;
  std::int64_t by = 0;
  static_cast<void>(parse_integer(job.arguments[3], by));  // the beginning has looked
  if (before && !parse_integer(*before, number))
    return job.fail("ERR hash value is not an integer");
  if (__builtin_add_overflow(number, by, &job.number))
    return job.fail("ERR increment or decrement would overflow");
  const std::string text = fmt::format("{}", job.number);
  return put_field(job, hash, {job.arguments[2], text});
}

const char* begin_hincrby(Job& job) {
  std::int64_t by = 0;
  return parse_integer(job.arguments[3], by) ? begin_update(job, decide_hincrby) : kNotAnInteger;
}

Change decide_hincrbyfloat(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  if (refuses(job, current, kHashMark)) return {};
  const std::string_view hash = current.value_or(kHashMark);
  const auto before = HashFields::find(hash, job.arguments[2]);
  long double number = 0;
  long double by = 0;
  static_cast<void>(parse_real(job.arguments[3], by));  // the beginning has looked
  if (before && !parse_real(*before, number)) return job.fail("ERR hash value is not a float");
  if (!std::isfinite(number + by)) return job.fail("ERR increment would produce NaN or Infinity");
  return put_field(job, hash, {job.arguments[2], real_text(number + by)});
}

const char* begin_hincrbyfloat(Job& job) {
  long double by = 0;
  if (!parse_real(job.arguments[3], by)) return kNotAFloat;
  return std::isfinite(by) ? begin_update(job, decide_hincrbyfloat)
                           : "ERR value is NaN or Infinity";
}

/// The call has found the former hash; the new value of the field is in the scratch.
bool conclude_hincrbyfloat(Job& job, Reply& reply) {
  return reply.bulk(HashFields::find(job.scratch, job.arguments[2]).value_or(std::string_view()));
}

// --- HDEL ----------------------------------------------------------------------------------------

Change decide_hdel(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  job.number = 0;
  if (refuses(job, current, kHashMark) || !current) return {};
  job.scratch.assign(kHashMark);
  HashFields fields(*current);
  NamedFields names(std::span<const std::string_view>(job.arguments).subspan(2), 1);
  while (const auto field = fields.next()) {
    if (names.find(field->name) != nullptr) {
      ++job.number;
    } else {
      HashFields::append(job.scratch, *field);
    }
  }
  if (job.number == 0) return {};
  if (job.scratch.size() == kMarkBytes) return {.action = Change::Action::erase};
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_hdel(Job& job) { return begin_update(job, decide_hdel); }

constexpr std::array kHashChangeCommands{
    Command{"hset", -4, Shape::one_key, true, begin_hset, conclude_number},
    Command{"hmset", -4, Shape::one_key, true, begin_hmset, conclude_ok},
    Command{"hsetnx", 4, Shape::one_key, true, begin_hsetnx, conclude_number},
    Command{"hincrby", 4, Shape::one_key, true, begin_hincrby, conclude_number},
    Command{"hincrbyfloat", 4, Shape::one_key, true, begin_hincrbyfloat, conclude_hincrbyfloat},
    Command{"hdel", -3, Shape::one_key, true, begin_hdel, conclude_number}};

}  // namespace

std::span<const Command> hash_change_commands() noexcept { return kHashChangeCommands; }

}  // namespace dunlin::app::resp
