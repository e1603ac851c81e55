#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/session.hpp"
#include "store/time_to_live.hpp"

/// Commands on keys, whatever their type.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

const char* begin_read(Job& job) {
  job.order.kind = Order::Kind::get;
  return nullptr;
}

// --- DEL, EXISTS ---------------------------------------------------------------------------------

const char* begin_erase(Job& job) {
  job.order.kind = Order::Kind::erase;
  return nullptr;
}

bool count_if_found(Job& job, Reply&) {
  job.session->tally.number += job.call->found() ? 1 : 0;
  return true;
}

bool conclude_tally(Job& job, Reply& reply) {
  const Session::Tally& tally = job.session->tally;
  if (tally.ending == Ending::ok) {
    reply.integer(tally.number);
  } else {
    reply.error(describe(tally.ending));
  }
  return true;
}

std::string_view type_of(const Call& call) noexcept {
  if (!call.found()) return "none";
  if (call.value().starts_with(kHashMark)) return "hash";
  return call.value().starts_with(kSortedSetMark) ? "zset" : "string";
}

bool conclude_type(Job& job, Reply& reply) {
  reply.simple(type_of(*job.call));
  return true;
}

// --- time to live --------------------------------------------------------------------------------

constexpr std::int64_t kNoKey = -2;
constexpr std::int64_t kNoTtl = -1;

std::int64_t ttl_ms(const Call& call) noexcept {
  if (!call.found()) return kNoKey;
  if (call.ttl_ns() == kForeverNs) return kNoTtl;
  return static_cast<std::int64_t>((call.ttl_ns() + kNsPerMs - 1) / kNsPerMs);
}

bool conclude_pttl(Job& job, Reply& reply) {
  reply.integer(ttl_ms(*job.call));
  return true;
}

bool conclude_ttl(Job& job, Reply& reply) {
  const std::int64_t ms = ttl_ms(*job.call);
  reply.integer(ms < 0 ? ms : (ms + 500) / 1000);
  return true;
}

// The steps of EXPIRE and PERSIST: 0, which reads, and this one.
constexpr std::uint32_t kSets = 1;

/// The last step of EXPIRE and PERSIST.
void set_ttl(Job& job) noexcept {
  job.step = kSets;
  job.order.kind = job.order.ttl_ns == 0 ? Order::Kind::erase : Order::Kind::expire;
}

const char* begin_expire_in(Job& job, const char* unit, const char* invalid) {
  std::int64_t ms = 0;
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[2], number)) return kNotAnInteger;
  if (!parse_time(job.arguments[2], *find_time_unit(unit), *job.session, ms)) return invalid;
  job.order.ttl_ns = ms <= 0 ? 0 : static_cast<std::uint64_t>(ms) * kNsPerMs;
  if (job.arguments.size() == 3) {
    set_ttl(job);
    return nullptr;
  }
  constexpr std::array<std::string_view, 4> kWords{"nx", "xx", "gt", "lt"};
  const bool known = std::ranges::any_of(
      kWords, [&](std::string_view word) { return is_word(job.arguments[3], word); });
  if (!known || job.arguments.size() > 4) return "ERR Unsupported option";
  job.order.kind = Order::Kind::get;
  return nullptr;
}

const char* begin_expire(Job& job) {
  return begin_expire_in(job, "ex", "ERR invalid expire time in 'expire' command");
}
const char* begin_pexpire(Job& job) {
  return begin_expire_in(job, "px", "ERR invalid expire time in 'pexpire' command");
}
const char* begin_expireat(Job& job) {
  return begin_expire_in(job, "exat", "ERR invalid expire time in 'expireat' command");
}
const char* begin_pexpireat(Job& job) {
  return begin_expire_in(job, "pxat", "ERR invalid expire time in 'pexpireat' command");
}

/// Whether the condition holds for a key that lives so long.
bool may_set(std::string_view condition, std::uint64_t now_ns, std::uint64_t then_ns) noexcept {
  if (is_word(condition, "nx")) return now_ns == kForeverNs;
  if (is_word(condition, "xx")) return now_ns != kForeverNs;
  if (is_word(condition, "gt")) return then_ns > now_ns;  // forever is longest
  return then_ns < now_ns;
}

