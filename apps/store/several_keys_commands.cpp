#include <array>

#include "store/command_table.hpp"
#include "store/session.hpp"

/// Commands that read and change several keys in one step.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

TransactionKey& key_at(Job& job, std::size_t argument) noexcept {
  return job.keys[job.add_key(job.arguments[argument])];
}

void put(TransactionKey& key, std::string_view value, std::uint64_t ttl_ns) noexcept {
  key.change = {.action = Change::Action::put, .value = value, .ttl_ns = ttl_ns};
}

// --- MSETNX --------------------------------------------------------------------------------------

bool decide_msetnx(void* context, std::span<TransactionKey> keys) {
  Job& job = *static_cast<Job*>(context);
  job.number = 0;
  for (const TransactionKey& key : keys)
    if (key.found) return false;
  for (std::size_t i = 1; i < job.arguments.size(); i += 2)
    put(key_at(job, i), job.arguments[i + 1], kForeverNs);
  job.number = 1;
  return true;
}

const char* begin_msetnx(Job& job) {
  if (job.arguments.size() % 2 == 0) return "ERR wrong number of arguments for 'msetnx' command";
  for (std::size_t i = 1; i < job.arguments.size(); i += 2) {
    if (has_mark(job.arguments[i + 1])) return kMarked;
    job.add_key(job.arguments[i]);
    if (job.keys.size() > kMaxTransactionWrites) return kTooManyChanges;
  }
  job.order_transaction(decide_msetnx);
  return nullptr;
}

// --- RENAME, RENAMENX, COPY ----------------------------------------------------------------------

void order_on_two(Job& job, Order::DecideKeys decide) {
  job.add_key(job.arguments[1]);
  job.add_key(job.arguments[2]);
  job.order_transaction(decide);
}

/// job.flag: only if the new key is absent.
bool decide_rename(void* context, std::span<TransactionKey>) {
  Job& job = *static_cast<Job*>(context);
  TransactionKey& from = key_at(job, 1);
  TransactionKey& to = key_at(job, 2);
  job.error = from.found ? nullptr : "ERR no such key";
  job.number = job.flag && to.found ? 0 : 1;
  if (job.error != nullptr || job.number == 0 || &from == &to) return false;
  put(to, from.value, from.ttl_ns);
  from.change.action = Change::Action::erase;
  return true;
}

const char* begin_rename(Job& job) {
  order_on_two(job, decide_rename);
  return nullptr;
}

const char* begin_renamenx(Job& job) {
  job.flag = true;
  return begin_rename(job);
}

/// job.flag: also if the other key is there.
bool decide_copy(void* context, std::span<TransactionKey>) {
  Job& job = *static_cast<Job*>(context);
  const TransactionKey& from = key_at(job, 1);
  TransactionKey& to = key_at(job, 2);
  job.number = from.found && (job.flag || !to.found) ? 1 : 0;
  if (job.number != 0) put(to, from.value, from.ttl_ns);
  return job.number != 0;
}

const char* begin_copy(Job& job) {
  const auto& words = job.arguments;
  for (std::size_t i = 3; i < words.size(); ++i) {
    std::int64_t database = 0;
    if (is_word(words[i], "replace")) {
      job.flag = true;
    } else if (is_word(words[i], "db") && i + 1 < words.size()) {
      if (!parse_integer(words[++i], database)) return kNotAnInteger;
      if (database != 0) return "ERR DB index is out of range";
    } else {
      return kSyntaxError;
    }
  }
  if (words[1] == words[2]) return "ERR source and destination objects are the same";
  order_on_two(job, decide_copy);
  return nullptr;
}

constexpr Command on_two_keys(std::string_view name, int arity, const char* (*begin)(Job&),
                              bool (*conclude)(Job&, Reply&)) {
  return {.name = name,
          .arity = arity,
          .shape = Shape::several_keys,
          .changes = true,
          .begin = begin,
          .conclude = conclude,
          .last_key = 2};
}

constexpr std::array kSeveralKeysCommands{
    on_two_keys("rename", 3, begin_rename, conclude_ok),
    on_two_keys("renamenx", 3, begin_renamenx, conclude_number),
    on_two_keys("copy", -3, begin_copy, conclude_number),
    Command{.name = "msetnx",
            .arity = -3,
            .shape = Shape::several_keys,
            .changes = true,
            .begin = begin_msetnx,
            .conclude = conclude_number,
            .last_key = 0,
            .words_of_part = 2}};

}  // namespace

std::span<const Command> several_keys_commands() noexcept { return kSeveralKeysCommands; }

}  // namespace dunlin::app::resp
