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
#include "store/session.hpp"
#include "store/sorted_set.hpp"

/// Commands on sorted sets, each of which is one value of the store.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

constexpr const char* kNotAFloat = "ERR value is not a valid float";
constexpr const char* kNotABound = "ERR min or max is not a float";
constexpr const char* kSetTooLarge =
    "ERR the sorted set would be over 1048576 bytes, which is the limit of a value";
static_assert(kMaxArgumentBytes == 1048576, "as kSetTooLarge says");

bool is_sorted_set(std::string_view value) noexcept { return value.starts_with(kSortedSetMark); }

const char* begin_read_set(Job& job) {
  job.order.kind = Order::Kind::get;
  return nullptr;
}

const char* begin_update_set(Job& job, Order::Decide decide) {
  job.order.kind = Order::Kind::update;
  job.order.decide = decide;
  job.order.context = &job;
  return nullptr;
}

/// The value of the set, which is empty if there is none; nothing, and an error, if the key has
/// another type.
std::optional<std::string_view> set_of(const Call& call, Reply& reply) {
  if (!call.found()) return std::string_view();
  if (is_sorted_set(call.value())) return call.value();
  reply.error(kWrongType);
  return {};
}

/// As Redis takes it: what strtod does, without blanks before it.
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
  job.error = nullptr;
  if (current && !is_sorted_set(*current)) {
    job.error = kWrongType;
    return {};
  }
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
  job.error = kSetTooLarge;
  return {};
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
  return begin_update_set(job, decide_zadd);
}

const char* begin_zincrby(Job& job) {
  double score = 0;
  if (!parse_score(job.arguments[2], score)) return kNotAFloat;
  return begin_update_set(job, decide_zadd);
}

bool conclude_zadd(Job& job, Reply& reply) {
  if (!options_of(job).increments) {
    reply.integer(job.number);
  } else if (job.flag) {
    reply.real(std::bit_cast<double>(job.number));
  } else {
    reply.null();
  }
  return true;
}

Change decide_zrem(void* context, std::optional<std::string_view> current) {
  Job& job = *static_cast<Job*>(context);
  job.error = nullptr;
  job.number = 0;
  if (!current) return {};
  if (!is_sorted_set(*current)) {
    job.error = kWrongType;
    return {};
  }
  NamedMembers members(std::span<const std::string_view>(job.arguments).subspan(2), 1);
  members.locate(*current);
  job.number = static_cast<std::int64_t>(members.remove());
  if (job.number == 0) return {};
  members.write(*current, job.scratch);
  if (job.scratch.size() == kMarkBytes) return {.action = Change::Action::erase};
  return {.action = Change::Action::put, .value = job.scratch};
}

const char* begin_zrem(Job& job) { return begin_update_set(job, decide_zrem); }

bool conclude_zrem(Job& job, Reply& reply) {
  reply.integer(job.number);
  return true;
}

// --- ZSCORE, ZCARD -------------------------------------------------------------------------------

bool conclude_zscore(Job& job, Reply& reply) {
  const auto set = set_of(*job.call, reply);
  if (!set) return true;
  if (const auto member = SortedSet::find(*set, job.arguments[2])) {
    reply.real(member->score);
  } else {
    reply.null();
  }
  return true;
}

bool conclude_zcard(Job& job, Reply& reply) {
  if (const auto set = set_of(*job.call, reply))
    reply.integer(static_cast<std::int64_t>(SortedSet::count(*set)));
  return true;
}

// --- ranges --------------------------------------------------------------------------------------

struct Bound {
  double score = 0;
  bool excluded = false;
};

/// As Redis takes it: what strtod does, up to a zero byte.
bool parse_bound(std::string_view text, Bound& bound) {
  bound.excluded = text.starts_with('(');
  const std::string copy(text.substr(bound.excluded ? 1 : 0));
  char* end = nullptr;
  bound.score = std::strtod(copy.c_str(), &end);
  return *end == '\0' && !std::isnan(bound.score);
}

struct Range {
  Bound least;
  Bound most;
  std::int64_t offset = 0;
  std::int64_t limit = -1;  // negative: none
  bool with_scores = false;

  [[nodiscard]] bool is_below(double score) const noexcept {
    return least.excluded ? !(score > least.score) : !(score >= least.score);
  }
  [[nodiscard]] bool is_above(double score) const noexcept {
    return most.excluded ? !(score < most.score) : !(score <= most.score);
  }
};

/// The words behind the bounds. Returns an error, or null.
const char* parse_range_options(const Job& job, Range& range) noexcept {
  for (std::size_t i = 4; i < job.arguments.size(); ++i) {
    const std::string_view word = job.arguments[i];
    if (is_word(word, "withscores")) {
      range.with_scores = true;
    } else if (is_word(word, "limit") && i + 2 < job.arguments.size()) {
      if (!parse_integer(job.arguments[i + 1], range.offset) ||
          !parse_integer(job.arguments[i + 2], range.limit))
        return kNotAnInteger;
      i += 2;
    } else {
      return kSyntaxError;
    }
  }
  return nullptr;
}

