#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <dunlin/version.hpp>

#include "store/command_table.hpp"
#include "store/connection.hpp"
#include "store/session.hpp"

/// COMMAND and INFO.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

// --- COMMAND -------------------------------------------------------------------------------------

/// The place of the last key, and the step from one to the next.
std::pair<std::int64_t, std::int64_t> last_key(const Command& command) noexcept {
  const auto step = static_cast<std::int64_t>(command.words_of_part);
  switch (command.shape) {
    case Shape::each_key:
      return {-1, step};
    case Shape::one_key:
      return {static_cast<std::int64_t>(command.first_key), 1};
    case Shape::several_keys:
      if (command.key_count_word != 0) return {0, 0};
      return {command.last_key == 0 ? -1 : static_cast<std::int64_t>(command.last_key), step};
    default:
      return {0, 0};
  }
}

void describe_command(const Command& command, Reply& reply) {
  const auto [last, step] = last_key(command);
  const bool has_key = step != 0;
  reply.array(10);
  reply.bulk(command.name);
  reply.integer(command.arity);
  reply.array(1);
  reply.simple(command.changes ? "write" : has_key ? "readonly" : "fast");
  reply.integer(has_key ? static_cast<std::int64_t>(command.first_key) : 0);
  reply.integer(last);
  reply.integer(step);
  // Redis 7 has lists of ACL categories, hints, key positions and subcommands here, and clients
  // expect them.
  for (int i = 0; i < 4; ++i) reply.array(0);
}

Replied describe_all(Reply& reply) {
  reply.array(all_commands().size());
  for (const Command* const command : all_commands()) describe_command(*command, reply);
  return {};
}

Task list_commands(Job&, Reply& reply) { co_return describe_all(reply); }

Task count_commands(Job&, Reply& reply) {
  co_return reply.integer(static_cast<std::int64_t>(all_commands().size()));
}

Task command_docs(Job&, Reply& reply) { co_return reply.map(0); }

Task command_info(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  if (words.size() == 2) co_return describe_all(reply);
  reply.array(words.size() - 2);
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (const Command* const command = find_command(words[i])) {
      describe_command(*command, reply);
    } else {
      reply.null_array();
    }
  }
  co_return Replied{};
}

constexpr std::array kCommandSubcommands{
    Subcommand{"count", 2, count_commands, ": how many commands there are"},
    Subcommand{"info", -2, command_info, "[<command> ...]: their arities, and where keys are"},
    Subcommand{"docs", -2, command_docs, "[<command> ...]: nothing"}};

Task command(Job& job, Reply& reply) {
  return job.arguments.size() == 1 ? list_commands(job, reply)
                                   : run_subcommand(kCommandSubcommands, job, reply);
}

// --- INFO ----------------------------------------------------------------------------------------

using Figures = std::vector<std::pair<std::string, std::string>>;

std::string text(std::uint64_t number) { return fmt::format("{}", number); }

/// What the store tells, by name.
using Told = std::map<std::string, std::string>;

std::string figure(const Told& store, const std::string& name) {
  const auto found = store.find(name);
  return found == store.end() ? "0" : found->second;
}

std::string human(std::string_view bytes) {
  std::int64_t number = 0;
  static_cast<void>(parse_integer(bytes, number));
  return fmt::format("{:.2f}M", static_cast<double>(number) / (1 << 20));
}

