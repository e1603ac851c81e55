#include <array>
#include <string>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/connection.hpp"
#include "store/session.hpp"

/// Commands about the connection.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;
using WithinMulti = Command::WithinMulti;

Task ping(Job& job, Reply& reply) {
  if (job.arguments.size() > 2) co_return "ERR wrong number of arguments for 'ping' command";
  if (job.arguments.size() == 2) co_return reply.bulk(job.arguments[1]);
  co_return reply.simple("PONG");
}

Task echo(Job& job, Reply& reply) { co_return reply.bulk(job.arguments[1]); }

Task quit(Job& job, Reply& reply) {
  reply.ok();
  job.session->close_after_reply();
  co_return Replied{};
}

Task select_database(Job& job, Reply& reply) {
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[1], number)) co_return "ERR invalid DB index";
  if (number != 0) co_return "ERR DB index is out of range";
  co_return reply.ok();
}

// --- AUTH, HELLO ---------------------------------------------------------------------------------

/// Writes an error unless they are right.
bool log_in(Session& session, std::string_view user, std::string_view password, Reply& reply) {
  const Service& service = session.service();
  const bool open = service.options().password.empty();  // then any password of "default" will do
  if (user == "default" && (open || service.is_password(password))) {
    session.authenticate();
    return true;
  }
  reply.error("WRONGPASS invalid username-password pair or user is disabled.");
  return false;
}

Task auth(Job& job, Reply& reply) {
  Session& session = *job.session;
  const bool with_user = job.arguments.size() == 3;
  if (job.arguments.size() > 3) {
    reply.error(kSyntaxError);
  } else if (!with_user && session.service().options().password.empty()) {
    reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  } else if (log_in(session, with_user ? job.arguments[1] : "default", job.arguments.back(),
                    reply)) {
    reply.ok();
  }
  co_return Replied{};
}

/// HELLO [version [AUTH user password] [SETNAME name]]; nothing changes unless all of it is right.
Task hello(Job& job, Reply& reply) {
  Session& session = *job.session;
  const auto& words = job.arguments;
  std::int64_t version = static_cast<std::int64_t>(session.protocol());
  if (words.size() > 1 && !parse_integer(words[1], version))
    co_return "ERR Protocol version is not an integer or out of range";
  if (version != 2 && version != 3) co_return "NOPROTO unsupported protocol version";
  std::string_view name = session.name;
  for (std::size_t i = 2; i < words.size();) {
    if (is_word(words[i], "auth") && i + 2 < words.size()) {
      if (!log_in(session, words[i + 1], words[i + 2], reply)) co_return Replied{};
      i += 3;
    } else if (is_word(words[i], "setname") && i + 1 < words.size()) {
      name = words[i + 1];
      i += 2;
    } else {
      co_return reply.error("ERR Syntax error in HELLO option '" + std::string(words[i]) + "'");
    }
  }
  if (!session.authenticated())
    co_return "NOAUTH HELLO must be called with the client already authenticated, otherwise the "
        "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and "
        "select the RESP protocol version at the same time";
  if (!is_client_name(name)) co_return kBadName;
  session.name = std::string(name);
  reply.use(static_cast<Protocol>(version));
  reply.map(7);
  reply.bulk("server");
  reply.bulk("redis");  // clients look for it
  reply.bulk("version");
  reply.bulk(kRedisVersion);
  reply.bulk("proto");
  reply.integer(version);
  reply.bulk("id");
  reply.integer(static_cast<std::int64_t>(session.id()));
  reply.bulk("mode");
  reply.bulk("standalone");
  reply.bulk("role");
  reply.bulk("master");
  reply.bulk("modules");
  co_return reply.array(0);
}

// --- RESET, TIME ---------------------------------------------------------------------------------

Task reset(Job& job, Reply& reply) {
  job.session->reset();
  co_return reply.simple("RESET");
}

Task time(Job& job, Reply& reply) {
  const std::uint64_t now_ms = job.session->service().values().unix_ms();
  reply.array(2);
  reply.bulk(fmt::format("{}", now_ms / 1'000));
  co_return reply.bulk(fmt::format("{}", now_ms % 1'000 * 1'000));
}

constexpr Command harmless(std::string_view name, int arity, Task (*run)(Job&, Reply&)) {
  return {.name = name,
          .arity = arity,
          .shape = Shape::at_once,
          .changes = false,
          .run = run,
          .is_harmless = true};
}

constexpr std::array kConnectionCommands{harmless("ping", -1, ping),
                                         harmless("echo", 2, echo),
                                         at_once("quit", -1, quit, WithinMulti::acts, true),
                                         at_once("reset", 1, reset, WithinMulti::acts),
                                         harmless("select", 2, select_database),
                                         at_once("auth", -2, auth, WithinMulti::is_refused, true),
                                         at_once("hello", -1, hello, WithinMulti::is_refused, true),
                                         harmless("time", 1, time)};

}  // namespace

std::span<const Command> connection_commands() noexcept { return kConnectionCommands; }

}  // namespace dunlin::app::resp