const char* parse_range(const Job& job, Range& range) {
  if (const char* const wrong = parse_range_options(job, range)) return wrong;
  if (parse_bound(job.arguments[2], range.least) && parse_bound(job.arguments[3], range.most))
    return nullptr;
  return kNotABound;
}

/// The members from the place `first`, up to `count` of them.
void reply_members(SortedSet first, std::size_t count, bool with_scores, Reply& reply) {
  const bool in_pairs = with_scores && reply.protocol() == Protocol::resp3;
  reply.array(with_scores && !in_pairs ? count * 2 : count);
  for (; count > 0; --count) {
    const SortedSet::Member member = first.next().value();
    if (in_pairs) reply.array(2);
    reply.bulk(member.name);
    if (with_scores) reply.real(member.score);
  }
}

/// The first member in the range, and how many there are.
std::pair<SortedSet, std::size_t> find_range(std::string_view set, const Range& range) noexcept {
  SortedSet first(set);
  SortedSet at = first;
  auto member = at.next();
  for (; member && range.is_below(member->score); member = at.next()) first = at;
  std::size_t count = 0;
  for (; member && !range.is_above(member->score); member = at.next()) ++count;
  return {first, count};
}

const char* begin_zrangebyscore(Job& job) {
  Range range;
  if (const char* const wrong = parse_range(job, range)) return wrong;
  return begin_read_set(job);
}

bool conclude_zrangebyscore(Job& job, Reply& reply) {
  const auto set = set_of(*job.call, reply);
  if (!set) return true;
  Range range;
  static_cast<void>(parse_range(job, range));  // the beginning has looked
  auto [first, count] = find_range(*set, range);
  // Redis passes over as many as there are if the offset is negative.
  const std::size_t skipped =
      range.offset < 0 ? count : std::min(count, static_cast<std::size_t>(range.offset));
  for (std::size_t i = 0; i < skipped; ++i) static_cast<void>(first.next());
  count -= skipped;
  if (range.limit >= 0) count = std::min(count, static_cast<std::size_t>(range.limit));
  reply_members(first, count, range.with_scores, reply);
  return true;
}

const char* begin_zcount(Job& job) {
  Range range;
  if (const char* const wrong = parse_range(job, range)) return wrong;
  return begin_read_set(job);
}

bool conclude_zcount(Job& job, Reply& reply) {
  const auto set = set_of(*job.call, reply);
  if (!set) return true;
  Range range;
  static_cast<void>(parse_range(job, range));  // the beginning has looked
  reply.integer(static_cast<std::int64_t>(find_range(*set, range).second));
  return true;
}

const char* begin_zrange(Job& job) {
  std::int64_t number = 0;
  for (std::size_t i = 4; i < job.arguments.size(); ++i)
    if (!is_word(job.arguments[i], "withscores")) return kSyntaxError;
  if (!parse_integer(job.arguments[2], number) || !parse_integer(job.arguments[3], number))
    return kNotAnInteger;
  return begin_read_set(job);
}

bool conclude_zrange(Job& job, Reply& reply) {
  const auto set = set_of(*job.call, reply);
  if (!set) return true;
  const auto size = static_cast<std::int64_t>(SortedSet::count(*set));
  std::int64_t from = 0;
  std::int64_t to = 0;
  static_cast<void>(parse_integer(job.arguments[2], from));  // the beginning has looked
  static_cast<void>(parse_integer(job.arguments[3], to));
  if (from < 0) from = std::max<std::int64_t>(from + size, 0);
  if (to < 0) to += size;
  to = std::min(to, size - 1);
  SortedSet first(*set);
  for (std::int64_t i = 0; i < from && i < size; ++i) static_cast<void>(first.next());
  const std::size_t count = from > to ? 0 : static_cast<std::size_t>(to - from + 1);
  reply_members(first, count, job.arguments.size() > 4, reply);
  return true;
}

constexpr std::array kSortedSetCommands{
    Command{"zadd", -4, Shape::one_key, true, begin_zadd, conclude_zadd},
    Command{"zincrby", 4, Shape::one_key, true, begin_zincrby, conclude_zadd},
    Command{"zrem", -3, Shape::one_key, true, begin_zrem, conclude_zrem},
    Command{"zscore", 3, Shape::one_key, false, begin_read_set, conclude_zscore},
    Command{"zcard", 2, Shape::one_key, false, begin_read_set, conclude_zcard},
    Command{"zcount", 4, Shape::one_key, false, begin_zcount, conclude_zcount},
    Command{"zrange", -4, Shape::one_key, false, begin_zrange, conclude_zrange},
    Command{"zrangebyscore", -4, Shape::one_key, false, begin_zrangebyscore,
            conclude_zrangebyscore}};

}  // namespace

std::span<const Command> sorted_set_commands() noexcept { return kSortedSetCommands; }

}  // namespace dunlin::app::resp
