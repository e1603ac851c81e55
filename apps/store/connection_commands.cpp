#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/version.hpp>

#include "store/command_table.hpp"
#include "store/session.hpp"

/// Commands about the connection and the server, which need no key.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

/// Clients take it for the version of the commands.
constexpr std::string_view kRedisVersion = "7.0.0";

bool ping(Job& job, Reply& reply) {
  if (job.arguments.size() > 2) {
    reply.error("ERR wrong number of arguments for 'ping' command");
  } else if (job.arguments.size() == 2) {
    reply.bulk(job.arguments[1]);
  } else {
    reply.simple("PONG");
  }
  return true;
}

bool echo(Job& job, Reply& reply) {
  reply.bulk(job.arguments[1]);
  return true;
}

bool quit(Job& job, Reply& reply) {
  reply.ok();
  job.session->close_after_reply();
  return true;
}

bool select_database(Job& job, Reply& reply) {
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[1], number)) {
    reply.error("ERR invalid DB index");
  } else if (number != 0) {
    reply.error("ERR DB index is out of range");
  } else {
    reply.ok();
  }
  return true;
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

bool auth(Job& job, Reply& reply) {
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
  return true;
}

bool is_client_name(std::string_view name) noexcept {
  return name.size() <= kMaxClientNameBytes &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

constexpr const char* kBadName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

/// HELLO [version [AUTH user password] [SETNAME name]]; nothing changes unless all of it is right.
bool hello(Job& job, Reply& reply) {
  Session& session = *job.session;
  const auto& words = job.arguments;
  std::int64_t version = static_cast<std::int64_t>(session.protocol);
  if (words.size() > 1 && !parse_integer(words[1], version)) {
    reply.error("ERR Protocol version is not an integer or out of range");
    return true;
  }
  if (version != 2 && version != 3) {
    reply.error("NOPROTO unsupported protocol version");
    return true;
  }
  std::string_view name = session.name;
  for (std::size_t i = 2; i < words.size();) {
    if (is_word(words[i], "auth") && i + 2 < words.size()) {
      if (!log_in(session, words[i + 1], words[i + 2], reply)) return true;
      i += 3;
    } else if (is_word(words[i], "setname") && i + 1 < words.size()) {
      name = words[i + 1];
      i += 2;
    } else {
      reply.error("ERR Syntax error in HELLO option '" + std::string(words[i]) + "'");
      return true;
    }
  }
  if (!session.authenticated()) {
    reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
    return true;
  }
  if (!is_client_name(name)) {
    reply.error(kBadName);
    return true;
  }
  session.name = std::string(name);
  session.protocol = static_cast<Protocol>(version);
  reply.use(session.protocol);
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
  reply.array(0);
  return true;
}

// --- CLIENT, CONFIG, COMMAND, INFO ---------------------------------------------------------------

void unknown_subcommand(const Job& job, Reply& reply) {
  reply.error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                          job.arguments[1].substr(0, 128), job.command->name));
}

bool client(Job& job, Reply& reply) {
  Session& session = *job.session;
  const auto& words = job.arguments;
  const auto is = [&](std::string_view word, std::size_t count) {
    return is_word(words[1], word) && words.size() == count;
  };
  if (is("setname", 3)) {
    if (!is_client_name(words[2])) {
      reply.error(kBadName);
      return true;
    }
    session.name = std::string(words[2]);
    reply.ok();
  } else if (is("getname", 2)) {
    if (session.name.empty()) {
      reply.null();
    } else {
      reply.bulk(session.name);
    }
  } else if (is("id", 2)) {
    reply.integer(static_cast<std::int64_t>(session.id()));
  } else if (is("info", 2)) {
    reply.verbatim(fmt::format("id={} name={} resp={}\n", session.id(), session.name,
                               static_cast<int>(session.protocol)));
  } else if (is("setinfo", 4) || is("no-evict", 3) || is("no-touch", 3)) {
    reply.ok();
  } else {
    unknown_subcommand(job, reply);
  }
  return true;
}

