#include "command.hpp"

#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/daemon.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/run.hpp>

#include "attendant.hpp"
#include "cluster/cluster.hpp"
#include "cluster/fabric_options.hpp"
#include "member_events.hpp"
#include "multicast/leave.hpp"
#include "signals.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr std::uint32_t kDaemonJoinTimeOutMs = 60'000;

constexpr const char* kDaemonDescription =
    "Be a member of a group, and make its shared segments available to the other processes of "
    "this\n"
    "host, which attach to it (dunlin::attach).";

constexpr const char* kDaemonFooter = R"(
One such process a host, with --hosts and --host; or several members on one host, with --fabric shm,
--members and --rank. Clients find it by the group's name, or by --socket, which may be in a directory
that is mounted into containers. It runs until a signal (Ctrl-C, SIGTERM) comes.

Exit status: 0 a signal has ended it; 2 wrong input; 3 it could not run, or the group had to stop.

Examples:
  dunlin daemon --group rack7
  dunlin daemon --group rack7 --socket /run/dunlin/rack7 --mode 660
  dunlin daemon --group rack7 --fabric tcp --hosts 3 --host 0 --rendezvous node1:7700
                --secret-file /etc/dunlin/secret)";

struct ServeOptions {
  std::string group;
  std::optional<std::uint32_t> members;
  std::optional<std::uint32_t> rank;
  std::size_t pool_bytes = std::size_t{1} << 26;
  std::string mode = "600";
  FabricOptions fabric;
  DaemonOptions daemon;
};

std::uint32_t mode_of(const std::string& text) {
  const bool octal =
      !text.empty() && text.size() <= 4 && text.find_first_not_of("01234567") == std::string::npos;
  if (!octal)
    throw BadInput(fmt::format("--mode {}: must be an octal number, as of chmod", in_quotes(text)));
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 8));
}

void run_daemon(const ServeOptions& options) {
  check(options.fabric);
  const Cluster cluster(options.fabric);
  if (cluster.simulated()) throw BadInput("--fabric sim: a daemon serves real processes");
  DaemonOptions daemon_options = options.daemon;
  daemon_options.group = options.group;
  daemon_options.socket_mode = mode_of(options.mode);
  SignalGuard signals;
  const std::unique_ptr<Fabric> fabric =
      cluster.join({.group = options.group,
                    .members = options.members.value_or(cluster.hosts()),
                    .rank = options.rank.value_or(cluster.host()),
                    .timeout_ms = kDaemonJoinTimeOutMs,
                    .silence_timeout_ms = kServerSilenceMs});
  Group group(*fabric);
  print_member_events(group, std::to_string(fabric->rank()));
  GroupMembers members(group);
  remote::Progress progress(*fabric, members);
  SegmentSpace space(progress, {.pool_bytes = options.pool_bytes});
  Daemon daemon(space, daemon_options);
  say(fmt::format("daemon of group {}: process {}, member {} of {}, for up to {} clients\n",
                  options.group, getpid(), fabric->rank(), fabric->size(), daemon_options.clients));
  Attendant attendant(signals, [&, told = std::string()]() mutable {
    if (daemon.last_cut_off() != told) {
      told = daemon.last_cut_off();
      say(told + "\n");
    }
    return progress.stopped();
  });
  Loop(*fabric, {.stop = attendant.stop()}).add(daemon).add(attendant).run();
  if (attendant.signal() == nullptr) throw Error(progress.why_stopped());
  cast::leave(group, fmt::format("member {}", fabric->rank()), signals);
  say(fmt::format("ends because of {}; it has served {} operations\n", attendant.signal(),
                  daemon.served()));
}

void add_daemon_limits(CLI::App& command, ServeOptions& options) {
  DaemonOptions& daemon = options.daemon;
  const auto add_limit = [&](const char* option, auto& number, const char* about) {
    add_number(command, option, number, "N", about)->capture_default_str();
  };
  add_limit("--pool-bytes", options.pool_bytes, "What this member contributes to the segments");
  add_limit("--clients", daemon.clients, "So many processes and threads may attach");
  add_limit("--operations", daemon.operations, "Each may have so many under way: a power of two");
  add_limit("--transfer-bytes", daemon.transfer_bytes, "Of one get or put of a client");
  add_limit("--quota-bytes", daemon.quota_bytes,
            "Of a client's segments without a name, and of a user's with one");
  add_limit("--quota-locks", daemon.quota_locks, "That a client may hold");
  add_limit("--client-silence-ms", daemon.silence_timeout_ms,
            "A client that does not poll for so long is cut off; 0: never");
}

}  // namespace

void add_daemon(CLI::App& program) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App& command = *program.add_subcommand("daemon", kDaemonDescription);
  command.footer(kDaemonFooter);
  add_text(command, "--group", options->group, "NAME", "Its name, the same for all")->required();
  add_number(command, "--members", options->members, "N", "How many (default: --hosts)");
  add_number(command, "--rank", options->rank, "R", "Of this one, from 0 (default: --host)");
  add_text(command, "--socket", options->daemon.socket, "PATH",
           "Where clients find it, instead of by name");
  command
      .add_option("--mode", options->mode, "Of the socket: those who may write there may attach")
      ->type_name("OCTAL")
      ->capture_default_str();
  add_text(command, "--access-group", options->daemon.access_group, "GROUP",
           "Without --socket: a Unix group that may attach, too");
  add_daemon_limits(command, *options);
  add_fabric_options(command, options->fabric,
                     "How the daemons share segments: shm (one host), "
                     "tcp, ofi or verbs",
                     {.join = "60", .silence = fmt::format("{}", kServerSilenceMs / 1'000)});
  command.callback([options] { run_daemon(*options); });
}

}  // namespace dunlin::app
