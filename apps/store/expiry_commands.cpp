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

bool conclude_pttl(Job& job, Reply& reply) { return reply.integer(ttl_ms(*job.call)); }

bool conclude_ttl(Job& job, Reply& reply) {
  const std::int64_t ms = ttl_ms(*job.call);
  return reply.integer(ms < 0 ? ms : (ms + 500) / 1000);
}

// The steps of EXPIRE and PERSIST: 0, which reads, and this one.
constexpr std::uint32_t kSets = 1;

/// The last step of EXPIRE and PERSIST.
void set_ttl(Job& job) noexcept {
  job.step = kSets;
  job.order.kind = job.order.ttl_ns == 0 ? Order::Kind::erase : Order::Kind::expire;
}

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

const char* begin_expire_in(Job& job, const char* unit, const char* invalid) {
  ExpireOptions options;
  if (const char* const wrong = parse_expire_options(job, options)) return wrong;
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[2], number)) return kNotAnInteger;
  if (!parse_time(job.arguments[2], *find_time_unit(unit), *job.session, job.order.ttl_ns))
    return invalid;
  if (options.any()) {
    job.order.kind = Order::Kind::get;
  } else {
    set_ttl(job);
  }
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

bool conclude_expire(Job& job, Reply& reply) {
  if (job.step == kSets) return reply.integer(job.call->found() ? 1 : 0);
  const Call& call = *job.call;
  ExpireOptions options;
  static_cast<void>(parse_expire_options(job, options));  // the beginning has looked
  if (!call.found() || !options.hold(call.ttl_ns(), job.order.ttl_ns)) return reply.integer(0);
  set_ttl(job);
  return false;
}

bool conclude_persist(Job& job, Reply& reply) {
  const Call& call = *job.call;
  if (job.step == kSets || !call.found() || call.ttl_ns() == kForeverNs)
    return reply.integer(job.step == kSets && call.found() ? 1 : 0);
  job.order.ttl_ns = kForeverNs;
  set_ttl(job);
  return false;
}

// --- EXPIRETIME, PEXPIRETIME ---------------------------------------------------------------------

void reply_moment(Job& job, Reply& reply, std::int64_t ms_per_unit) {
  const std::int64_t ms = ttl_ms(*job.call);
  const std::uint64_t then_ns = job.session->service().values().unix_ns() + job.call->ttl_ns();
  reply.integer(ms < 0 ? ms : static_cast<std::int64_t>(then_ns / kNsPerMs) / ms_per_unit);
}

bool conclude_expiretime(Job& job, Reply& reply) {
  reply_moment(job, reply, 1'000);
  return true;
}

bool conclude_pexpiretime(Job& job, Reply& reply) {
  reply_moment(job, reply, 1);
  return true;
}

constexpr std::array kExpiryCommands{
    Command{"ttl", 2, Shape::one_key, false, begin_read, conclude_ttl},
    Command{"pttl", 2, Shape::one_key, false, begin_read, conclude_pttl},
    Command{"expiretime", 2, Shape::one_key, false, begin_read, conclude_expiretime},
    Command{"pexpiretime", 2, Shape::one_key, false, begin_read, conclude_pexpiretime},
    Command{"expire", -3, Shape::one_key, true, begin_expire, conclude_expire, true},
    Command{"pexpire", -3, Shape::one_key, true, begin_pexpire, conclude_expire, true},
    Command{"expireat", -3, Shape::one_key, true, begin_expireat, conclude_expire, true},
    Command{"pexpireat", -3, Shape::one_key, true, begin_pexpireat, conclude_expire, true},
    Command{"persist", 2, Shape::one_key, true, begin_read, conclude_persist, true}};

}  // namespace

std::span<const Command> expiry_commands() noexcept { return kExpiryCommands; }

}  // namespace dunlin::app::resp
