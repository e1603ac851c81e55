#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/connection.hpp"
#include "store/session.hpp"

/// DUNLIN: which members hold the keys, and how many of them this one holds.
namespace dunlin::app::resp {
namespace {

KeyValues& values_of(const Job& job) { return job.session->service().values(); }

// --- STATUS --------------------------------------------------------------------------------------

void number(Reply& reply, std::string_view name, std::uint64_t value) {
  reply.bulk(name);
  reply.integer(static_cast<std::int64_t>(value));
}

void text(Reply& reply, std::string_view name, std::string_view value) {
  reply.bulk(name);
  reply.bulk(value);
}

/// A member that serves no clients, such as a program with a Store, has no name and no address.
void tell_member(const StorePlacement::Member& member, const std::vector<ServedAt>& servers,
                 Reply& reply) {
  const auto found = std::ranges::find(servers, member.rank, &ServedAt::rank);
  const ServedAt server = found == servers.end() ? ServedAt{} : *found;
  reply.map(9);
  number(reply, "rank", member.rank);
  text(reply, "name", server.name);
  text(reply, "host", server.host);
  number(reply, "port", server.port);
  number(reply, "weight", member.weight);
  number(reply, "owned", member.owned);
  number(reply, "copies", member.copies);
  number(reply, "partial", member.partial);
  number(reply, "takes", member.takes ? 1 : 0);
}

Task status(Job& job, Reply& reply) {
  const KeyValues& values = values_of(job);
  const StorePlacement placement = values.placement();
  const std::vector<ServedAt> servers = values.servers();
  reply.map(8);
  number(reply, "rank", values.self());
  number(reply, "version", placement.version);
  number(reply, "slots", placement.slots);
  number(reply, "copies", values.copies());
  number(reply, "lost", placement.lost);
  number(reply, "lacking", placement.lacking);
  number(reply, "moving", placement.moving);
  reply.bulk("members");
  reply.array(placement.members.size());
  for (const StorePlacement::Member& member : placement.members)
    tell_member(member, servers, reply);
  co_return Replied{};
}

// --- DRAIN, REBALANCE ----------------------------------------------------------------------------

/// Once nothing is left to be moved, either all has gone, or the rest has nowhere to go.
Task drain(Job& job, Reply& reply) {
  KeyValues& values = values_of(job);
  if (const char* const wrong = values.hold_keys(false)) co_return wrong;
  co_await job.settle();
  const StorePlacement placement = values.placement();
  const auto own =
      std::ranges::find(placement.members, values.self(), &StorePlacement::Member::rank);
  if (own == placement.members.end()) co_return reply.ok();
  const std::uint32_t left = own->owned + own->copies + own->partial;
  if (own->weight != 0)
    co_return "ERR this member keeps its share: DUNLIN REBALANCE has come meanwhile";
  if (left == 0) co_return reply.ok();
  co_return reply.error(
      fmt::format("ERR {} slots are still here, because no other member has room for them: let one "
                  "more join; or take the share back by DUNLIN REBALANCE",
                  left));
}

Task rebalance(Job& job, Reply& reply) {
  if (const char* const wrong = values_of(job).hold_keys(true)) co_return wrong;
  co_await job.settle();
  co_return reply.ok();
}

constexpr std::array kSubcommands{
    Subcommand{"status", 2, status, ": which members hold which share"},
    Subcommand{"drain", 2, drain,
               ": hands all keys of this member to others, and replies when they are there"},
    Subcommand{"rebalance", 2, rebalance,
               ": gives this member its share, and replies when no key moves any more"},
    Subcommand{"help", 2, nullptr, ": these lines"}};  // run_subcommand() does it

Task dunlin(Job& job, Reply& reply) {
  if (find_subcommand(kSubcommands, job.arguments[1]) == nullptr)
    return refuse(job, reply, "ERR unknown subcommand. Try DUNLIN HELP.");
  return run_subcommand(kSubcommands, job, reply);
}

constexpr std::array kCommands{Command{"dunlin", 2, Command::Shape::all_keys, false, dunlin}};

}  // namespace

std::span<const Command> member_commands() noexcept { return kCommands; }

}  // namespace dunlin::app::resp
