#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/command_table.hpp"
#include "store/element_scan.hpp"
#include "store/real_number.hpp"
#include "store/session.hpp"
#include "store/sorted_set.hpp"

/// Commands on sorted sets, each of which is one value of the store.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

constexpr const char* kSetTooLarge =
    "ERR the sorted set would be over 1048576 bytes, which is the limit of a value";
static_assert(kMaxArgumentBytes == 1048576, "as kSetTooLarge says");

/// Parses as Redis does: by strtod, without blanks before.
bool parse_score(std::string_view text, double& score) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0) return false;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  score = std::strtod(copy.c_str(), &end);
  const bool out_of_range = errno == ERANGE && (std::isinf(score) || score == 0);
  return end == copy.c_str() + copy.size() && !out_of_range && !std::isnan(score);
}

// --- ZADD, ZINCRBY, ZREM -------------------------------------------------------------------------

struct AddOptions {
  bool only_new = false;      // NX
  bool only_there = false;    // XX
  bool only_greater = false;  // GT
  bool only_less = false;     // LT
  bool counts_changes = false;
  bool increments = false;
  std::size_t first = 2;  // the argument that is the first score
};

/// ZINCRBY is ZADD with INCR.
AddOptions parse_add_options(const Job& job) noexcept {
  if (is_word(job.arguments[0], "zincrby")) return {.increments = true};
  AddOptions options;
  for (; options.first < job.arguments.size(); ++options.first) {
    const std::string_view word = job.arguments[options.first];
    if (is_word(word, "nx")) {
      options.only_new = true;
    } else if (is_word(word, "xx")) {
      options.only_there = true;
    } else if (is_word(word, "gt")) {
      options.only_greater = true;
    } else if (is_word(word, "lt")) {
      options.only_less = true;
    } else if (is_word(word, "ch")) {
      options.counts_changes = true;
    } else if (is_word(word, "incr")) {
      options.increments = true;
    } else {
      break;
    }
  }
  return options;
}

/// Returns an error, or null.
const char* check_add(const Job& job, const AddOptions& options) {
  const std::size_t words = job.arguments.size() - options.first;
  if (words == 0 || words % 2 != 0) return kSyntaxError;
  if (options.only_new && options.only_there)
    return "ERR XX and NX options at the same time are not compatible";
  if (options.only_new + options.only_greater + options.only_less > 1)
    return "ERR GT, LT, and/or NX options at the same time are not compatible";
  if (options.increments && words > 2)
    return "ERR INCR option supports a single increment-element pair";
  return nullptr;
}

/// What the command does to the members, as Redis counts it.
struct AddResult {
  std::int64_t added = 0;
  std::int64_t updated = 0;
  std::optional<double> score =
      {};  // of the last member, unless the options have left it as it was
};

/// Returns an error, or null.
const char* add(NamedMembers::Named& named, double score, const AddOptions& options,
                AddResult& result) noexcept {
  result.score.reset();
  if (!named.is_there) {
    if (options.only_there) return nullptr;
    ++result.added;
  } else {
    if (options.only_new) return nullptr;
    if (options.increments) score += named.score;
    if (std::isnan(score)) return "ERR resulting score is not a number (NaN)";
    if (options.only_less && score >= named.score) return nullptr;
    if (options.only_greater && score <= named.score) return nullptr;
    result.score = named.score;
    if (score == named.score) return nullptr;
    ++result.updated;
  }
  result.score = named.score = score;
  named.is_there = named.changed = true;
  return nullptr;
}

