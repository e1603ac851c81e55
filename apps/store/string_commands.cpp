#include <algorithm>
#include <array>

#include "store/command_table.hpp"
#include "store/session.hpp"
#include "store/time_to_live.hpp"

/// Commands on strings.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

/// The value of a key whose type was looked at.
Replied reply_value(const Call& call, Reply& reply) {
  return call.found() ? reply.bulk(call.value()) : reply.null();
}

// --- GET, and what reads -------------------------------------------------------------------------

Task get(Job& job, Reply& reply) {
  const Call& call = co_await job.get();
  if (call.found() && has_mark(call.value())) co_return kWrongType;
  co_return reply_value(call, reply);
}

/// An element of MGET: of a key that has no string, Redis says that it is absent.
Task mget_part(Job& job, Reply& reply) {
  const Call& call = co_await job.get();
  if (call.found() && has_mark(call.value())) co_return reply.null();
  co_return reply_value(call, reply);
}

Task strlen(Job& job, Reply& reply) {
  const auto value = co_await job.read(kStringMark);
  if (!value) co_return kWrongType;
  co_return reply.integer(static_cast<std::int64_t>(value->size()));
}

Task getrange(Job& job, Reply& reply) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (!parse_integer(job.arguments[2], first) || !parse_integer(job.arguments[3], last))
    co_return kNotAnInteger;
  const auto value = co_await job.read(kStringMark);
  if (!value) co_return kWrongType;
  const auto bytes = static_cast<std::int64_t>(value->size());
  if (first < 0) first = std::max<std::int64_t>(first + bytes, 0);
  if (last < 0) last += bytes;
  last = std::min(last, bytes - 1);
  co_return reply.bulk(first > last ? std::string_view()
                                    : value->substr(static_cast<std::size_t>(first),
                                                    static_cast<std::size_t>(last - first + 1)));
}

// --- SET -----------------------------------------------------------------------------------------

/// When a SET changes its key.
enum class When : std::uint8_t { always, absent, there };

struct SetOptions {
  When when = When::always;
  bool get = false;
  std::uint64_t ttl_ns = kForeverNs;
};

const char* parse_set_options(const Job& job, SetOptions& options) {
  bool has_ttl = false;
  for (std::size_t i = 3; i < job.arguments.size(); ++i) {
    const std::string_view word = job.arguments[i];
    if (is_word(word, "nx") && options.when != When::there) {
      options.when = When::absent;
    } else if (is_word(word, "xx") && options.when != When::absent) {
      options.when = When::there;
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

Task set(Job& job, Reply& reply) {
  SetOptions options;
  if (job.arguments.size() > 3)
    if (const char* const wrong = parse_set_options(job, options)) co_return wrong;
  const std::string_view value = job.arguments[2];
  if (has_mark(value)) co_return kMarked;
  if (options.get) {
    co_return reply_value(
        co_await job.update(kStringMark,
                            [&](std::optional<std::string_view> current) -> Change {
                              if (options.when == (current ? When::absent : When::there)) return {};
                              return put(value, options.ttl_ns);
                            }),
        reply);
  }
  constexpr std::array kKinds{Order::Kind::put, Order::Kind::insert, Order::Kind::replace};
  const Order::Kind kind = kKinds[static_cast<std::size_t>(options.when)];
  const Call& call = co_await job.put(value, options.ttl_ns, kind);
  co_return options.when == When::always || call.changed() ? reply.ok() : reply.null();
}

Task setnx(Job& job, Reply& reply) {
  if (has_mark(job.arguments[2])) co_return kMarked;
  const Call& call = co_await job.put(job.arguments[2], kForeverNs, Order::Kind::insert);
  co_return reply.integer(call.changed() ? 1 : 0);
}

Task getset(Job& job, Reply& reply) {
  if (has_mark(job.arguments[2])) co_return kMarked;
  const Call& former = co_await job.update(kStringMark, [&](std::optional<std::string_view>) {
    return put(job.arguments[2], kForeverNs);
  });
  co_return reply_value(former, reply);
}

Task getdel(Job& job, Reply& reply) {
  const Call& former =
      co_await job.update(kStringMark, [](std::optional<std::string_view> current) -> Change {
        return current ? kErase : Change{};
      });
  co_return reply_value(former, reply);
}

// --- GETEX, SETEX, PSETEX ------------------------------------------------------------------------

const char* parse_getex(const Job& job, std::uint64_t& ttl_ns) {
  if (job.arguments.size() == 3)
    return is_word(job.arguments[2], "persist") ? nullptr : kSyntaxError;
  const TimeUnit* const unit = find_time_unit(job.arguments[2]);
  if (unit == nullptr || job.arguments.size() > 4) return kSyntaxError;
  return parse_ttl(job.arguments[3], *unit, *job.session,
                   "ERR invalid expire time in 'getex' command", ttl_ns);
}

Task get_and_expire(Job& job, Reply& reply, std::uint64_t ttl_ns) {
  std::string value;
  const Call& call =
      co_await job.update(kStringMark, [&](std::optional<std::string_view> current) -> Change {
        if (!current) return {};
        value.assign(*current);
        return put(value, ttl_ns);
      });
  co_return reply_value(call, reply);
}

Task getex(Job& job, Reply& reply) {
  if (job.arguments.size() == 2) return get(job, reply);
  std::uint64_t ttl_ns = kForeverNs;
  if (const char* const wrong = parse_getex(job, ttl_ns)) return refuse(job, reply, wrong);
  return get_and_expire(job, reply, ttl_ns);
}

Task setex_in(Job& job, Reply& reply, const char* unit, const char* invalid) {
  if (has_mark(job.arguments[3])) co_return kMarked;
  std::uint64_t ttl_ns = 0;
  if (const char* const wrong =
          parse_ttl(job.arguments[2], *find_time_unit(unit), *job.session, invalid, ttl_ns))
    co_return wrong;
  co_await job.put(job.arguments[3], ttl_ns);
  co_return reply.ok();
}

Task setex(Job& job, Reply& reply) {
  return setex_in(job, reply, "ex", "ERR invalid expire time in 'setex' command");
}

Task psetex(Job& job, Reply& reply) {
  return setex_in(job, reply, "px", "ERR invalid expire time in 'psetex' command");
}

// --- several keys --------------------------------------------------------------------------------

Task mset_part(Job& job, Reply&) {
  if (has_mark(job.arguments[2])) co_return kMarked;
  co_await job.put(job.arguments[2]);
  co_return Replied{};
}

constexpr Command kMgetPart{"", -2, Shape::one_key, false, mget_part};
constexpr Command kMsetPart = silent_part(-3, true, mset_part);

constexpr std::array kStringCommands{Command{"get", 2, Shape::one_key, false, get},
                                     Command{"set", -3, Shape::one_key, true, set},
                                     Command{"setnx", 3, Shape::one_key, true, setnx},
                                     Command{"setex", 4, Shape::one_key, true, setex},
                                     Command{"psetex", 4, Shape::one_key, true, psetex},
                                     Command{"getset", 3, Shape::one_key, true, getset},
                                     Command{"getdel", 2, Shape::one_key, true, getdel},
                                     Command{"getex", -2, Shape::one_key, true, getex},
                                     Command{"getrange", 4, Shape::one_key, false, getrange},
                                     Command{"strlen", 2, Shape::one_key, false, strlen},
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
                                             .run = reply_tally,
                                             .part = &kMsetPart,
                                             .words_of_part = 2}};

}  // namespace

std::span<const Command> string_commands() noexcept { return kStringCommands; }

}  // namespace dunlin::app::resp