Figures server(Service& service, const Told&) {
  const std::uint64_t uptime_s = (service.values().unix_ms() - service.started_ms()) / 1'000;
  return {{"redis_version", std::string(kRedisVersion)},
          {"redis_mode", "standalone"},
          {"os", "Linux"},
          {"arch_bits", text(8 * sizeof(void*))},
          {"multiplexing_api", "epoll"},
          {"dunlin_version", std::string(version())},
          {"process_id", text(static_cast<std::uint64_t>(getpid()))},
          {"run_id", service.run_id()},
          {"tcp_port", text(service.options().port)},
          {"uptime_in_seconds", text(uptime_s)},
          {"uptime_in_days", text(uptime_s / 86'400)}};
}

Figures clients(Service& service, const Told&) {
  return {{"connected_clients", text(service.counters().clients)},
          {"maxclients", text(kMaxClients)},
          {"blocked_clients", "0"}};
}

Figures memory(Service&, const Told& store) {
  const std::string used = figure(store, "used_memory");
  const std::string most = figure(store, "maxmemory");
  return {{"used_memory", used},
          {"used_memory_human", human(used)},
          {"maxmemory", most},
          {"maxmemory_human", human(most)},
          {"maxmemory_policy", figure(store, "maxmemory_policy")}};
}

/// Nothing is kept on a disk.
Figures persistence(Service&, const Told&) {
  return {{"loading", "0"},
          {"rdb_changes_since_last_save", "0"},
          {"rdb_bgsave_in_progress", "0"},
          {"rdb_last_bgsave_status", "ok"},
          {"aof_enabled", "0"},
          {"aof_rewrite_in_progress", "0"}};
}

Figures statistics(Service& service, const Told& store) {
  const ServiceCounters& counters = service.counters();
  return {{"total_connections_received", text(counters.connections)},
          {"rejected_connections", text(counters.rejected)},
          {"total_commands_processed", text(counters.commands)},
          {"waits_for_calls", text(counters.waits_for_calls)},
          {"sleeps", text(counters.sleeps)},
          {"evicted_keys", figure(store, "evicted_keys")}};
}

Figures replication(Service&, const Told&) {
  return {{"role", "master"}, {"connected_slaves", "0"}, {"master_repl_offset", "0"}};
}

Figures processor(Service&, const Told&) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return fmt::format("{}.{:06}", time.tv_sec, time.tv_usec);
  };
  return {{"used_cpu_sys", seconds(usage.ru_stime)}, {"used_cpu_user", seconds(usage.ru_utime)}};
}

Figures cluster(Service&, const Told&) { return {{"cluster_enabled", "0"}}; }

/// The keys of this member; a database without keys has no line.
Figures keyspace(Service&, const Told& store) {
  const std::string keys = figure(store, "keys");
  if (keys == "0") return {};
  return {{"db0", fmt::format("keys={},expires=0,avg_ttl=0", keys)}};
}

struct Section {
  std::string_view name;
  Figures (*figures)(Service& service, const Told& store);
};

Figures store_figures(Service&, const Told& store) { return {store.begin(), store.end()}; }

constexpr std::array kSections{Section{"Server", server},     Section{"Clients", clients},
                               Section{"Memory", memory},     Section{"Persistence", persistence},
                               Section{"Stats", statistics},  Section{"Replication", replication},
                               Section{"CPU", processor},     Section{"Cluster", cluster},
                               Section{"Keyspace", keyspace}, Section{"Store", store_figures}};

bool is_asked_for(const Job& job, const Section& section) {
  if (job.arguments.size() == 1) return true;
  std::string name(section.name);
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (std::size_t i = 1; i < job.arguments.size(); ++i)
    for (const std::string_view word :
         {std::string_view(name), std::string_view("all"), std::string_view("default"),
          std::string_view("everything")})
      if (is_word(job.arguments[i], word)) return true;
  return false;
}

Task info(Job& job, Reply& reply) {
  Service& service = job.session->service();
  const Told store = service.values().figures();
  std::string all;
  for (const Section& section : kSections) {
    if (!is_asked_for(job, section)) continue;
    if (!all.empty()) all += "\r\n";
    all += fmt::format("# {}\r\n", section.name);
    for (const auto& [name, value] : section.figures(service, store))
      all += fmt::format("{}:{}\r\n", name, value);
  }
  co_return reply.verbatim(all);
}

constexpr std::array kInfoCommands{at_once("command", -1, command), at_once("info", -1, info)};

}  // namespace

std::span<const Command> info_commands() noexcept { return kInfoCommands; }

}  // namespace dunlin::app::resp
