#include <array>
#include <span>
#include <vector>

#include "store/command_table.hpp"
#include "store/element_scan.hpp"
#include "store/hash_fields.hpp"
#include "store/session.hpp"
#include "store/typed_value.hpp"

/// Commands that read hashes, each of which is one value of the store.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

constexpr const char* kReplyTooLarge =
    "ERR the values of the reply would be over 8388608 bytes, which is the limit: ask for fewer "
    "fields";
static_assert(kMaxReplyBytes == 8388608, "as kReplyTooLarge says");

bool write_value(std::optional<std::string_view> value, Reply& reply) {
  return value ? reply.bulk(*value) : reply.null();
}

bool conclude_hget(Job& job, Reply& reply) {
  if (const auto hash = value_of(*job.call, kHashMark, reply))
    write_value(HashFields::find(*hash, job.arguments[2]), reply);
  return true;
}

bool conclude_hmget(Job& job, Reply& reply) {
  const auto hash = value_of(*job.call, kHashMark, reply);
  if (!hash) return true;
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
  if (bytes > kMaxReplyBytes) return reply.error(kReplyTooLarge);
  reply.array(values.size());
  for (const auto& value : values) write_value(value, reply);
  return true;
}

bool conclude_hgetall(Job& job, Reply& reply) {
  const auto hash = value_of(*job.call, kHashMark, reply);
  if (!hash) return true;
  reply.map(HashFields::count(*hash));
  HashFields fields(*hash);
  while (const auto field = fields.next()) {
    reply.bulk(field->name);
    reply.bulk(field->value);
  }
  return true;
}

bool conclude_hlen(Job& job, Reply& reply) {
  if (const auto hash = value_of(*job.call, kHashMark, reply))
    reply.integer(static_cast<std::int64_t>(HashFields::count(*hash)));
  return true;
}

bool conclude_hexists(Job& job, Reply& reply) {
  if (const auto hash = value_of(*job.call, kHashMark, reply))
    reply.integer(HashFields::find(*hash, job.arguments[2]) ? 1 : 0);
  return true;
}

bool conclude_hstrlen(Job& job, Reply& reply) {
  if (const auto hash = value_of(*job.call, kHashMark, reply))
    reply.integer(static_cast<std::int64_t>(
        HashFields::find(*hash, job.arguments[2]).value_or(std::string_view()).size()));
  return true;
}

bool conclude_hkeys(Job& job, Reply& reply) {
  const auto hash = value_of(*job.call, kHashMark, reply);
  if (!hash) return true;
  reply.array(HashFields::count(*hash));
  HashFields fields(*hash);
  while (const auto field = fields.next()) reply.bulk(field->name);
  return true;
}

bool conclude_hvals(Job& job, Reply& reply) {
  const auto hash = value_of(*job.call, kHashMark, reply);
  if (!hash) return true;
  reply.array(HashFields::count(*hash));
  HashFields fields(*hash);
  while (const auto field = fields.next()) reply.bulk(field->value);
  return true;
}

// --- HSCAN ---------------------------------------------------------------------------------------

const char* begin_hscan(Job& job) {
  ElementScan words;
  if (const char* const wrong = parse_element_scan(job, words)) return wrong;
  return begin_read(job);
}

/// Returns all fields at once, as Redis does with a small hash.
bool conclude_hscan(Job& job, Reply& reply) {
  const auto hash = value_of(*job.call, kHashMark, reply);
  if (!hash) return true;
  ElementScan words;
  static_cast<void>(parse_element_scan(job, words));  // the beginning has looked
  Reply elements(job.scratch, reply.protocol());
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
  reply.array(2);
  reply.bulk("0");
  reply.array(count);
  return reply.raw(job.scratch);
}

constexpr std::array kHashCommands{
    Command{"hget", 3, Shape::one_key, false, begin_read, conclude_hget},
    Command{"hmget", -3, Shape::one_key, false, begin_read, conclude_hmget},
    Command{"hgetall", 2, Shape::one_key, false, begin_read, conclude_hgetall},
    Command{"hkeys", 2, Shape::one_key, false, begin_read, conclude_hkeys},
    Command{"hvals", 2, Shape::one_key, false, begin_read, conclude_hvals},
    Command{"hlen", 2, Shape::one_key, false, begin_read, conclude_hlen},
    Command{"hexists", 3, Shape::one_key, false, begin_read, conclude_hexists},
    Command{"hstrlen", 3, Shape::one_key, false, begin_read, conclude_hstrlen},
    Command{"hscan", -3, Shape::one_key, false, begin_hscan, conclude_hscan}};

}  // namespace

std::span<const Command> hash_commands() noexcept { return kHashCommands; }

}  // namespace dunlin::app::resp
