#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "store/job.hpp"
#include "store/limits.hpp"
#include "store/reply.hpp"

namespace dunlin::app::resp {

/// A command of Redis, and how it shares its connection with others.
///
///  RSP-C1  The replies of a connection come in the order of its requests.
///  RSP-C2  Of two commands of a connection on one key of which one is a change, the second begins
///          after the first has taken effect.
struct Command {
  enum class Shape : std::uint8_t {
    at_once,       // awaits no call; runs when nothing else of the connection is under way
    one_key,       // awaits calls on the key that is arguments[first_key]
    several_keys,  // awaits transactions; begins when nothing else of the connection is under way
    all_keys,      // the same with keys that the request does not name
    each_key       // `part` runs for each key, and `run` makes one reply of all of them
  };
  /// Between MULTI and EXEC.
  enum class WithinMulti : std::uint8_t { waits, acts, is_refused };

  std::string_view name;
  int arity;  // counts the name, too, as in Redis; negative: at least so many
  Shape shape;
  bool changes;
  /// The command, written from top to bottom (job.hpp). For each_key it runs when all parts have
  /// ended; null: there is nothing to add to their replies.
  Task (*run)(Job& job, Reply& reply) = nullptr;
  bool several_steps = false;  // it awaits one call after another
  bool open_to_strangers = false;
  WithinMulti within_multi = WithinMulti::waits;
  // Where the keys of one_key and several_keys are.
  std::size_t first_key = 1;
  std::size_t last_key = 1;        // 0: the last argument
  std::size_t key_count_word = 0;  // not 0: that argument says how many keys are behind it
  // each_key
  const Command* part = nullptr;
  std::size_t words_of_part = 1;  // the key, or the key and its value; also of several_keys
  bool is_array = false;          // the parts' replies are the elements of an array
  bool is_silent_part = false;    // a part that adds to the session's tally, and replies nothing

  /// Whether scripts may run it: not if it concerns the connection or its transaction, or keys that
  /// it does not name, or is a script itself.
  [[nodiscard]] constexpr bool is_for_scripts() const noexcept {
    if (within_multi != WithinMulti::waits) return false;
    return shape == Shape::at_once ? is_harmless : shape != Shape::all_keys && key_count_word == 0;
  }
  bool is_harmless = false;  // at_once: PING and its like
};
/// Whether it takes so many words, its name included.
[[nodiscard]] bool arity_fits(const Command& command, std::size_t words) noexcept;

/// By its name, in upper or lower case. Null if there is none.
[[nodiscard]] const Command* find_command(std::string_view name) noexcept;
/// All commands, by name.
[[nodiscard]] std::span<const Command* const> all_commands() noexcept;

/// The keys that a request names, in its order. None if their number is wrong, or there are none.
[[nodiscard]] std::vector<std::string_view> keys_of(const Command& command,
                                                    std::span<const std::string_view> arguments);

/// Replies the first error that the parts of the command have had, or OK.
Task reply_tally(Job& job, Reply& reply);

[[nodiscard]] constexpr Command at_once(
    std::string_view name, int arity, Task (*run)(Job&, Reply&),
    Command::WithinMulti within_multi = Command::WithinMulti::waits,
    bool open_to_strangers = false) noexcept {
  return {.name = name,
          .arity = arity,
          .shape = Command::Shape::at_once,
          .changes = false,
          .run = run,
          .open_to_strangers = open_to_strangers,
          .within_multi = within_multi};
}
/// A part of a command of the shape each_key that adds to the session's tally.
[[nodiscard]] constexpr Command silent_part(int arity, bool changes,
                                            Task (*run)(Job&, Reply&)) noexcept {
  return {.name = "",
          .arity = arity,
          .shape = Command::Shape::one_key,
          .changes = changes,
          .run = run,
          .is_silent_part = true};
}

// Each in a source of its own.
[[nodiscard]] std::span<const Command> string_commands() noexcept;
[[nodiscard]] std::span<const Command> number_commands() noexcept;
[[nodiscard]] std::span<const Command> key_commands() noexcept;
[[nodiscard]] std::span<const Command> expiry_commands() noexcept;
[[nodiscard]] std::span<const Command> several_keys_commands() noexcept;
[[nodiscard]] std::span<const Command> all_keys_commands() noexcept;
[[nodiscard]] std::span<const Command> hash_commands() noexcept;
[[nodiscard]] std::span<const Command> hash_change_commands() noexcept;
[[nodiscard]] std::span<const Command> sorted_set_commands() noexcept;
[[nodiscard]] std::span<const Command> sorted_set_range_commands() noexcept;
[[nodiscard]] std::span<const Command> transaction_commands() noexcept;
[[nodiscard]] std::span<const Command> script_commands() noexcept;
[[nodiscard]] std::span<const Command> connection_commands() noexcept;
[[nodiscard]] std::span<const Command> client_commands() noexcept;
[[nodiscard]] std::span<const Command> config_commands() noexcept;
[[nodiscard]] std::span<const Command> info_commands() noexcept;
[[nodiscard]] std::span<const Command> cluster_commands() noexcept;
[[nodiscard]] std::span<const Command> member_commands() noexcept;

/// Compares without regard to case; `lower` is in lower case.
[[nodiscard]] bool is_word(std::string_view text, std::string_view lower) noexcept;
/// Parses as Redis does: no blanks, no plus, no leading zeros.
[[nodiscard]] bool parse_integer(std::string_view text, std::int64_t& number) noexcept;
/// Whether text matches a pattern of *, ?, [...] and backslashes, as Redis has them.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text) noexcept;
/// Matching takes as long as the pattern's bytes times the text's: a client's patterns are limited.
inline constexpr const char* kPatternTooLong =
    "ERR the pattern is too long: 512 bytes are possible";
static_assert(kMaxPatternBytes == 512, "as kPatternTooLong says");
/// The error of a call that did not end well.
[[nodiscard]] const char* describe(Ending ending) noexcept;

inline constexpr const char* kNotAnInteger = "ERR value is not an integer or out of range";
inline constexpr const char* kSyntaxError = "ERR syntax error";
inline constexpr const char* kTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
inline constexpr const char* kTooManyChanges =
    "ERR the transaction would change over 16 keys, which is the limit: nothing has happened";
inline constexpr const char* kMarked =
    "ERR a string cannot begin with the mark of a hash or a sorted set";

}  // namespace dunlin::app::resp
