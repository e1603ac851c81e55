#include <algorithm>
#include <array>

#include "store/command_table.hpp"
#include "store/session.hpp"
#include "store/time_to_live.hpp"

/// How long keys live.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

constexpr std::int64_t kNoKey = -2;
constexpr std::int64_t kNoTtl = -1;

std::int64_t ttl_ms(const Call& call) noexcept {
  if (!call.found()) return kNoKey;
  if (call.ttl_ns() == kForeverNs) return kNoTtl;
  return static_cast<std::int64_t>((call.ttl_ns() + kNsPerMs - 1) / kNsPerMs);
}

Task pttl(Job& job, Reply& reply) { co_return reply.integer(ttl_ms(co_await job.get())); }

Task ttl(Job& job, Reply& reply) {
  const std::int64_t ms = ttl_ms(co_await job.get());
  co_return reply.integer(ms < 0 ? ms : (ms + 500) / 1000);
}

// --- EXPIRE, PERSIST -----------------------------------------------------------------------------

struct ExpireOptions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;

  [[nodiscard]] bool any() const noexcept { return nx || xx || gt || lt; }
  /// Whether they hold for a key that lives so long. Forever is longest.
  [[nodiscard]] bool hold(std::uint64_t now_ns, std::uint64_t then_ns) const noexcept {
    const bool lasts = now_ns == kForeverNs;
    return !(nx && !lasts) && !(xx && lasts) && !(gt && then_ns <= now_ns) &&
           !(lt && then_ns >= now_ns);
  }
};

const char* parse_expire_options(const Job& job, ExpireOptions& options) noexcept {
  for (std::size_t i = 3; i < job.arguments.size(); ++i) {
    const std::string_view word = job.arguments[i];
    bool* const option = is_word(word, "nx")   ? &options.nx
                         : is_word(word, "xx") ? &options.xx
                         : is_word(word, "gt") ? &options.gt
                         : is_word(word, "lt") ? &options.lt
                                               : nullptr;
    if (option == nullptr) return "ERR Unsupported option";
    *option = true;
  }
  if (options.nx && (options.xx || options.gt || options.lt))
    return "ERR NX and XX, GT or LT options at the same time are not compatible";
  if (options.gt && options.lt) return "ERR GT and LT options at the same time are not compatible";
  return nullptr;
}

Task expire_in(Job& job, Reply& reply, const char* unit, const char* invalid) {
  ExpireOptions options;
  if (const char* const wrong = parse_expire_options(job, options)) co_return wrong;
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[2], number)) co_return kNotAnInteger;
  std::uint64_t ttl_ns = 0;
  if (!parse_time(job.arguments[2], *find_time_unit(unit), *job.session, ttl_ns)) co_return invalid;
  if (options.any()) {
    const Call& now = co_await job.get();
    if (!now.found() || !options.hold(now.ttl_ns(), ttl_ns)) co_return reply.integer(0);
  }
  const Call& call = co_await job.set_ttl(ttl_ns);
  co_return reply.integer(call.found() ? 1 : 0);
}

Task expire(Job& job, Reply& reply) {
  return expire_in(job, reply, "ex", "ERR invalid expire time in 'expire' command");
}
Task pexpire(Job& job, Reply& reply) {
  return expire_in(job, reply, "px", "ERR invalid expire time in 'pexpire' command");
}
Task expireat(Job& job, Reply& reply) {
  return expire_in(job, reply, "exat", "ERR invalid expire time in 'expireat' command");
}
Task pexpireat(Job& job, Reply& reply) {
  return expire_in(job, reply, "pxat", "ERR invalid expire time in 'pexpireat' command");
}

Task persist(Job& job, Reply& reply) {
  const Call& now = co_await job.get();
  if (!now.found() || now.ttl_ns() == kForeverNs) co_return reply.integer(0);
  const Call& call = co_await job.set_ttl(kForeverNs);
  co_return reply.integer(call.found() ? 1 : 0);
}

// --- EXPIRETIME, PEXPIRETIME ---------------------------------------------------------------------

Task expiretime_in(Job& job, Reply& reply, std::int64_t ms_per_unit) {
  const Call& call = co_await job.get();
  const std::int64_t ms = ttl_ms(call);
  const std::uint64_t then_ns = job.session->service().values().unix_ns() + call.ttl_ns();
  co_return reply.integer(ms < 0 ? ms
                                 : static_cast<std::int64_t>(then_ns / kNsPerMs) / ms_per_unit);
}

Task expiretime(Job& job, Reply& reply) { return expiretime_in(job, reply, 1'000); }
Task pexpiretime(Job& job, Reply& reply) { return expiretime_in(job, reply, 1); }

constexpr std::array kExpiryCommands{
    Command{"ttl", 2, Shape::one_key, false, ttl},
    Command{"pttl", 2, Shape::one_key, false, pttl},
    Command{"expiretime", 2, Shape::one_key, false, expiretime},
    Command{"pexpiretime", 2, Shape::one_key, false, pexpiretime},
    Command{"expire", -3, Shape::one_key, true, expire, true},
    Command{"pexpire", -3, Shape::one_key, true, pexpire, true},
    Command{"expireat", -3, Shape::one_key, true, expireat, true},
    Command{"pexpireat", -3, Shape::one_key, true, pexpireat, true},
    Command{"persist", 2, Shape::one_key, true, persist, true}};

}  // namespace

std::span<const Command> expiry_commands() noexcept { return kExpiryCommands; }

}  // namespace dunlin::app::resp