bool conclude_expire(Job& job, Reply& reply) {
  if (job.step == kSets) {
    reply.integer(job.call->found() ? 1 : 0);
    return true;
  }
  const Call& call = *job.call;
  if (!call.found() || !may_set(job.arguments[3], call.ttl_ns(), job.order.ttl_ns)) {
    reply.integer(0);
    return true;
  }
  set_ttl(job);
  return false;
}

bool conclude_persist(Job& job, Reply& reply) {
  const Call& call = *job.call;
  if (job.step == kSets || !call.found() || call.ttl_ns() == kForeverNs) {
    reply.integer(job.step == kSets && call.found() ? 1 : 0);
    return true;
  }
  job.order.ttl_ns = kForeverNs;
  set_ttl(job);
  return false;
}

// --- all keys ------------------------------------------------------------------------------------

const char* begin_count(Job& job) {
  job.order.kind = Order::Kind::count;
  return nullptr;
}

bool conclude_dbsize(Job& job, Reply& reply) {
  reply.integer(static_cast<std::int64_t>(job.call->keys()));
  return true;
}

struct ScanWords {
  std::string_view pattern = "*";
  std::int64_t count = 10;
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
      return "ERR SCAN has no TYPE here: ask each key for its TYPE";
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
  const std::string_view text = job.arguments[1];
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size())
    return "ERR invalid cursor";
  job.order.kind = Order::Kind::scan;
  job.order.cursor = cursor;
  return nullptr;
}

/// As many steps as find COUNT keys, and not more than the limits: MATCH may leave out many keys,
/// and a member that is empty, or has failed, takes a step without any.
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
  const std::size_t entries = call.ending() == Ending::lost ? 0 : call.entries();
  for (std::size_t i = 0; i < entries; ++i) {
    if (!matches(words.pattern, call.entry_key(i))) continue;
    keys.bulk(call.entry_key(i));
    ++job.number;
  }
  if (call.cursor() != 0 && job.number < words.count && may_go_on(job, words, entries)) {
    job.order.cursor = call.cursor();
    return false;
  }
  reply.array(2);
  reply.bulk(fmt::format("{}", call.cursor()));
  reply.array(static_cast<std::size_t>(job.number));
  reply.raw(job.scratch);
  return true;
}

constexpr Command kErasePart{.name = "",
                             .arity = -2,
                             .shape = Shape::one_key,
                             .changes = true,
                             .begin = begin_erase,
                             .conclude = count_if_found,
                             .is_silent_part = true};
constexpr Command kExistsPart{.name = "",
                              .arity = -2,
                              .shape = Shape::one_key,
                              .changes = false,
                              .begin = begin_read,
                              .conclude = count_if_found,
                              .is_silent_part = true};

constexpr Command of_each_key(std::string_view name, const Command& part) {
  return {.name = name,
          .arity = -2,
          .shape = Shape::each_key,
          .changes = part.changes,
          .conclude = conclude_tally,
          .part = &part};
}

constexpr std::array kKeyCommands{
    of_each_key("del", kErasePart),
    of_each_key("unlink", kErasePart),
    of_each_key("exists", kExistsPart),
    of_each_key("touch", kExistsPart),
    Command{"type", 2, Shape::one_key, false, begin_read, conclude_type},
    Command{"ttl", 2, Shape::one_key, false, begin_read, conclude_ttl},
    Command{"pttl", 2, Shape::one_key, false, begin_read, conclude_pttl},
    Command{"expire", -3, Shape::one_key, true, begin_expire, conclude_expire, true},
    Command{"pexpire", -3, Shape::one_key, true, begin_pexpire, conclude_expire, true},
    Command{"expireat", -3, Shape::one_key, true, begin_expireat, conclude_expire, true},
    Command{"pexpireat", -3, Shape::one_key, true, begin_pexpireat, conclude_expire, true},
    Command{"persist", 2, Shape::one_key, true, begin_read, conclude_persist, true},
    Command{"dbsize", 1, Shape::all_keys, false, begin_count, conclude_dbsize},
    Command{"scan", -2, Shape::all_keys, false, begin_scan, conclude_scan, true}};

}  // namespace

std::span<const Command> key_commands() noexcept { return kKeyCommands; }

}  // namespace dunlin::app::resp
