#include "store/serve.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "command.hpp"
#include "endpoint.hpp"
#include "multicast/enter.hpp"
#include "multicast/leave.hpp"
#include "read_file.hpp"
#include "signals.hpp"
#include "store/member_printer.hpp"
#include "store/progress_bar.hpp"
#include "store/server.hpp"
#include "store/server_directory.hpp"
#include "store/share_watch.hpp"
#include "store/store_values.hpp"

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kLargeShare = 4;  // one fourth of the memory is for entries above 32 KB

Endpoint choose_endpoint(const ServeOptions& options) {
  const Endpoint endpoint = Endpoint::parse("--resp", options.endpoint, kDefaultEndpoint);
  if (!endpoint.is_loopback() && options.password_file.empty())
    throw BadInput(fmt::format(
        "--resp {}: other hosts can reach it, so clients need a password; give --password-file",
        endpoint.text()));
  return endpoint;
}

/// A store of one member needs no names.
void complete(cast::PlaceOptions& place) {
  if (place.join) return;
  if (place.members.empty() && place.name.empty()) place.name = "a";
  if (place.members.empty()) place.members = {place.name};
}

/// Between hosts, members that say where they are found can be joined.
bool may_be_joined(const cast::PlaceOptions& place) {
  const bool is_here = place.fabric.rendezvous.empty() || place.fabric.network == "shm";
  return is_here || !place.listen.empty();
}

void check_moves(const ServeOptions& options) {
  if (options.holds_none && !options.place.join)
    throw BadInput(
        "--no-keys: a founder holds keys from the start; it is for one that comes with --join");
  if (options.holds_none && options.hands_over)
    throw BadInput("--hand-over: one with --no-keys holds no keys; give one of the two");
}

/// What cluster clients are told of this server. Of an address that stands for all addresses of the
/// host, the host's name.
ServedAt describe_self(const ServeOptions& options, const Fabric& fabric, const std::string& name,
                       const Endpoint& endpoint, std::uint16_t port) {
  ServedAt self{.rank = fabric.rank(),
                .id = make_run_id(),
                .name = name,
                .host = endpoint.address,
                .port = port};
  if (!options.announced_host.empty()) {
    self.host = options.announced_host;
  } else if (endpoint.address == "0.0.0.0" || endpoint.address == "::") {
    std::array<char, kMaxHostBytes + 1> host{};
    if (gethostname(host.data(), kMaxHostBytes) == 0 && host[0] != '\0') self.host = host.data();
  }
  return self;
}

constexpr std::uint64_t kLookAtSignalsNs = 10'000'000;

bool holds_keys(const Store& store) {
  bool holds = false;
  store.for_each_local([&](const StoreEntry&) { holds = true; });
  return holds;
}

/// A further SIGHUP says no more than the first one: a terminal that closes can send several.
const char* further_signal(SignalGuard& signals) {
  const char* const signal = signals.caught();
  return signal == nullptr || std::string_view(signal) == "SIGHUP" ? nullptr : signal;
}

/// Returns when all keys have moved, or another signal comes: why some have not; empty if all have.
std::string hand_over(Store& store, std::uint32_t copies, ServerDirectory& directory,
                      SignalGuard& signals, MemberPrinter& print) {
  print.try_to("hands its keys over; after a further signal it leaves without");
  const auto held = [&] { return held_by(part_of(store.placement(), store.fabric().rank())); };
  const std::uint32_t slots = held();
  StoreOperation leaving = store.leave();
  ProgressBar bar("hands its keys over", slots);
  while (leaving.wait(kLookAtSignalsNs) == remote::Status::under_way) {
    directory.poll();
    if (bar.is_due()) bar.show(slots - std::min(slots, held()));
    const char* const signal = further_signal(signals);
    if (signal == nullptr) continue;
    bar.clear();
    print.try_to(fmt::format("leaves without handing over the rest, because of {}", signal));
    return fmt::format("{} came before all had moved", signal);
  }
  bar.clear();
  if (leaving.ok()) {
    print.try_to("has handed its keys over");
    return {};
  }
  if (leaving.status() != remote::Status::not_allowed)
    return remote::describe(leaving.status(), "store");
  if (!holds_keys(store)) return {};
  return copies == 1 ? "there is no other member that holds keys"
                     : "there are no two other members for both copies";
}

}  // namespace

void serve(ServeOptions options) {
  check_moves(options);
  const Endpoint endpoint = choose_endpoint(options);
  const std::string password = read_secret_file(options.password_file, "--password-file");
  complete(options.place);
  const bool joinable = may_be_joined(options.place);
  if (!joinable) options.place.listen = options.place.fabric.rendezvous;  // looked for by nobody
  const cast::Place place(options.place);
  const std::string& name = place.name();
  MemberPrinter print(name);
  print(fmt::format("process {}", getpid()));
  SignalGuard signals;
  Server server(endpoint);  // before the group: a port that is taken is no reason to disturb it
  GroupOptions group_options;
  if (joinable) group_options.rendezvous = place.rendezvous();
  const cast::Entered entered = cast::enter(place, std::move(group_options), signals);
  if (!entered.group) return;
  const Fabric& fabric = entered.group->fabric();
  GroupMembers members(*entered.group, options.most_members);
  remote::Progress progress(entered.group->fabric(), members);
  const std::size_t memory_bytes = options.memory_mb * kMegabyte;
  const bool holds = !options.holds_none;
  Store store(progress, {.contributes = options.place.join && holds,
                         .memory_bytes = memory_bytes,
                         .large_bytes = memory_bytes / kLargeShare,
                         .copies = options.copies,
                         .cache_bytes = options.cache_mb * kMegabyte,
                         .eviction = options.evicts ? Eviction::lru : Eviction::none,
                         .limit_bytes = options.max_memory_mb * kMegabyte});
  const ServedAt self = describe_self(options, fabric, name, endpoint, server.port());
  ServerDirectory directory(progress, self);
  std::optional<ShareWatch> share;
  StoreValues values(store, {.on_refused = [&](const std::string& why) { print.try_to(why); },
                             .copies = options.copies,
                             .weight = holds ? options.memory_mb : 0,
                             .directory = &directory,
                             .on_poll =
                                 [&] {
                                   if (share) share->poll();
                                 }});
  Service service(values, {.password = password, .port = server.port(), .run_id = self.id});
  print(fmt::format("serves Redis clients at {}, over {}",
                    Endpoint{endpoint.address, server.port()}.text(), fabric.description()));
  if (options.place.join)
    print(holds ? "gets its share of the keys, while clients use them"
                : "holds no keys, and serves those of the others");
  if (holds) share.emplace(store, options.copies, print);
  server.run(service, signals.descriptor());
  const char* const signal = signals.caught();
  share.reset();
  directory.withdraw();
  const std::string kept = options.hands_over
                               ? hand_over(store, options.copies, directory, signals, print)
                               : std::string();
  cast::leave(*entered.group, name, signals);
  print(fmt::format("ends because of {}, after {} commands",
                    signal == nullptr ? "a signal" : signal, service.counters().commands));
  print.complain();
  if (!kept.empty())
    throw Error("--hand-over: keys that had not moved have gone with this member: " + kept);
}

}  // namespace dunlin::app::resp
