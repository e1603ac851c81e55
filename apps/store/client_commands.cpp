#include <array>
#include <string>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/connection.hpp"
#include "store/session.hpp"

/// CLIENT.
namespace dunlin::app::resp {
namespace {

/// A line of CLIENT LIST, in the order of Redis.
std::string describe(const Session& session) {
  const std::uint64_t now_ms = session.service().values().unix_ms();
  return fmt::format(
      "id={} addr={} name={} age={} idle={} flags={} db=0 sub=0 psub=0 multi={} omem={} "
      "user=default resp={}\n",
      session.id(), session.address, session.name, (now_ms - session.began_ms()) / 1'000,
      (now_ms - session.asked_ms()) / 1'000, session.in_multi() ? "x" : "N",
      session.in_multi() ? static_cast<int>(session.queued()) : -1, session.output_capacity(),
      static_cast<int>(session.protocol()));
}

Task id(Job& job, Reply& reply) {
  co_return reply.integer(static_cast<std::int64_t>(job.session->id()));
}

Task info(Job& job, Reply& reply) { co_return reply.verbatim(describe(*job.session)); }

Task list(Job& job, Reply& reply) {
  std::string all;
  for (const auto& [number, session] : job.session->service().sessions()) {
    all += describe(*session);
    if (all.size() <= kMaxReplyBytes) continue;
    co_return "ERR the list would be over 8388608 bytes, which is the limit of a reply";
  }
  static_assert(kMaxReplyBytes == 8388608, "as this error says");
  co_return reply.verbatim(all);
}

Task set_name(Job& job, Reply& reply) {
  if (!is_client_name(job.arguments[2])) co_return kBadName;
  job.session->name = std::string(job.arguments[2]);
  co_return reply.ok();
}

Task get_name(Job& job, Reply& reply) {
  co_return job.session->name.empty() ? reply.null() : reply.bulk(job.session->name);
}

Task accept(Job&, Reply& reply) { co_return reply.ok(); }

constexpr std::array kSubcommands{
    Subcommand{"id", 2, id, ": the number of this connection"},
    Subcommand{"info", 2, info, ": what LIST says of this connection"},
    Subcommand{"list", 2, list, ": the connections of this server"},
    Subcommand{"setname", 3, set_name, "<name>: names this connection"},
    Subcommand{"getname", 2, get_name, ": the name of this connection"},
    Subcommand{"setinfo", 4, accept, "<option> <value>: is taken, and not kept"},
    Subcommand{"no-evict", 3, accept, "ON|OFF: is taken, and changes nothing"},
    Subcommand{"no-touch", 3, accept, "ON|OFF: is taken, and changes nothing"}};

Task client(Job& job, Reply& reply) { return run_subcommand(kSubcommands, job, reply); }

constexpr std::array kClientCommands{at_once("client", -2, client)};

}  // namespace

std::span<const Command> client_commands() noexcept { return kClientCommands; }

}  // namespace dunlin::app::resp
