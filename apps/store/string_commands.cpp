#include <algorithm>
#include <array>

#include "store/command_table.hpp"
#include "store/session.hpp"
#include "store/string_value.hpp"
#include "store/time_to_live.hpp"

/// Commands on strings.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

/// Writes an error and returns true unless it is a string, or absent.
bool is_wrong_type(std::string_view value, Reply& reply) {
  if (!has_mark(value)) return false;
  return reply.error(kWrongType);
}

// --- GET, and what reads -------------------------------------------------------------------------

bool conclude_get(Job& job, Reply& reply) {
  const Call& call = *job.call;
  if (!call.found()) return reply.null();
  return is_wrong_type(call.value(), reply) || reply.bulk(call.value());
}

/// An element of MGET: of a key that has no string, Redis says that it is absent.
bool conclude_mget_part(Job& job, Reply& reply) {
  const Call& call = *job.call;
  return call.found() && !has_mark(call.value()) ? reply.bulk(call.value()) : reply.null();
}

bool conclude_strlen(Job& job, Reply& reply) {
  const Call& call = *job.call;
  if (!call.found()) return reply.integer(0);
  return is_wrong_type(call.value(), reply) ||
         reply.integer(static_cast<std::int64_t>(call.value().size()));
}

const char* begin_getrange(Job& job) {
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[2], number) || !parse_integer(job.arguments[3], number))
    return kNotAnInteger;
  return nullptr;
}

bool conclude_getrange(Job& job, Reply& reply) {
  const std::string_view value = job.call->found() ? job.call->value() : std::string_view();
  if (is_wrong_type(value, reply)) return true;
  const auto bytes = static_cast<std::int64_t>(value.size());
  std::int64_t first = 0;
  std::int64_t last = 0;
  static_cast<void>(parse_integer(job.arguments[2], first));  // begin_getrange has looked
  static_cast<void>(parse_integer(job.arguments[3], last));
  if (first < 0) first = std::max<std::int64_t>(first + bytes, 0);
  if (last < 0) last += bytes;
  last = std::min(last, bytes - 1);
  return reply.bulk(first > last ? std::string_view()
                                 : value.substr(static_cast<std::size_t>(first),
                                                static_cast<std::size_t>(last - first + 1)));
}

// --- SET -----------------------------------------------------------------------------------------

bool conclude_ok_if_changed(Job& job, Reply& reply) {
  return job.call->changed() ? reply.ok() : reply.null();
}

bool conclude_one_if_changed(Job& job, Reply& reply) {
  return reply.integer(job.call->changed() ? 1 : 0);
}

// The conditions on which a SET changes its key.
constexpr std::uint32_t kAlways = 0;
constexpr std::uint32_t kIfAbsent = 1;
constexpr std::uint32_t kIfThere = 2;

struct SetOptions {
  std::uint32_t when = kAlways;
  bool get = false;
  std::uint64_t ttl_ns = kForeverNs;
};

const char* parse_set_options(const Job& job, SetOptions& options) {
  bool has_ttl = false;
  for (std::size_t i = 3; i < job.arguments.size(); ++i) {
    const std::string_view word = job.arguments[i];
    if (is_word(word, "nx") && options.when != kIfThere) {
      options.when = kIfAbsent;
    } else if (is_word(word, "xx") && options.when != kIfAbsent) {
      options.when = kIfThere;
    } else if (is_word(word, "get")) {
      options.get = true;
    } else if (is_word(word, "keepttl") && !has_ttl) {
      has_ttl = true;
      options.ttl_ns = kKeepTtl;
    } else if (const TimeUnit* const unit = find_time_unit(word);
               unit != nullptr && !has_ttl && i + 1 < job.arguments.size()) {
      has_ttl = true;
      const char* const wrong =
          parse_ttl(job.arguments[++i], *unit, *job.session,
                    "ERR invalid expire time in 'set' command", options.ttl_ns);
      if (wrong != nullptr) return wrong;
    } else {
      return kSyntaxError;
    }
  }
  return nullptr;
}

/// SET with GET.
Change decide_set(void* context, std::optional<std::string_view> current) {
  Job& job = job_of(context);
  if (refuses(job, current)) return {};
  const bool skip = (job.step == kIfAbsent && current) || (job.step == kIfThere && !current);
  if (skip) return {};
  return {.action = Change::Action::put, .value = job.arguments[2], .ttl_ns = job.order.ttl_ns};
}

const char* begin_set(Job& job) {
  SetOptions options;
  if (job.arguments.size() > 3)
    if (const char* const wrong = parse_set_options(job, options)) return wrong;
  if (has_mark(job.arguments[2])) return kMarked;
  job.order.value = job.arguments[2];
  job.order.ttl_ns = options.ttl_ns;
  job.step = options.when;
  job.flag = options.get;
  if (options.get) {
    return begin_update(job, decide_set);
  }
  constexpr std::array kKinds{Order::Kind::put, Order::Kind::insert, Order::Kind::replace};
  job.order.kind = kKinds[options.when];
  return nullptr;
}

