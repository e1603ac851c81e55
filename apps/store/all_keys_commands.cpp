#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/element_scan.hpp"
#include "store/session.hpp"

/// Commands on all keys of the store. A member that has failed is passed over.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

Task dbsize(Job& job, Reply& reply) {
  const Call& call = co_await job.count();
  co_return reply.integer(static_cast<std::int64_t>(call.keys()));
}

// --- SCAN ----------------------------------------------------------------------------------------

struct ScanWords {
  std::string_view pattern = "*";
  std::int64_t count = 10;
  std::optional<std::string_view> type;
};

const char* parse_scan(const Job& job, ScanWords& words) {
  if (job.arguments.size() % 2 != 0) return kSyntaxError;
  for (std::size_t i = 2; i < job.arguments.size(); i += 2) {
    const std::string_view value = job.arguments[i + 1];
    if (is_word(job.arguments[i], "match")) {
      if (value.size() > kMaxPatternBytes) return kPatternTooLong;
      words.pattern = value;
    } else if (is_word(job.arguments[i], "count")) {
      if (!parse_integer(value, words.count)) return kNotAnInteger;
      if (words.count < 1) return kSyntaxError;
    } else if (is_word(job.arguments[i], "type")) {
      words.type = value;
    } else {
      return kSyntaxError;
    }
  }
  return nullptr;
}

/// How many keys the last step has found.
std::size_t entries_of(const Call& call) noexcept {
  return call.ending() == Ending::lost ? 0 : call.entries();
}

bool is_asked_for(const ScanWords& words, const Call& call, std::size_t i) noexcept {
  if (words.type && !is_word(*words.type, type_of(call.entry_value(i)))) return false;
  return matches(words.pattern, call.entry_key(i));
}

/// A scan takes as many steps as find COUNT keys, and not more than the limits: MATCH may leave out
/// many keys, and a member that is empty, or has failed, takes a step without any.
class ScanSteps {
 public:
  explicit ScanSteps(std::int64_t count) noexcept
      : most_(std::clamp<std::uint64_t>(static_cast<std::uint64_t>(count) / kKeysOfAScanStep + 1,
                                        kLeastScanSteps, kMaxScanSteps)) {}
  /// Whether another step may follow one that has found so many keys.
  [[nodiscard]] bool may_follow(std::size_t entries) noexcept {
    return entries == 0 ? ++empty_ < kMaxEmptyScanSteps : ++full_ < most_;
  }

 private:
  std::uint64_t most_;
  std::uint64_t full_ = 0;
  std::uint64_t empty_ = 0;
};

Task scan(Job& job, Reply& reply) {
  ScanWords words;
  if (const char* const wrong = parse_scan(job, words)) co_return wrong;
  std::uint64_t cursor = 0;
  if (!parse_cursor(job.arguments[1], cursor)) co_return "ERR invalid cursor";
  std::string text;
  Reply keys(text, reply.protocol());
  std::int64_t count = 0;
  ScanSteps steps(words.count);
  std::size_t entries = 0;
  do {
    const Call& call = co_await job.scan(cursor, words.type.has_value());
    entries = entries_of(call);
    for (std::size_t i = 0; i < entries; ++i) {
      if (!is_asked_for(words, call, i)) continue;
      keys.bulk(call.entry_key(i));
      ++count;
    }
    cursor = call.cursor();
  } while (cursor != 0 && count < words.count && steps.may_follow(entries));
  co_return reply_scan(fmt::format("{}", cursor), static_cast<std::size_t>(count), text, reply);
}

// --- KEYS, RANDOMKEY -----------------------------------------------------------------------------

Task keys(Job& job, Reply& reply) {
  const std::string_view pattern = job.arguments[1];
  if (pattern.size() > kMaxPatternBytes) co_return kPatternTooLong;
  std::string text;
  Reply found(text, reply.protocol());
  std::size_t count = 0;
  std::uint64_t cursor = 0;
  do {
    const Call& call = co_await job.scan(cursor);
    for (std::size_t i = 0; i < entries_of(call); ++i) {
      if (!matches(pattern, call.entry_key(i))) continue;
      found.bulk(call.entry_key(i));
      ++count;
    }
    static_assert(kMaxReplyBytes == 8388608, "as the error says");
    if (text.size() > kMaxReplyBytes)
      co_return "ERR the keys would be over 8388608 bytes, which is the limit of a reply: use SCAN";
    cursor = call.cursor();
  } while (cursor != 0);
  reply.array(count);
  co_return reply.raw(text);
}

/// Chooses one of all keys with equal probability (A. Waterman's reservoir).
Task randomkey(Job& job, Reply& reply) {
  static std::minstd_rand random{std::random_device{}()};
  std::string chosen;
  std::int64_t seen = 0;
  std::uint64_t cursor = 0;
  do {
    const Call& call = co_await job.scan(cursor);
    for (std::size_t i = 0; i < entries_of(call); ++i)
      if (std::uniform_int_distribution<std::int64_t>(0, seen++)(random) == 0)
        chosen.assign(call.entry_key(i));
    cursor = call.cursor();
  } while (cursor != 0);
  co_return seen == 0 ? reply.null() : reply.bulk(chosen);
}

// --- FLUSHDB, FLUSHALL ---------------------------------------------------------------------------

Task flush(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  const bool has_mode =
      words.size() == 2 && (is_word(words[1], "sync") || is_word(words[1], "async"));
  if (words.size() > 1 && !has_mode) co_return kSyntaxError;
  std::uint64_t cursor = 0;
  do {
    const Call& call = co_await job.scan(cursor);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < entries_of(call); ++i) found.emplace_back(call.entry_key(i));
    cursor = call.cursor();
    for (; !found.empty(); found.pop_back()) co_await job.erase(found.back());
  } while (cursor != 0);
  co_return reply.ok();
}

constexpr std::array kAllKeysCommands{
    Command{"dbsize", 1, Shape::all_keys, false, dbsize},
    Command{"scan", -2, Shape::all_keys, false, scan, true},
    Command{"keys", 2, Shape::all_keys, false, keys, true},
    Command{"randomkey", 1, Shape::all_keys, false, randomkey, true},
    Command{"flushdb", -1, Shape::all_keys, true, flush, true},
    Command{"flushall", -1, Shape::all_keys, true, flush, true}};

}  // namespace

std::span<const Command> all_keys_commands() noexcept { return kAllKeysCommands; }

}  // namespace dunlin::app::resp
