#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/connection.hpp"
#include "store/redis_slot.hpp"
#include "store/session.hpp"

/// CLUSTER, as clients of a Redis Cluster ask. Each server serves all keys, so it sends no MOVED,
/// and the slots of Redis are only a way to spread the clients: they are dealt in equal ranges to
/// the servers, by rank.
namespace dunlin::app::resp {
namespace {

/// The slots of a server: from `first` to `last`.
struct SlotRange {
  ServedAt server;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

std::vector<SlotRange> deal_slots(const KeyValues& values) {
  std::vector<SlotRange> ranges;
  const std::vector<ServedAt> servers = values.servers();
  const auto count = static_cast<std::uint32_t>(servers.size());
  for (std::uint32_t i = 0; i < count; ++i)
    ranges.push_back({servers[i], kRedisSlots * i / count, kRedisSlots * (i + 1) / count - 1});
  return ranges;
}

const KeyValues& values_of(const Job& job) { return job.session->service().values(); }

Task slots(Job& job, Reply& reply) {
  const std::vector<SlotRange> ranges = deal_slots(values_of(job));
  reply.array(ranges.size());
  for (const SlotRange& range : ranges) {
    reply.array(3);
    reply.integer(range.first);
    reply.integer(range.last);
    reply.array(4);
    reply.bulk(range.server.host);
    reply.integer(range.server.port);
    reply.bulk(range.server.id);
    reply.map(0);  // further names of the host
  }
  co_return Replied{};
}

Task shards(Job& job, Reply& reply) {
  const std::vector<SlotRange> ranges = deal_slots(values_of(job));
  reply.array(ranges.size());
  for (const SlotRange& range : ranges) {
    reply.map(2);
    reply.bulk("slots");
    reply.array(2);
    reply.integer(range.first);
    reply.integer(range.last);
    reply.bulk("nodes");
    reply.array(1);
    reply.map(7);
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::string_view>{"id", range.server.id},
          {"ip", range.server.host},
          {"endpoint", range.server.host},
          {"role", "master"},
          {"health", "online"}}) {
      reply.bulk(name);
      reply.bulk(value);
    }
    reply.bulk("port");
    reply.integer(range.server.port);
    reply.bulk("replication-offset");
    reply.integer(0);
  }
  co_return Replied{};
}

Task nodes(Job& job, Reply& reply) {
  const KeyValues& values = values_of(job);
  std::string all;
  // There is no bus between the servers, so its port is 0.
  for (const SlotRange& range : deal_slots(values))
    all += fmt::format("{} {}:{}@0 {}master - 0 0 {} connected {}-{}\n", range.server.id,
                       range.server.host, range.server.port,
                       range.server.rank == values.self() ? "myself," : "", range.server.rank + 1,
                       range.first, range.last);
  co_return reply.verbatim(all);
}

Task info(Job& job, Reply& reply) {
  const KeyValues& values = values_of(job);
  const StorePlacement placement = values.placement();
  const std::size_t servers = values.servers().size();
  const bool all_there = placement.slots != 0 && placement.lost == 0;
  co_return reply.verbatim(
      fmt::format("cluster_state:{}\r\n"
                  "cluster_slots_assigned:{}\r\n"
                  "cluster_slots_ok:{}\r\n"
                  "cluster_slots_pfail:0\r\n"
                  "cluster_slots_fail:0\r\n"
                  "cluster_known_nodes:{}\r\n"
                  "cluster_size:{}\r\n"
                  "cluster_current_epoch:{}\r\n"
                  "cluster_my_epoch:{}\r\n"
                  "cluster_stats_messages_sent:0\r\n"
                  "cluster_stats_messages_received:0\r\n",
                  all_there ? "ok" : "fail", kRedisSlots, kRedisSlots, servers, servers,
                  placement.version, values.self() + 1));
}

Task my_id(Job& job, Reply& reply) { co_return reply.bulk(job.session->service().run_id()); }

Task key_slot(Job& job, Reply& reply) { co_return reply.integer(redis_slot_of(job.arguments[2])); }

constexpr std::array kClusterSubcommands{
    Subcommand{"slots", 2, slots, ": the slots of Redis, and the server of each range"},
    Subcommand{"shards", 2, shards, ": the same, as Redis 7 has it"},
    Subcommand{"nodes", 2, nodes, ": the same, as text"},
    Subcommand{"info", 2, info, ": whether all keys have a member that holds them"},
    Subcommand{"myid", 2, my_id, ": the id of this server"},
    Subcommand{"keyslot", 3, key_slot, "<key>: the key's slot of Redis"}};

Task cluster(Job& job, Reply& reply) { return run_subcommand(kClusterSubcommands, job, reply); }

/// Clients that read from replicas send these. There are none, and all servers have all keys.
Task accept(Job&, Reply& reply) { co_return reply.ok(); }

constexpr std::array kClusterCommands{at_once("cluster", -2, cluster),
                                      at_once("readonly", 1, accept),
                                      at_once("readwrite", 1, accept)};

}  // namespace

std::span<const Command> cluster_commands() noexcept { return kClusterCommands; }

}  // namespace dunlin::app::resp