struct Setting {
  std::string_view name;
  std::string_view value;
};

/// What clients ask for; none of it can be set. Of maxmemory and its policy, see config().
constexpr std::array kSettings{Setting{"appendonly", "no"},
                               Setting{"databases", "1"},
                               Setting{"maxclients", "65536"},
                               Setting{"proto-max-bulk-len", "1048576"},
                               Setting{"save", ""},
                               Setting{"timeout", "0"}};
static_assert(kMaxClients == 65536 && kMaxArgumentBytes == 1048576, "as kSettings says");

constexpr std::string_view kMaxMemory = "maxmemory";
constexpr std::string_view kPolicy = "maxmemory-policy";
/// Of Redis; this store has none of them.
constexpr std::array<std::string_view, 6> kOtherPolicies{"allkeys-lfu",     "allkeys-random",
                                                         "volatile-lru",    "volatile-lfu",
                                                         "volatile-random", "volatile-ttl"};

[[nodiscard]] std::string_view policy_of(const MemoryLimit& limit) noexcept {
  return limit.evicts ? "allkeys-lru" : "noeviction";
}

/// Bytes, as Redis reads them: 100mb is 100 * 2^20, 100m is 100 * 10^6.
[[nodiscard]] bool parse_bytes(std::string_view text, std::uint64_t& bytes) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 7> kUnits{{{"kb", 1 << 10},
                                                                              {"mb", 1 << 20},
                                                                              {"gb", 1 << 30},
                                                                              {"k", 1'000},
                                                                              {"m", 1'000'000},
                                                                              {"g", 1'000'000'000},
                                                                              {"b", 1}}};
  std::uint64_t unit = 1;
  for (const auto& [name, size] : kUnits) {
    if (text.size() <= name.size() || !is_word(text.substr(text.size() - name.size()), name))
      continue;
    text.remove_suffix(name.size());
    unit = size;
    break;
  }
  std::int64_t number = 0;
  if (!parse_integer(text, number) || number < 0) return false;
  bytes = static_cast<std::uint64_t>(number) * unit;
  return bytes / unit == static_cast<std::uint64_t>(number);
}

/// CONFIG SET name value ...; nothing changes unless all of it is right.
void set_config(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  KeyValues& values = job.session->service().values();
  const MemoryLimit now = values.memory_limit();
  std::optional<std::uint64_t> bytes;
  const auto fail = [&](std::string_view name, std::string_view why) {
    reply.error(fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}",
                            name.substr(0, 64), why));
  };
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    const std::string_view value = words[i + 1];
    if (is_word(words[i], kMaxMemory)) {
      std::uint64_t number = 0;
      if (!parse_bytes(value, number)) return fail(words[i], "argument must be a memory value");
      bytes = number;
    } else if (is_word(words[i], kPolicy)) {
      if (is_word(value, policy_of(now))) continue;
      const bool is_other = std::ranges::any_of(
          kOtherPolicies, [&](std::string_view other) { return is_word(value, other); });
      if (is_other)
        return fail(words[i], fmt::format("dunlin store has no policy '{}': start all members with "
                                          "--eviction lru (allkeys-lru) or none (noeviction)",
                                          value.substr(0, 64)));
      if (!is_word(value, "allkeys-lru") && !is_word(value, "noeviction"))
        return fail(words[i], "argument must be one of noeviction, allkeys-lru");
      return fail(words[i], "it is chosen with dunlin store serve --eviction, at all members");
    } else {
      return fail(words[i], "the options of dunlin store serve are its configuration");
    }
  }
  if (bytes) values.limit_memory(*bytes);
  reply.ok();
}

