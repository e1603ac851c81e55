#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "store/command_table.hpp"
#include "store/hash_fields.hpp"
#include "store/session.hpp"

/// Commands on hashes, each of which is one value of the store.
namespace dunlin::app::resp {

namespace {

constexpr std::size_t kLengthsBytes = 8;
constexpr const char* kReplyTooLarge =
    "ERR the values of the reply would be over 8388608 bytes, which is the limit: ask for fewer "
    "fields";
static_assert(kMaxReplyBytes == 8388608, "as kReplyTooLarge says");

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

void write_value(std::optional<std::string_view> value, Reply& reply) {
  if (value) {
    reply.bulk(*value);
  } else {
    reply.null();
  }
}

bool conclude_hget(Job& job, Reply& reply) {
  if (const auto hash = hash_of(*job.call, reply))
    write_value(HashFields::find(*hash, job.arguments[2]), reply);
  return true;
}

/// The fields that a command names, each once. They are sorted, and not hashed: a client can choose
/// names that all have one hash.
class NamedFields {
 public:
  struct Field {
    std::string_view name;
    std::optional<std::string_view> value;  // the last one that the command gives it; or the hash's
    bool is_in_hash = false;
  };

  /// `words` are names, or, with a step of 2, names and values in turn.
  NamedFields(std::span<const std::string_view> words, std::size_t step) {
    fields_.reserve(words.size() / step);
    for (std::size_t i = 0; i < words.size(); i += step)
      fields_.push_back(
          {.name = words[i], .value = step == 2 ? std::optional(words[i + 1]) : std::nullopt});
    std::ranges::stable_sort(fields_, {}, &Field::name);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const bool is_last = i + 1 == fields_.size() || fields_[i + 1].name != fields_[i].name;
      if (is_last) fields_[kept++] = fields_[i];
    }
    fields_.resize(kept);
  }

  /// Null if the command does not name it.
  [[nodiscard]] Field* find(std::string_view name) noexcept {
    const auto found = std::ranges::lower_bound(fields_, name, {}, &Field::name);
    return found != fields_.end() && found->name == name ? &*found : nullptr;
  }

 private:
  std::vector<Field> fields_;
};

bool conclude_hmget(Job& job, Reply& reply) {
  const auto hash = hash_of(*job.call, reply);
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
  if (bytes > kMaxReplyBytes) {
    reply.error(kReplyTooLarge);
    return true;
  }
  reply.array(values.size());
  for (const auto& value : values) write_value(value, reply);
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