bool conclude_set(Job& job, Reply& reply) {
  if (job.flag) return conclude_get(job, reply);
  return job.step == kAlways ? conclude_ok(job, reply) : conclude_ok_if_changed(job, reply);
}

const char* begin_setnx(Job& job) {
  job.order.kind = Order::Kind::insert;
  job.order.value = job.arguments[2];
  return has_mark(job.order.value) ? kMarked : nullptr;
}

const char* begin_getset(Job& job) {
  job.order.ttl_ns = kForeverNs;
  job.order_update(decide_set);
  return has_mark(job.arguments[2]) ? kMarked : nullptr;
}

Change decide_getdel(void* context, std::optional<std::string_view> current) {
  if (!current || refuses(job_of(context), current)) return {};
  return {.action = Change::Action::erase};
}

const char* begin_getdel(Job& job) { return begin_update(job, decide_getdel); }

// --- GETEX ---------------------------------------------------------------------------------------

Change decide_getex(void* context, std::optional<std::string_view> current) {
  Job& job = job_of(context);
  if (!current || refuses(job, current)) return {};
  job.scratch.assign(*current);
  return {.action = Change::Action::put, .value = job.scratch, .ttl_ns = job.order.ttl_ns};
}

const char* begin_getex(Job& job) {
  if (job.arguments.size() == 2) return begin_read(job);
  job.order_update(decide_getex);
  job.order.ttl_ns = kForeverNs;
  if (job.arguments.size() == 3)
    return is_word(job.arguments[2], "persist") ? nullptr : kSyntaxError;
  const TimeUnit* const unit = find_time_unit(job.arguments[2]);
  if (unit == nullptr || job.arguments.size() > 4) return kSyntaxError;
  return parse_ttl(job.arguments[3], *unit, *job.session,
                   "ERR invalid expire time in 'getex' command", job.order.ttl_ns);
}

// --- SETEX, PSETEX -------------------------------------------------------------------------------

const char* begin_setex_in(Job& job, const char* unit, const char* invalid) {
  job.order.kind = Order::Kind::put;
  job.order.value = job.arguments[3];
  if (has_mark(job.order.value)) return kMarked;
  return parse_ttl(job.arguments[2], *find_time_unit(unit), *job.session, invalid,
                   job.order.ttl_ns);
}

const char* begin_setex(Job& job) {
  return begin_setex_in(job, "ex", "ERR invalid expire time in 'setex' command");
}

const char* begin_psetex(Job& job) {
  return begin_setex_in(job, "px", "ERR invalid expire time in 'psetex' command");
}

// --- several keys --------------------------------------------------------------------------------

const char* begin_mset_part(Job& job) {
  job.order.kind = Order::Kind::put;
  job.order.value = job.arguments[2];
  return has_mark(job.order.value) ? kMarked : nullptr;
}

bool conclude_nothing(Job&, Reply&) { return true; }

constexpr Command kMgetPart{"", -2, Shape::one_key, false, begin_read, conclude_mget_part};
constexpr Command kMsetPart = silent_part(-3, true, begin_mset_part, conclude_nothing);

constexpr std::array kStringCommands{
    Command{"get", 2, Shape::one_key, false, begin_read, conclude_get},
    Command{"set", -3, Shape::one_key, true, begin_set, conclude_set},
    Command{"setnx", 3, Shape::one_key, true, begin_setnx, conclude_one_if_changed},
    Command{"setex", 4, Shape::one_key, true, begin_setex, conclude_ok},
    Command{"psetex", 4, Shape::one_key, true, begin_psetex, conclude_ok},
    Command{"getset", 3, Shape::one_key, true, begin_getset, conclude_get},
    Command{"getdel", 2, Shape::one_key, true, begin_getdel, conclude_get},
    Command{"getex", -2, Shape::one_key, true, begin_getex, conclude_get},
    Command{"getrange", 4, Shape::one_key, false, begin_getrange, conclude_getrange},
    Command{"strlen", 2, Shape::one_key, false, begin_read, conclude_strlen},
    Command{.name = "mget",
            .arity = -2,
            .shape = Shape::each_key,
            .changes = false,
            .part = &kMgetPart,
            .is_array = true},
    Command{.name = "mset",
            .arity = -3,
            .shape = Shape::each_key,
            .changes = true,
            .conclude = conclude_tally,
            .part = &kMsetPart,
            .words_of_part = 2}};

}  // namespace

std::span<const Command> string_commands() noexcept { return kStringCommands; }

}  // namespace dunlin::app::resp
