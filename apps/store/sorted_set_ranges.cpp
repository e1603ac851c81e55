#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "store/command_table.hpp"
#include "store/session.hpp"
#include "store/sorted_set.hpp"

/// Commands on the members of a sorted set that lie in a range of ranks or scores.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

struct Bound {
  double score = 0;
  bool excluded = false;
};

/// Parses as Redis does: by strtod, up to a zero byte.
bool parse_bound(std::string_view text, Bound& bound) {
  bound.excluded = text.starts_with('(');
  const std::string copy(text.substr(bound.excluded ? 1 : 0));
  char* end = nullptr;
  bound.score = std::strtod(copy.c_str(), &end);
  return *end == '\0' && !std::isnan(bound.score);
}

/// What the words of a command say. Ranks and offsets are counted from the highest score if it goes
/// backwards.
struct Range {
  bool by_score = false;
  bool backwards = false;
  bool with_scores = false;
  bool has_limit = false;
  std::int64_t offset = 0;
  std::int64_t limit = -1;  // negative: none
  std::int64_t first = 0;   // ranks
  std::int64_t last = 0;
  Bound least;
  Bound most;

  [[nodiscard]] bool is_below(double score) const noexcept {
    return least.excluded ? !(score > least.score) : !(score >= least.score);
  }
  [[nodiscard]] bool is_above(double score) const noexcept {
    return most.excluded ? !(score < most.score) : !(score <= most.score);
  }
};

/// Members next to each other: the place of the first, and how many they are.
struct Found {
  SortedSet first;
  std::size_t before = 0;  // members of the set before them
  std::size_t count = 0;
};

Found find_scores(std::string_view set, const Range& range) noexcept {
  Found found{.first = SortedSet(set)};
  SortedSet at = found.first;
  auto member = at.next();
  for (; member && range.is_below(member->score); member = at.next(), ++found.before)
    found.first = at;
  for (; member && !range.is_above(member->score); member = at.next()) ++found.count;
  return found;
}

Found find_ranks(std::string_view set, const Range& range) noexcept {
  Found found{.first = SortedSet(set)};
  const auto size = static_cast<std::int64_t>(SortedSet::count(set));
  std::int64_t first =
      range.first < 0 ? std::max<std::int64_t>(range.first + size, 0) : range.first;
  std::int64_t last = std::min(range.last < 0 ? range.last + size : range.last, size - 1);
  if (first > last) return found;
  if (range.backwards) {
    std::swap(first, last);
    first = size - 1 - first;
    last = size - 1 - last;
  }
  found.before = static_cast<std::size_t>(first);
  found.count = static_cast<std::size_t>(last - first + 1);
  for (std::int64_t i = 0; i < first; ++i) static_cast<void>(found.first.next());
  return found;
}

Found find(std::string_view set, const Range& range) noexcept {
  if (!range.by_score) return find_ranks(set, range);
  Found found = find_scores(set, range);
  // Redis passes over as many as there are if the offset is negative.
  const std::size_t skipped = range.offset < 0
                                  ? found.count
                                  : std::min(found.count, static_cast<std::size_t>(range.offset));
  std::size_t count = found.count - skipped;
  if (range.limit >= 0) count = std::min(count, static_cast<std::size_t>(range.limit));
  const std::size_t passed = range.backwards ? found.count - skipped - count : skipped;
  for (std::size_t i = 0; i < passed; ++i) static_cast<void>(found.first.next());
  found.before += passed;
  found.count = count;
  return found;
}

// --- the words -----------------------------------------------------------------------------------

const char* parse_bounds(const Job& job, Range& range) {
  const auto& words = job.arguments;
  if (!range.by_score)
    return parse_integer(words[2], range.first) && parse_integer(words[3], range.last)
               ? nullptr
               : kNotAnInteger;
  const std::size_t least = range.backwards ? 3 : 2;  // a range that goes backwards says so, too
  if (parse_bound(words[least], range.least) && parse_bound(words[5 - least], range.most))
    return nullptr;
  return "ERR min or max is not a float";
}

/// The words behind the bounds; `is_general` is for ZRANGE, which has more of them.
const char* parse_options(const Job& job, bool is_general, Range& range) noexcept {
  const auto& words = job.arguments;
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (is_word(words[i], "withscores")) {
      range.with_scores = true;
    } else if (is_word(words[i], "limit") && i + 2 < words.size()) {
      if (!parse_integer(words[i + 1], range.offset) || !parse_integer(words[i + 2], range.limit))
        return kNotAnInteger;
      range.has_limit = true;
      i += 2;
    } else if (is_general && is_word(words[i], "byscore")) {
      range.by_score = true;
    } else if (is_general && is_word(words[i], "rev")) {
      range.backwards = true;
    } else {
      return kSyntaxError;
    }
  }
  if (range.has_limit && !range.by_score)
    return "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
  return nullptr;
}

