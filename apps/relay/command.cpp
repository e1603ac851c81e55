#include "command.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/pubsub.hpp>
#include <dunlin/relay/relay.hpp>
#include <dunlin/run.hpp>

#include "attendant.hpp"
#include "endpoint.hpp"
#include "log_options.hpp"
#include "multicast/enter.hpp"
#include "multicast/leave.hpp"
#include "read_file.hpp"
#include "relay/kept_logs.hpp"
#include "signals.hpp"
#include "standard_output.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kRelayDescription =
    "Be a member of a group that publishes and subscribes for programs that are no members, by "
    "TCP.";

constexpr const char* kRelayFooter = R"(
It joins the group, or is one of its --members, and serves clients until a signal (Ctrl-C) comes.
Clients use <dunlin/relay.hpp>, or dunlin topic echo|publish --relay. An address that other hosts can
reach needs a secret, which clients must know: everything is then encrypted by TLS 1.3.

With --log it can be in logged topics, and is in all that the group has: each has a log below that
directory. Members that may have such logs are --log-founders; a topic that begins waits for them.

Exit status: 0 a signal has ended it; 2 wrong input; 3 it could not run, or is no member any more.

Examples:
  dunlin relay --group plant --members a,b,r --name r --serve 127.0.0.1:7480
  dunlin relay --group plant --join --name r2 --fabric tcp --contacts 10.0.0.1 --listen 10.0.0.9
               --secret-file secret --serve 10.0.0.9:7480
  dunlin relay --group plant --members a,b --name a --log logs/a --log-founders a,b,c --log-quorum)";

constexpr const char* kRelayEndpoint = "127.0.0.1:7480";

struct RelayCommandOptions {
  cast::PlaceOptions place = {};
  std::string endpoint = kRelayEndpoint;
  std::string secret_file = {};
  std::size_t queue_kb = 1'024;
  std::uint64_t slow_ms = 1'000;
  std::uint64_t stall_ms = 10'000;
  std::size_t clients = relay::kMaxClients;
  pubsub::ParticipantOptions logs = {};
};

relay::RelayOptions relay_options_of(const RelayCommandOptions& options) {
  constexpr std::uint64_t kMs = 1'000'000;
  const Endpoint endpoint = Endpoint::parse("--serve", options.endpoint, kRelayEndpoint);
  const std::string& file =
      options.secret_file.empty() ? options.place.fabric.secret_file : options.secret_file;
  relay::RelayOptions made{.address = endpoint.address,
                           .port = endpoint.port,
                           .clients = options.clients,
                           .queue_bytes = options.queue_kb * 1'024,
                           .slow_ns = options.slow_ms * kMs,
                           .stall_ns = options.stall_ms * kMs};
  if (!endpoint.is_loopback() && file.empty())
    throw BadInput(
        fmt::format("--serve {}: other hosts can reach it, so clients need a secret; give "
                    "--secret-file or --client-secret-file",
                    endpoint.text()));
  made.secret = read_secret_file(file, "the secret of clients");
  return made;
}

void run_relay(const RelayCommandOptions& options) {
  const relay::RelayOptions relay_options = relay_options_of(options);
  check_log_options(options.logs);
  const cast::Place place(options.place);
  const std::string& name = place.name();
  say(fmt::format("{}: process {}\n", name, getpid()));
  SignalGuard signals;
  const cast::Entered entered =
      cast::enter(place, GroupOptions{.rendezvous = place.rendezvous()}, signals);
  if (!entered.group) return;
  Group& group = *entered.group;
  const char* signal = nullptr;
  {
    pubsub::DomainParticipant participant(group, options.logs);
    relay::Relay relay(participant, relay_options);
    std::string at = fmt::format("{}: relays for clients at {}{}, over {}\n", name,
                                 Endpoint{relay_options.address, relay.port()}.text(),
                                 relay_options.secret.empty() ? "" : ", encrypted",
                                 group.fabric().description());
    std::optional<KeptLogs> logs;
    if (!options.logs.log_directory.empty())
      logs.emplace(participant, [&name](const std::string& what) { say(name + ": " + what); });
    Attendant attendant(signals, [&, told = std::string()]() mutable {
      if (!at.empty() && relay.relays() > 0) say(std::exchange(at, {}));  // it is among the relays
      if (relay.last_parting() != told) {
        told = relay.last_parting();
        say(told + "\n");
      }
      if (logs) logs->look();
      return group.ended();
    });
    Loop(group.fabric(), {.stop = attendant.stop()})
        .add(participant)
        .add(relay)
        .add(attendant)
        .run();
    signal = attendant.signal();
    if (signal == nullptr) throw Error(group.why_ended());
    relay.close();
    const auto counters = relay.counters();
    say(fmt::format(
        "{}: ends because of {}, after {} connections, {} samples published, {} delivered\n", name,
        signal, counters.at("accepted"), counters.at("published"), counters.at("delivered")));
  }
  cast::leave(group, name, signals);
}

}  // namespace

void add_relay(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("relay", kRelayDescription);
  command->footer(kRelayFooter);
  const auto options = std::make_shared<RelayCommandOptions>();
  cast::add_place_options(*command, options->place);
  command
      ->add_option("--serve", options->endpoint,
                   "Where clients connect; port 0: one that is free, which is printed")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  command
      ->add_option("--client-secret-file", options->secret_file,
                   "Holds the secret that clients must know (default: that of --secret-file)")
      ->type_name("FILE");
  const auto add_limit = [&](const char* option, auto& number, double least, double most,
                             const char* unit, const char* about) {
    add_number(*command, option, number, "N", about, number_between(least, most, unit))
        ->capture_default_str();
  };
  add_limit("--clients", options->clients, 1, static_cast<double>(relay::kMaxClients), "clients",
            "So many at a time");
  add_limit("--queue-kb", options->queue_kb, 1, 1 << 20, "KB", "That wait for one client");
  add_limit("--slow-ms", options->slow_ms, 0, 3.6e6, "ms",
            "A client that is late with stored samples holds its topic back for so long");
  add_limit("--stall-ms", options->stall_ms, 1, 3.6e6, "ms",
            "A client that takes nothing of what waits for it is cut off after so long");
  add_log_options(*command, options->logs,
                  "Keep the logs of all logged topics, each below this directory of this member's\n"
                  "own. It must exist");
  command->callback([options] { run_relay(*options); });
}

}  // namespace dunlin::app
