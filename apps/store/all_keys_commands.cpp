#include <algorithm>
#include <array>
#include <random>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/element_scan.hpp"
#include "store/session.hpp"

/// Commands on all keys of the store. A member that has failed is passed over.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

const char* begin_count(Job& job) {
  job.order.kind = Order::Kind::count;
  return nullptr;
}

bool conclude_dbsize(Job& job, Reply& reply) {
  return reply.integer(static_cast<std::int64_t>(job.call->keys()));
}

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

const char* begin_scan(Job& job) {
  ScanWords words;
  if (const char* const wrong = parse_scan(job, words)) return wrong;
  std::uint64_t cursor = 0;
  if (!parse_cursor(job.arguments[1], cursor)) return "ERR invalid cursor";
  job.order.kind = Order::Kind::scan;
  job.order.cursor = cursor;
  job.order.with_values = words.type.has_value();
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
bool may_go_on(Job& job, const ScanWords& words, std::size_t entries) noexcept {
  if (entries == 0) return ++job.empty_steps < kMaxEmptyScanSteps;
  const auto wanted = static_cast<std::uint64_t>(words.count) / kKeysOfAScanStep + 1;
  return ++job.step < std::clamp<std::uint64_t>(wanted, kLeastScanSteps, kMaxScanSteps);
}

bool conclude_scan(Job& job, Reply& reply) {
  ScanWords words;
  static_cast<void>(parse_scan(job, words));  // begin_scan has looked
  const Call& call = *job.call;
  Reply keys(job.scratch, reply.protocol());
  for (std::size_t i = 0; i < entries_of(call); ++i) {
    if (!is_asked_for(words, call, i)) continue;
    keys.bulk(call.entry_key(i));
    ++job.number;
  }
  if (call.cursor() != 0 && job.number < words.count && may_go_on(job, words, entries_of(call))) {
    job.order.cursor = call.cursor();
    return false;
  }
  reply.array(2);
  reply.bulk(fmt::format("{}", call.cursor()));
  reply.array(static_cast<std::size_t>(job.number));
  return reply.raw(job.scratch);
}

// --- KEYS, RANDOMKEY -----------------------------------------------------------------------------

const char* begin_first_scan(Job& job) {
  job.order.kind = Order::Kind::scan;
  job.order.cursor = 0;
  return nullptr;
}

/// Orders the next step of a scan; returns false if there is none.
bool order_next_scan(Job& job) noexcept {
  job.order.cursor = job.call->cursor();
  return job.order.cursor != 0;
}

const char* begin_keys(Job& job) {
  if (job.arguments[1].size() > kMaxPatternBytes) return kPatternTooLong;
  return begin_first_scan(job);
}

bool conclude_keys(Job& job, Reply& reply) {
  const Call& call = *job.call;
  Reply keys(job.scratch, reply.protocol());
  for (std::size_t i = 0; i < entries_of(call); ++i) {
    if (!matches(job.arguments[1], call.entry_key(i))) continue;
    keys.bulk(call.entry_key(i));
    ++job.number;
  }
  if (job.scratch.size() > kMaxReplyBytes)
    return reply.error(
        "ERR the keys would be over 8388608 bytes, which is the limit of a reply: use SCAN");
  static_assert(kMaxReplyBytes == 8388608, "as this error says");
  if (order_next_scan(job)) return false;
  reply.array(static_cast<std::size_t>(job.number));
  return reply.raw(job.scratch);
}

/// Chooses one of all keys with equal probability (A. Waterman's reservoir).
bool conclude_randomkey(Job& job, Reply& reply) {
  static std::minstd_rand random{std::random_device{}()};
  const Call& call = *job.call;
  for (std::size_t i = 0; i < entries_of(call); ++i)
    if (std::uniform_int_distribution<std::int64_t>(0, job.number++)(random) == 0)
      job.scratch.assign(call.entry_key(i));
  if (order_next_scan(job)) return false;
  if (job.number == 0) return reply.null();
  return reply.bulk(job.scratch);
}

// --- FLUSHDB, FLUSHALL ---------------------------------------------------------------------------

const char* begin_flush(Job& job) {
  const auto& words = job.arguments;
  const bool has_mode =
      words.size() == 2 && (is_word(words[1], "sync") || is_word(words[1], "async"));
  return words.size() == 1 || has_mode ? begin_first_scan(job) : kSyntaxError;
}

/// Each step finds keys, or erases one of those that were found.
bool conclude_flush(Job& job, Reply& reply) {
  if (job.order.kind == Order::Kind::scan) {
    const Call& call = *job.call;
    for (std::size_t i = 0; i < entries_of(call); ++i) job.found.emplace_back(call.entry_key(i));
    job.order.cursor = call.cursor();
  } else {
    job.found.pop_back();
  }
  if (!job.found.empty()) {
    job.order.kind = Order::Kind::erase;
    job.order.key = job.found.back();
    return false;
  }
  if (job.order.cursor != 0) {
    job.order.kind = Order::Kind::scan;
    return false;
  }
  return reply.ok();
}

constexpr std::array kAllKeysCommands{
    Command{"dbsize", 1, Shape::all_keys, false, nullptr, begin_count, conclude_dbsize},
    Command{"scan", -2, Shape::all_keys, false, nullptr, begin_scan, conclude_scan, true},
    Command{"keys", 2, Shape::all_keys, false, nullptr, begin_keys, conclude_keys, true},
    Command{"randomkey", 1, Shape::all_keys, false, nullptr, begin_first_scan, conclude_randomkey,
            true},
    Command{"flushdb", -1, Shape::all_keys, true, nullptr, begin_flush, conclude_flush, true},
    Command{"flushall", -1, Shape::all_keys, true, nullptr, begin_flush, conclude_flush, true}};

}  // namespace

std::span<const Command> all_keys_commands() noexcept { return kAllKeysCommands; }

}  // namespace dunlin::app::resp
