#include <algorithm>
#include <array>
#include <span>

#include "store/command_table.hpp"
#include "store/hash_fields.hpp"
#include "store/session.hpp"

/// Commands on hashes, each of which is one value of the store.
namespace dunlin::app::resp {

namespace {

constexpr std::size_t kLengthsBytes = 8;

std::uint32_t length_at(std::string_view text) noexcept {
  std::uint32_t length = 0;
  for (std::size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(text[i]);
  return length;
}

void append_length(std::string& to, std::size_t bytes) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(bytes >> shift & 0xff);
}

}  // namespace

HashFields::HashFields(std::string_view value) noexcept
    : rest_(value.substr(std::min(value.size(), kMarkBytes))) {}

std::optional<HashFields::Field> HashFields::next() noexcept {
  if (rest_.size() < kLengthsBytes) return {};
  const std::size_t name = length_at(rest_);
  const std::size_t value = length_at(rest_.substr(4));
  const std::string_view bytes = rest_.substr(kLengthsBytes);
  if (name + value > bytes.size()) return {};
  rest_ = bytes.substr(name + value);
  return Field{bytes.substr(0, name), bytes.substr(name, value)};
}

std::optional<std::string_view> HashFields::find(std::string_view value,
                                                 std::string_view name) noexcept {
  HashFields fields(value);
  while (const std::optional<Field> field = fields.next())
    if (field->name == name) return field->value;
  return {};
}

std::size_t HashFields::count(std::string_view value) noexcept {
  HashFields fields(value);
  std::size_t count = 0;
  while (fields.next()) ++count;
  return count;
}

void HashFields::append(std::string& to, const Field& field) {
  append_length(to, field.name.size());
  append_length(to, field.value.size());
  to += field.name;
  to += field.value;
}

namespace {

using Shape = Command::Shape;

bool is_hash(std::string_view value) noexcept { return value.starts_with(kHashMark); }

const char* begin_read_hash(Job& job) {
  job.order.kind = Order::Kind::get;
  return nullptr;
}

/// The value of the hash, which is empty if there is none; nothing, and an error, if the key has
/// another type.
std::optional<std::string_view> hash_of(const Call& call, Reply& reply) {
  if (!call.found()) return std::string_view();
  if (is_hash(call.value())) return call.value();
  reply.error(kWrongType);
  return {};
}

void write_field(std::string_view hash, std::string_view name, Reply& reply) {
  if (const auto value = HashFields::find(hash, name)) {
    reply.bulk(*value);
  } else {
    reply.null();
  }
}

bool conclude_hget(Job& job, Reply& reply) {
  if (const auto hash = hash_of(*job.call, reply)) write_field(*hash, job.arguments[2], reply);
  return true;
}

bool conclude_hmget(Job& job, Reply& reply) {
  const auto hash = hash_of(*job.call, reply);
  if (!hash) return true;
  reply.array(job.arguments.size() - 2);
  for (std::size_t i = 2; i < job.arguments.size(); ++i)
    write_field(*hash, job.arguments[i], reply);
  return true;
}

bool conclude_hgetall(Job& job, Reply& reply) {
  const auto hash = hash_of(*job.call, reply);
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
  if (const auto hash = hash_of(*job.call, reply))
    reply.integer(static_cast<std::int64_t>(HashFields::count(*hash)));
  return true;
}

bool conclude_hexists(Job& job, Reply& reply) {
  if (const auto hash = hash_of(*job.call, reply))
    reply.integer(HashFields::find(*hash, job.arguments[2]) ? 1 : 0);
  return true;
}

/// What the arguments say of the field; the last one counts.
std::optional<std::string_view> new_value(const Job& job, std::string_view name) noexcept {
  for (std::size_t i = job.arguments.size(); i > 3; i -= 2)
    if (job.arguments[i - 2] == name) return job.arguments[i - 1];
  return {};
}

/// The fields that are there, changed, and behind them those that are new.
Change decide_hset(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  job.error = nullptr;
  if (current && !is_hash(*current)) {
    job.error = kWrongType;
    return {};
  }
  const std::string_view before = current.value_or(kHashMark);
  job.scratch.assign(kHashMark);
  job.number = 0;
  HashFields fields(before);
  while (const auto field = fields.next())
    HashFields::append(job.scratch,
                       {field->name, new_value(job, field->name).value_or(field->value)});
  for (std::size_t i = 2; i < job.arguments.size(); i += 2) {
    const std::string_view name = job.arguments[i];
    if (HashFields::find(job.scratch, name)) continue;
    HashFields::append(job.scratch, {name, *new_value(job, name)});
    ++job.number;
  }
  if (job.scratch.size() <= kMaxArgumentBytes)
    return {.action = Change::Action::put, .value = job.scratch};
  job.error = "ERR the hash would be over 1048576 bytes, which is the limit of a value";
  return {};
}

const char* begin_update_hash(Job& job, Order::Decide decide) {
  job.order.kind = Order::Kind::update;
  job.order.decide = decide;
  job.order.context = &job;
  return nullptr;
}

const char* begin_hset(Job& job) {
  if (job.arguments.size() % 2 != 0) return "ERR wrong number of arguments for 'hset' command";
  return begin_update_hash(job, decide_hset);
}

const char* begin_hmset(Job& job) {
  if (job.arguments.size() % 2 != 0) return "ERR wrong number of arguments for 'hmset' command";
  return begin_update_hash(job, decide_hset);
}

bool conclude_number(Job& job, Reply& reply) {
  reply.integer(job.number);
  return true;
}

bool conclude_hmset(Job&, Reply& reply) {
  reply.ok();
  return true;
}

Change decide_hdel(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  job.error = nullptr;
  job.number = 0;
  if (!current) return {};
  if (!is_hash(*current)) {
    job.error = kWrongType;
    return {};
  }
  job.scratch.assign(kHashMark);
  HashFields fields(*current);
  const auto names = std::span(job.arguments).subspan(2);
  while (const auto field = fields.next()) {
    if (std::ranges::find(names, field->name) != names.end()) {
      ++job.number;
    } else {
      HashFields::append(job.scratch, *field);
    }
  }
  if (job.number == 0) return {};
  if (job.scratch.size() == kMarkBytes) return {.action = Change::Action::erase};
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_hdel(Job& job) { return begin_update_hash(job, decide_hdel); }

constexpr std::array kHashCommands{
    Command{"hget", 3, Shape::one_key, false, begin_read_hash, conclude_hget},
    Command{"hmget", -3, Shape::one_key, false, begin_read_hash, conclude_hmget},
    Command{"hgetall", 2, Shape::one_key, false, begin_read_hash, conclude_hgetall},
    Command{"hlen", 2, Shape::one_key, false, begin_read_hash, conclude_hlen},
    Command{"hexists", 3, Shape::one_key, false, begin_read_hash, conclude_hexists},
    Command{"hset", -4, Shape::one_key, true, begin_hset, conclude_number},
    Command{"hmset", -4, Shape::one_key, true, begin_hmset, conclude_hmset},
    Command{"hdel", -3, Shape::one_key, true, begin_hdel, conclude_number}};

}  // namespace

std::span<const Command> hash_commands() noexcept { return kHashCommands; }

}  // namespace dunlin::app::resp