bool config(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  if (is_word(words[1], "set") && words.size() >= 4 && words.size() % 2 == 0) {
    set_config(job, reply);
    return true;
  }
  if (!is_word(words[1], "get") || words.size() < 3) {
    if (is_word(words[1], "set")) {
      reply.error("ERR wrong number of arguments for 'config|set' command");
    } else {
      unknown_subcommand(job, reply);
    }
    return true;
  }
  const MemoryLimit limit = job.session->service().values().memory_limit();
  const std::string bytes = fmt::format("{}", limit.bytes);
  std::vector<Setting> settings(kSettings.begin(), kSettings.end());
  settings.push_back({kMaxMemory, bytes});
  settings.push_back({kPolicy, policy_of(limit)});
  std::ranges::sort(settings, {}, &Setting::name);
  const auto asked = [&](const Setting& setting) {
    return std::any_of(words.begin() + 2, words.end(),
                       [&](std::string_view pattern) { return matches(pattern, setting.name); });
  };
  reply.map(static_cast<std::size_t>(std::ranges::count_if(settings, asked)));
  for (const Setting& setting : settings) {
    if (!asked(setting)) continue;
    reply.bulk(setting.name);
    reply.bulk(setting.value);
  }
  return true;
}

void describe_command(const Command& command, Reply& reply) {
  const bool has_key = command.shape == Shape::one_key || command.shape == Shape::each_key;
  reply.array(6);
  reply.bulk(command.name);
  reply.integer(command.arity);
  reply.array(1);
  reply.simple(command.changes ? "write" : has_key ? "readonly" : "fast");
  reply.integer(has_key ? 1 : 0);
  reply.integer(command.shape == Shape::each_key ? -1 : has_key ? 1 : 0);
  reply.integer(has_key ? static_cast<std::int64_t>(command.words_of_part) : 0);
}

bool describe_commands(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  if (words.size() == 1) {
    reply.array(all_commands().size());
    for (const Command* const command : all_commands()) describe_command(*command, reply);
  } else if (is_word(words[1], "count") && words.size() == 2) {
    reply.integer(static_cast<std::int64_t>(all_commands().size()));
  } else if (is_word(words[1], "docs")) {
    reply.map(0);
  } else if (is_word(words[1], "info")) {
    reply.array(words.size() - 2);
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (const Command* const command = find_command(words[i])) {
        describe_command(*command, reply);
      } else {
        reply.null_array();
      }
    }
  } else {
    unknown_subcommand(job, reply);
  }
  return true;
}

bool info(Job& job, Reply& reply) {
  Service& service = job.session->service();
  const ServiceCounters& counters = service.counters();
  std::string text = fmt::format(
      "# Server\r\nredis_version:{}\r\nredis_mode:standalone\r\ndunlin_version:{}\r\n"
      "process_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{}\r\n\r\n"
      "# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\r\n"
      "# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n"
      "waits_for_calls:{}\r\nsleeps:{}\r\n\r\n# "
      "Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# "
      "Store\r\n",
      kRedisVersion, version(), getpid(), service.options().port,
      (service.values().unix_ms() - service.started_ms()) / 1'000, counters.clients, kMaxClients,
      counters.connections, counters.commands, counters.waits_for_calls, counters.sleeps);
  for (const auto& [name, value] : service.values().figures())
    text += fmt::format("{}:{}\r\n", name, value);
  reply.verbatim(text);
  return true;
}

constexpr Command at_once(std::string_view name, int arity, bool (*conclude)(Job&, Reply&),
                          bool open_to_strangers = false) {
  return {.name = name,
          .arity = arity,
          .shape = Shape::at_once,
          .changes = false,
          .conclude = conclude,
          .open_to_strangers = open_to_strangers};
}

constexpr std::array kConnectionCommands{at_once("ping", -1, ping),
                                         at_once("echo", 2, echo),
                                         at_once("quit", -1, quit, true),
                                         at_once("select", 2, select_database),
                                         at_once("auth", -2, auth, true),
                                         at_once("hello", -1, hello, true),
                                         at_once("client", -2, client),
                                         at_once("config", -2, config),
                                         at_once("command", -1, describe_commands),
                                         at_once("info", -1, info)};

}  // namespace

std::span<const Command> connection_commands() noexcept { return kConnectionCommands; }

}  // namespace dunlin::app::resp
