#include <array>
#include <span>
#include <string>
#include <vector>

#include "store/command_table.hpp"
#include "store/element_scan.hpp"
#include "store/hash_fields.hpp"
#include "store/session.hpp"

/// Commands that read hashes, each of which is one value of the store.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

constexpr const char* kReplyTooLarge =
    "ERR the values of the reply would be over 8388608 bytes, which is the limit: ask for fewer "
    "fields";
static_assert(kMaxReplyBytes == 8388608, "as kReplyTooLarge says");

Replied write_value(std::optional<std::string_view> value, Reply& reply) {
  return value ? reply.bulk(*value) : reply.null();
}

Task hget(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  co_return write_value(HashFields::find(*hash, job.arguments[2]), reply);
}

Task hmget(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  const auto names = std::span<const std::string_view>(job.arguments).subspan(2);
  NamedFields wanted(names, 1);
  HashFields fields(*hash);
  while (const auto field = fields.next())
    if (NamedFields::Field* const one = wanted.find(field->name); one != nullptr && !one->value)
      one->value = field->value;
  std::vector<std::optional<std::string_view>> values;
  values.reserve(names.size());
  std::size_t bytes = 0;
  for (const std::string_view name : names) {
    values.push_back(wanted.find(name)->value);
    bytes += values.back().value_or("").size();
  }
  if (bytes > kMaxReplyBytes) co_return kReplyTooLarge;
  reply.array(values.size());
  for (const auto& value : values) write_value(value, reply);
  co_return Replied{};
}

Task hgetall(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  reply.map(HashFields::count(*hash));
  HashFields fields(*hash);
  while (const auto field = fields.next()) {
    reply.bulk(field->name);
    reply.bulk(field->value);
  }
  co_return Replied{};
}

Task hlen(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  co_return reply.integer(static_cast<std::int64_t>(HashFields::count(*hash)));
}

Task hexists(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  co_return reply.integer(HashFields::find(*hash, job.arguments[2]) ? 1 : 0);
}

Task hstrlen(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  const std::string_view value = HashFields::find(*hash, job.arguments[2]).value_or("");
  co_return reply.integer(static_cast<std::int64_t>(value.size()));
}

Task hkeys(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  reply.array(HashFields::count(*hash));
  HashFields fields(*hash);
  while (const auto field = fields.next()) reply.bulk(field->name);
  co_return Replied{};
}

Task hvals(Job& job, Reply& reply) {
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  reply.array(HashFields::count(*hash));
  HashFields fields(*hash);
  while (const auto field = fields.next()) reply.bulk(field->value);
  co_return Replied{};
}

/// Returns all fields at once, as Redis does with a small hash.
Task hscan(Job& job, Reply& reply) {
  ElementScan words;
  if (const char* const wrong = parse_element_scan(job, words)) co_return wrong;
  const auto hash = co_await job.read(kHashMark);
  if (!hash) co_return kWrongType;
  std::string text;
  Reply elements(text, reply.protocol());
  std::size_t count = 0;
  HashFields fields(*hash);
  while (const auto field = fields.next()) {
    if (!words.is_first || !matches(words.pattern, field->name)) continue;
    elements.bulk(field->name);
    ++count;
    if (words.names_only) continue;
    elements.bulk(field->value);
    ++count;
  }
  co_return reply_scan("0", count, text, reply);
}

constexpr std::array kHashCommands{Command{"hget", 3, Shape::one_key, false, hget},
                                   Command{"hmget", -3, Shape::one_key, false, hmget},
                                   Command{"hgetall", 2, Shape::one_key, false, hgetall},
                                   Command{"hkeys", 2, Shape::one_key, false, hkeys},
                                   Command{"hvals", 2, Shape::one_key, false, hvals},
                                   Command{"hlen", 2, Shape::one_key, false, hlen},
                                   Command{"hexists", 3, Shape::one_key, false, hexists},
                                   Command{"hstrlen", 3, Shape::one_key, false, hstrlen},
                                   Command{"hscan", -3, Shape::one_key, false, hscan}};

}  // namespace

std::span<const Command> hash_commands() noexcept { return kHashCommands; }

}  // namespace dunlin::app::resp
