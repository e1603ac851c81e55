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

bool conclude_status(Job& job, Reply& reply) {
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
  return true;
}

// --- DRAIN, REBALANCE ----------------------------------------------------------------------------

const char* begin_drain(Job& job) {
  job.order.kind = Order::Kind::settle;
  return values_of(job).hold_keys(false);
}

const char* begin_rebalance(Job& job) {
  job.order.kind = Order::Kind::settle;
  return values_of(job).hold_keys(true);
}

/// Nothing is left to be moved: either all has gone, or the rest has nowhere to go.
bool conclude_drain(Job& job, Reply& reply) {
  const KeyValues& values = values_of(job);
  const StorePlacement placement = values.placement();
  const auto own =
      std::ranges::find(placement.members, values.self(), &StorePlacement::Member::rank);
  if (own == placement.members.end()) return reply.ok();
  const std::uint32_t left = own->owned + own->copies + own->partial;
  if (own->weight != 0)
    return reply.error("ERR this member keeps its share: DUNLIN REBALANCE has come meanwhile");
  if (left == 0) return reply.ok();
  return reply.error(
      fmt::format("ERR {} slots are still here, because no other member has room for them: let one "
                  "more join; or take the share back by DUNLIN REBALANCE",
                  left));
}

// --- the command ---------------------------------------------------------------------------------

struct MemberCommand {
  std::string_view word;
  const char* (*begin)(Job& job);
  bool (*conclude)(Job& job, Reply& reply);
  std::string_view help;
};

const char* begin_nothing(Job& job) {
  job.order.kind = Order::Kind::nothing;
  return nullptr;
}

bool conclude_help(Job& job, Reply& reply);

constexpr std::array kMemberCommands{
    MemberCommand{"status", begin_nothing, conclude_status, ": which members hold which share"},
    MemberCommand{"drain", begin_drain, conclude_drain,
                  ": hands all keys of this member to others, and replies when they are there"},
    MemberCommand{"rebalance", begin_rebalance, conclude_ok,
                  ": gives this member its share, and replies when no key moves any more"},
    MemberCommand{"help", begin_nothing, conclude_help, ": these lines"}};

bool conclude_help(Job&, Reply& reply) {
  reply.array(kMemberCommands.size() + 1);
  reply.simple("DUNLIN <subcommand>. Subcommands are:");
  for (const MemberCommand& one : kMemberCommands) {
    std::string word(one.word);
    for (char& c : word) c = static_cast<char>(c - 'a' + 'A');
    reply.simple(fmt::format("{} {}", word, one.help));
  }
  return true;
}

/// Null if there is none of the job's word.
const MemberCommand* find(const Job& job) noexcept {
  const auto found = std::ranges::find_if(kMemberCommands, [&](const MemberCommand& one) {
    return is_word(job.arguments[1], one.word);
  });
  return found == kMemberCommands.end() ? nullptr : &*found;
}

const char* begin(Job& job) {
  const MemberCommand* const one = find(job);
  return one == nullptr ? "ERR unknown subcommand. Try DUNLIN HELP." : one->begin(job);
}

bool conclude(Job& job, Reply& reply) { return find(job)->conclude(job, reply); }

constexpr std::array kCommands{
    Command{"dunlin", 2, Command::Shape::all_keys, false, nullptr, begin, conclude}};

}  // namespace

std::span<const Command> member_commands() noexcept { return kCommands; }

}  // namespace dunlin::app::resp
