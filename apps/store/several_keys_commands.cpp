#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "store/command_table.hpp"
#include "store/session.hpp"

/// Commands that read and change several keys in one step.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

// --- MSETNX --------------------------------------------------------------------------------------

Task msetnx(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  if (words.size() % 2 == 0) co_return "ERR wrong number of arguments for 'msetnx' command";
  std::vector<TransactionKey> keys;
  for (std::size_t i = 1; i < words.size(); i += 2) {
    if (has_mark(words[i + 1])) co_return kMarked;
    add_key(keys, words[i]);
    if (keys.size() > kMaxTransactionWrites) co_return kTooManyChanges;
  }
  bool all_are_new = false;
  co_await job.transact(keys, [&] {
    all_are_new = std::ranges::none_of(keys, &TransactionKey::found);
    if (!all_are_new) return false;
    for (std::size_t i = 1; i < words.size(); i += 2)
      keys[add_key(keys, words[i])].change = put(words[i + 1], kForeverNs);
    return true;
  });
  co_return reply.integer(all_are_new ? 1 : 0);
}

// --- RENAME, RENAMENX, COPY ----------------------------------------------------------------------

/// The keys of a command on two of them, which may be the same.
struct TwoKeys {
  explicit TwoKeys(const Job& job)
      : from_place(add_key(keys, job.arguments[1])), to_place(add_key(keys, job.arguments[2])) {}
  [[nodiscard]] TransactionKey& from() noexcept { return keys[from_place]; }
  [[nodiscard]] TransactionKey& to() noexcept { return keys[to_place]; }

  std::vector<TransactionKey> keys;
  std::size_t from_place;
  std::size_t to_place;
};

Task rename(Job& job, Reply& reply) {
  TwoKeys two(job);
  const bool only_if_new = is_word(job.arguments[0], "renamenx");
  bool is_renamed = false;
  co_await job.transact(two.keys, [&] {
    if (!two.from().found) {
      job.fail("ERR no such key");
      return false;
    }
    is_renamed = !only_if_new || !two.to().found;
    if (!is_renamed || two.from_place == two.to_place) return false;
    two.to().change = put(two.from().value, two.from().ttl_ns);
    two.from().change = kErase;
    return true;
  });
  co_return only_if_new ? reply.integer(is_renamed ? 1 : 0) : reply.ok();
}

const char* parse_copy(std::span<const std::string_view> words, bool& replaces) {
  for (std::size_t i = 3; i < words.size(); ++i) {
    std::int64_t database = 0;
    if (is_word(words[i], "replace")) {
      replaces = true;
    } else if (is_word(words[i], "db") && i + 1 < words.size()) {
      if (!parse_integer(words[++i], database)) return kNotAnInteger;
      if (database != 0) return "ERR DB index is out of range";
    } else {
      return kSyntaxError;
    }
  }
  return words[1] == words[2] ? "ERR source and destination objects are the same" : nullptr;
}

Task copy(Job& job, Reply& reply) {
  bool replaces = false;
  if (const char* const wrong = parse_copy(job.arguments, replaces)) co_return wrong;
  TwoKeys two(job);
  bool is_copied = false;
  co_await job.transact(two.keys, [&] {
    is_copied = two.from().found && (replaces || !two.to().found);
    if (is_copied) two.to().change = put(two.from().value, two.from().ttl_ns);
    return is_copied;
  });
  co_return reply.integer(is_copied ? 1 : 0);
}

constexpr Command on_two_keys(std::string_view name, int arity, Task (*run)(Job&, Reply&)) {
  return {.name = name,
          .arity = arity,
          .shape = Shape::several_keys,
          .changes = true,
          .run = run,
          .last_key = 2};
}

constexpr std::array kSeveralKeysCommands{on_two_keys("rename", 3, rename),
                                          on_two_keys("renamenx", 3, rename),
                                          on_two_keys("copy", -3, copy),
                                          Command{.name = "msetnx",
                                                  .arity = -3,
                                                  .shape = Shape::several_keys,
                                                  .changes = true,
                                                  .run = msetnx,
                                                  .last_key = 0,
                                                  .words_of_part = 2}};

}  // namespace

std::span<const Command> several_keys_commands() noexcept { return kSeveralKeysCommands; }

}  // namespace dunlin::app::resp
