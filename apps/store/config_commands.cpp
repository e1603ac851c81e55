#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/connection.hpp"
#include "store/session.hpp"

/// CONFIG.
namespace dunlin::app::resp {
namespace {

struct Setting {
  std::string_view name;
  std::string_view value;
};

/// What clients ask for; none of it can be set. Of maxmemory and its policy, see set_config().
constexpr std::array kSettings{Setting{"appendonly", "no"},
                               Setting{"databases", "1"},
                               Setting{"maxclients", "65536"},
                               Setting{"proto-max-bulk-len", "1048576"},
                               Setting{"save", ""},
                               Setting{"timeout", "0"}};
static_assert(kMaxClients == 65536 && kMaxArgumentBytes == 1048576, "as kSettings says");

constexpr std::string_view kMaxMemory = "maxmemory";
constexpr std::string_view kPolicy = "maxmemory-policy";
/// The policies that Redis has and this store has not.
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
Task set_config(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  KeyValues& values = job.session->service().values();
  const MemoryLimit now = values.memory_limit();
  std::optional<std::uint64_t> bytes;
  const auto fail = [&](std::string_view name, std::string_view why) {
    return reply.error(fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}",
                                   name.substr(0, 64), why));
  };
  if (words.size() % 2 != 0) co_return "ERR wrong number of arguments for 'config|set' command";
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    const std::string_view value = words[i + 1];
    if (is_word(words[i], kMaxMemory)) {
      std::uint64_t number = 0;
      if (!parse_bytes(value, number)) co_return fail(words[i], "argument must be a memory value");
      bytes = number;
    } else if (is_word(words[i], kPolicy)) {
      if (is_word(value, policy_of(now))) continue;
      const bool is_other = std::ranges::any_of(
          kOtherPolicies, [&](std::string_view other) { return is_word(value, other); });
      if (is_other)
        co_return fail(words[i],
                       fmt::format("dunlin store has no policy '{}': start all members with "
                                   "--eviction lru (allkeys-lru) or none (noeviction)",
                                   value.substr(0, 64)));
      if (!is_word(value, "allkeys-lru") && !is_word(value, "noeviction"))
        co_return fail(words[i], "argument must be one of noeviction, allkeys-lru");
      co_return fail(words[i], "it is chosen with dunlin store serve --eviction, at all members");
    } else {
      co_return fail(words[i], "the options of dunlin store serve are its configuration");
    }
  }
  if (bytes) values.limit_memory(*bytes);
  co_return reply.ok();
}

Task get_config(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  std::size_t pattern_bytes = 0;
  for (std::size_t i = 2; i < words.size(); ++i) pattern_bytes += words[i].size();
  if (pattern_bytes > kMaxPatternBytes) co_return kPatternTooLong;
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
  co_return Replied{};
}

Task reset_statistics(Job& job, Reply& reply) {
  job.session->service().reset_counters();
  co_return reply.ok();
}

constexpr std::array kSubcommands{
    Subcommand{"get", -3, get_config, "<pattern> ...: the settings of these names"},
    Subcommand{"set", -4, set_config, "<name> <value> ...: maxmemory can be set"},
    Subcommand{"resetstat", 2, reset_statistics, ": the counts of INFO's Stats begin at zero"}};

Task config(Job& job, Reply& reply) { return run_subcommand(kSubcommands, job, reply); }

constexpr std::array kConfigCommands{at_once("config", -2, config)};

}  // namespace

std::span<const Command> config_commands() noexcept { return kConfigCommands; }

}  // namespace dunlin::app::resp