/// Reads the arguments of ZRANGE and of its older forms, whose names say what ZRANGE has words for.
const char* parse_range(const Job& job, Range& range) {
  const std::string_view name = job.arguments[0];
  range.by_score = is_word(name, "zrangebyscore") || is_word(name, "zrevrangebyscore");
  range.backwards = is_word(name, "zrevrange") || is_word(name, "zrevrangebyscore");
  if (const char* const wrong = parse_options(job, is_word(name, "zrange"), range)) return wrong;
  return parse_bounds(job, range);
}

/// Reads the arguments of ZCOUNT and ZREMRANGEBY..., which have no further words.
const char* parse_plain_range(const Job& job, Range& range) {
  range.by_score = !is_word(job.arguments[0], "zremrangebyrank");
  return parse_bounds(job, range);
}

// --- ZRANGE and its older forms ------------------------------------------------------------------

Replied reply_members(Found found, const Range& range, Reply& reply) {
  const bool in_pairs = range.with_scores && reply.protocol() == Protocol::resp3;
  reply.array(range.with_scores && !in_pairs ? found.count * 2 : found.count);
  std::vector<SortedSet::Member> members;
  members.reserve(found.count);
  for (std::size_t i = 0; i < found.count; ++i) members.push_back(found.first.next().value());
  if (range.backwards) std::ranges::reverse(members);
  for (const SortedSet::Member& member : members) {
    if (in_pairs) reply.array(2);
    reply.bulk(member.name);
    if (range.with_scores) reply.real(member.score);
  }
  return {};
}

Task zrange(Job& job, Reply& reply) {
  Range range;
  if (const char* const wrong = parse_range(job, range)) co_return wrong;
  const auto set = co_await job.read(kSortedSetMark);
  if (!set) co_return kWrongType;
  co_return reply_members(find(*set, range), range, reply);
}

// --- ZCOUNT, ZREMRANGEBYSCORE, ZREMRANGEBYRANK ---------------------------------------------------

Task zcount(Job& job, Reply& reply) {
  Range range;
  if (const char* const wrong = parse_plain_range(job, range)) co_return wrong;
  const auto set = co_await job.read(kSortedSetMark);
  if (!set) co_return kWrongType;
  co_return reply.integer(static_cast<std::int64_t>(find(*set, range).count));
}

Task zremrange(Job& job, Reply& reply) {
  Range range;
  if (const char* const wrong = parse_plain_range(job, range)) co_return wrong;
  std::string after;
  std::size_t removed = 0;
  co_await job.update(kSortedSetMark, [&](std::optional<std::string_view> current) -> Change {
    const std::string_view set = current.value_or("");
    const Found found = find(set, range);
    removed = found.count;
    if (removed == 0) return {};
    after.assign(kSortedSetMark);
    SortedSet members(set);
    std::size_t rank = 0;
    for (auto member = members.next(); member; member = members.next(), ++rank)
      if (rank < found.before || rank >= found.before + removed) after += member->bytes;
    return after.size() == kMarkBytes ? kErase : put(after);
  });
  co_return reply.integer(static_cast<std::int64_t>(removed));
}

// --- ZRANK, ZREVRANK -----------------------------------------------------------------------------

Task zrank(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  if (words.size() > 4 || (words.size() == 4 && !is_word(words[3], "withscore")))
    co_return kSyntaxError;
  const bool with_score = words.size() == 4;
  const auto set = co_await job.read(kSortedSetMark);
  if (!set) co_return kWrongType;
  SortedSet members(*set);
  std::int64_t rank = 0;
  auto member = members.next();
  for (; member && member->name != words[2]; member = members.next()) ++rank;
  if (!member) co_return with_score ? reply.null_array() : reply.null();
  if (is_word(words[0], "zrevrank"))
    rank = static_cast<std::int64_t>(SortedSet::count(*set)) - 1 - rank;
  if (with_score) reply.array(2);
  reply.integer(rank);
  if (with_score) reply.real(member->score);
  co_return Replied{};
}

constexpr std::array kRangeCommands{Command{"zrange", -4, Shape::one_key, false, zrange},
                                    Command{"zrevrange", -4, Shape::one_key, false, zrange},
                                    Command{"zrangebyscore", -4, Shape::one_key, false, zrange},
                                    Command{"zrevrangebyscore", -4, Shape::one_key, false, zrange},
                                    Command{"zcount", 4, Shape::one_key, false, zcount},
                                    Command{"zremrangebyscore", 4, Shape::one_key, true, zremrange},
                                    Command{"zremrangebyrank", 4, Shape::one_key, true, zremrange},
                                    Command{"zrank", -3, Shape::one_key, false, zrank},
                                    Command{"zrevrank", -3, Shape::one_key, false, zrank}};

}  // namespace

std::span<const Command> sorted_set_range_commands() noexcept { return kRangeCommands; }

}  // namespace dunlin::app::resp
