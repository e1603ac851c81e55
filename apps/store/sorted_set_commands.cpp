#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>

#include "store/command_table.hpp"
#include "store/element_scan.hpp"
#include "store/real_number.hpp"
#include "store/session.hpp"
#include "store/sorted_set.hpp"
#include "store/typed_value.hpp"

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

AddOptions parse_add_options(const Job& job) noexcept {
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

/// ZINCRBY is ZADD with INCR.
AddOptions options_of(const Job& job) noexcept {
  if (is_word(job.arguments[0], "zincrby")) return {.increments = true};
  return parse_add_options(job);
}

/// What the command does to one member, as Redis counts it.
struct AddCounts {
  std::int64_t added = 0;
  std::int64_t updated = 0;
};

/// Returns an error, or null.
const char* add(NamedMembers::Named& named, double score, const AddOptions& options,
                AddCounts& counts, bool& was_done) noexcept {
  was_done = false;
  if (!named.is_there) {
    if (options.only_there) return nullptr;
    ++counts.added;
  } else {
    if (options.only_new) return nullptr;
    if (options.increments) score += named.score;
    if (std::isnan(score)) return "ERR resulting score is not a number (NaN)";
    if (options.only_less && score >= named.score) return nullptr;
    if (options.only_greater && score <= named.score) return nullptr;
    was_done = true;
    if (score == named.score) return nullptr;
    ++counts.updated;
  }
  named.score = score;
  named.is_there = named.changed = was_done = true;
  return nullptr;
}

Change decide_zadd(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  if (refuses(job, current, kSortedSetMark)) return {};
  const AddOptions options = options_of(job);
  const auto pairs = std::span<const std::string_view>(job.arguments).subspan(options.first);
  NamedMembers members(pairs.subspan(1), 2);
  members.locate(current.value_or(std::string_view()));
  AddCounts counts;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    double score = 0;
    static_cast<void>(parse_score(pairs[i], score));  // the beginning has looked
    NamedMembers::Named& named = members[pairs[i + 1]];
    job.error = add(named, score, options, counts, job.flag);
    if (job.error != nullptr) return {};
    if (options.increments) job.number = std::bit_cast<std::int64_t>(named.score);
  }
  if (!options.increments)
    job.number = counts.added + (options.counts_changes ? counts.updated : 0);
  if (counts.added + counts.updated == 0) return {};
  members.write(current.value_or(std::string_view()), job.scratch);
  if (job.scratch.size() <= kMaxArgumentBytes)
    return {.action = Change::Action::put, .value = job.scratch};
  return job.fail(kSetTooLarge);
}

const char* begin_zadd(Job& job) {
  const AddOptions options = parse_add_options(job);
  const std::size_t words = job.arguments.size() - options.first;
  if (words == 0 || words % 2 != 0) return kSyntaxError;
  if (options.only_new && options.only_there)
    return "ERR XX and NX options at the same time are not compatible";
  if (options.only_new + options.only_greater + options.only_less > 1)
    return "ERR GT, LT, and/or NX options at the same time are not compatible";
  if (options.increments && words > 2)
    return "ERR INCR option supports a single increment-element pair";
  double score = 0;
  for (std::size_t i = options.first; i < job.arguments.size(); i += 2)
    if (!parse_score(job.arguments[i], score)) return kNotAFloat;
  return begin_update(job, decide_zadd);
}

const char* begin_zincrby(Job& job) {
  double score = 0;
  if (!parse_score(job.arguments[2], score)) return kNotAFloat;
  return begin_update(job, decide_zadd);
}

bool conclude_zadd(Job& job, Reply& reply) {
  if (!options_of(job).increments) return reply.integer(job.number);
  if (job.flag) return reply.real(std::bit_cast<double>(job.number));
  return reply.null();
}

Change decide_zrem(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  job.number = 0;
  if (refuses(job, current, kSortedSetMark) || !current) return {};
  NamedMembers members(std::span<const std::string_view>(job.arguments).subspan(2), 1);
  members.locate(*current);
  job.number = static_cast<std::int64_t>(members.remove());
  if (job.number == 0) return {};
  members.write(*current, job.scratch);
  if (job.scratch.size() == kMarkBytes) return {.action = Change::Action::erase};
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_zrem(Job& job) { return begin_update(job, decide_zrem); }

// --- ZSCORE, ZCARD -------------------------------------------------------------------------------

bool conclude_zscore(Job& job, Reply& reply) {
  const auto set = value_of(*job.call, kSortedSetMark, reply);
  if (!set) return true;
  if (const auto member = SortedSet::find(*set, job.arguments[2])) return reply.real(member->score);
  return reply.null();
}

bool conclude_zcard(Job& job, Reply& reply) {
  if (const auto set = value_of(*job.call, kSortedSetMark, reply))
    reply.integer(static_cast<std::int64_t>(SortedSet::count(*set)));
  return true;
}

bool conclude_zmscore(Job& job, Reply& reply) {
  const auto set = value_of(*job.call, kSortedSetMark, reply);
  if (!set) return true;
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
  return true;
}

const char* begin_zscan(Job& job) {
  ElementScan words;
  if (const char* const wrong = parse_element_scan(job, words)) return wrong;
  return words.names_only ? kSyntaxError : begin_read(job);
}

/// Returns all members at once, as Redis does with a small set.
bool conclude_zscan(Job& job, Reply& reply) {
  const auto set = value_of(*job.call, kSortedSetMark, reply);
  if (!set) return true;
  ElementScan words;
  static_cast<void>(parse_element_scan(job, words));  // the beginning has looked
  Reply elements(job.scratch, Protocol::resp2);       // scores are strings in each protocol
  std::size_t count = 0;
  SortedSet members(*set);
  while (const auto member = members.next()) {
    if (!words.is_first || !matches(words.pattern, member->name)) continue;
    elements.bulk(member->name);
    elements.real(member->score);
    count += 2;
  }
  reply.array(2);
  reply.bulk("0");
  reply.array(count);
  return reply.raw(job.scratch);
}

constexpr std::array kSortedSetCommands{
    Command{"zadd", -4, Shape::one_key, true, begin_zadd, conclude_zadd},
    Command{"zincrby", 4, Shape::one_key, true, begin_zincrby, conclude_zadd},
    Command{"zrem", -3, Shape::one_key, true, begin_zrem, conclude_number},
    Command{"zscore", 3, Shape::one_key, false, begin_read, conclude_zscore},
    Command{"zcard", 2, Shape::one_key, false, begin_read, conclude_zcard},
    Command{"zmscore", -3, Shape::one_key, false, begin_read, conclude_zmscore},
    Command{"zscan", -3, Shape::one_key, false, begin_zscan, conclude_zscan}};

}  // namespace

std::span<const Command> sorted_set_commands() noexcept { return kSortedSetCommands; }

}  // namespace dunlin::app::resp