Task zadd(Job& job, Reply& reply) {
  const AddOptions options = parse_add_options(job);
  if (const char* const wrong = check_add(job, options)) co_return wrong;
  const auto pairs = std::span<const std::string_view>(job.arguments).subspan(options.first);
  std::vector<double> scores(pairs.size() / 2);
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!parse_score(pairs[2 * i], scores[i])) co_return kNotAFloat;
  AddResult result;
  std::string after;
  co_await job.update(kSortedSetMark, [&](std::optional<std::string_view> current) -> Change {
    const std::string_view set = current.value_or("");
    NamedMembers members(pairs.subspan(1), 2);
    members.locate(set);
    result = {};
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (const char* const wrong = add(members[pairs[2 * i + 1]], scores[i], options, result))
        return job.fail(wrong);
    if (result.added + result.updated == 0) return {};
    members.write(set, after);
    return after.size() <= kMaxArgumentBytes ? put(after) : job.fail(kSetTooLarge);
  });
  if (!options.increments)
    co_return reply.integer(result.added + (options.counts_changes ? result.updated : 0));
  co_return result.score ? reply.real(*result.score) : reply.null();
}

Task zrem(Job& job, Reply& reply) {
  std::string after;
  std::size_t removed = 0;
  co_await job.update(kSortedSetMark, [&](std::optional<std::string_view> current) -> Change {
    NamedMembers members(std::span<const std::string_view>(job.arguments).subspan(2), 1);
    members.locate(current.value_or(""));
    removed = members.remove();
    if (removed == 0) return {};
    members.write(*current, after);
    return after.size() == kMarkBytes ? kErase : put(after);
  });
  co_return reply.integer(static_cast<std::int64_t>(removed));
}

// --- ZSCORE, ZCARD -------------------------------------------------------------------------------

Task zscore(Job& job, Reply& reply) {
  const auto set = co_await job.read(kSortedSetMark);
  if (!set) co_return kWrongType;
  const auto member = SortedSet::find(*set, job.arguments[2]);
  co_return member ? reply.real(member->score) : reply.null();
}

Task zcard(Job& job, Reply& reply) {
  const auto set = co_await job.read(kSortedSetMark);
  if (!set) co_return kWrongType;
  co_return reply.integer(static_cast<std::int64_t>(SortedSet::count(*set)));
}

Task zmscore(Job& job, Reply& reply) {
  const auto set = co_await job.read(kSortedSetMark);
  if (!set) co_return kWrongType;
  const auto names = std::span<const std::string_view>(job.arguments).subspan(2);
  NamedMembers members(names, 1);
  members.locate(*set);
  reply.array(names.size());
  for (const std::string_view name : names) {
    if (members[name].is_there) {
      reply.real(members[name].score);
    } else {
      reply.null();
    }
  }
  co_return Replied{};
}

/// Returns all members at once, as Redis does with a small set.
Task zscan(Job& job, Reply& reply) {
  ElementScan words;
  if (const char* const wrong = parse_element_scan(job, words)) co_return wrong;
  if (words.names_only) co_return kSyntaxError;
  const auto set = co_await job.read(kSortedSetMark);
  if (!set) co_return kWrongType;
  std::string text;
  Reply elements(text, Protocol::resp2);  // scores are strings in each protocol
  std::size_t count = 0;
  SortedSet members(*set);
  while (const auto member = members.next()) {
    if (!words.is_first || !matches(words.pattern, member->name)) continue;
    elements.bulk(member->name);
    elements.real(member->score);
    count += 2;
  }
  co_return reply_scan("0", count, text, reply);
}

constexpr std::array kSortedSetCommands{Command{"zadd", -4, Shape::one_key, true, zadd},
                                        Command{"zincrby", 4, Shape::one_key, true, zadd},
                                        Command{"zrem", -3, Shape::one_key, true, zrem},
                                        Command{"zscore", 3, Shape::one_key, false, zscore},
                                        Command{"zcard", 2, Shape::one_key, false, zcard},
                                        Command{"zmscore", -3, Shape::one_key, false, zmscore},
                                        Command{"zscan", -3, Shape::one_key, false, zscan}};

}  // namespace

std::span<const Command> sorted_set_commands() noexcept { return kSortedSetCommands; }

}  // namespace dunlin::app::resp
