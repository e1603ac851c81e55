#include "store/serve.hpp"

#include <algorithm>
#include <exception>
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
#include "standard_output.hpp"
#include "store/server.hpp"
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
  if (!options.takes_keys && !options.hands_over) return;
  if (options.takes_keys && !options.place.join)
    throw BadInput("--take-keys: a founder has its keys from the start; it is for one with --join");
  if (options.place.join && !options.takes_keys)
    throw BadInput("--hand-over: one that joins without --take-keys holds no keys");
  if (options.evicts)
    throw BadInput(fmt::format("{}: keys move only without eviction",
                               options.takes_keys ? "--take-keys" : "--hand-over"));
}

/// Prints lines that begin with the member's name.
class Printer {
 public:
  explicit Printer(const std::string& name) : name_(name) {}
  void operator()(const std::string& text) const { say(fmt::format("{}: {}\n", name_, text)); }
  /// What must not keep the member from its work if it cannot be printed: see complain().
  void try_to(const std::string& text) noexcept {
    try {
      (*this)(text);
    } catch (const Error&) {
      if (!failure_) failure_ = std::current_exception();
    }
  }
  /// Throws what try_to() has met.
  void complain() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const std::string& name_;
  std::exception_ptr failure_;
};

void say_how_it_took(const StoreOperation& taking, Printer& print) {
  if (taking.ok())
    print.try_to("has taken half of a member's keys");
  else if (taking.status() == remote::Status::not_allowed)
    print.try_to("has taken no keys: each member that has keys has given half of them already");
  else
    print.try_to(fmt::format("has not taken half of a member's keys, and holds what had moved: {}",
                             remote::describe(taking.status(), "store")));
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
std::string hand_over(Store& store, std::uint32_t copies, SignalGuard& signals, Printer& print) {
  print.try_to("hands its keys over; after a further signal it leaves without");
  StoreOperation leaving = store.leave();
  while (leaving.wait(kLookAtSignalsNs) == remote::Status::under_way)
    if (const char* const signal = further_signal(signals)) {
      print.try_to(fmt::format("leaves without handing over the rest, because of {}", signal));
      return fmt::format("{} came before all had moved", signal);
    }
  if (leaving.ok()) {
    print.try_to("has handed its keys over");
    return {};
  }
  if (leaving.status() != remote::Status::not_allowed)
    return remote::describe(leaving.status(), "store");
  if (!holds_keys(store)) return {};
  return copies == 1 ? "there is no other member that has keys and has given none"
                     : "there are no two other members for both copies";
}

}  // namespace

void serve(ServeOptions options) {
  check_moves(options);
  const Endpoint endpoint = choose_endpoint(options);
  const ServiceOptions service_options{
      .password = read_secret_file(options.password_file, "--password-file")};
  complete(options.place);
  const bool joinable = may_be_joined(options.place);
  if (!joinable) options.place.listen = options.place.fabric.rendezvous;  // looked for by nobody
  const cast::Place place(options.place);
  const std::string& name = place.name();
  Printer print(name);
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
  Store store(progress, {.contributes = options.takes_keys,
                         .memory_bytes = memory_bytes,
                         .large_bytes = memory_bytes / kLargeShare,
                         .copies = options.copies,
                         .cache_bytes = options.cache_mb * kMegabyte,
                         .eviction = options.evicts ? Eviction::lru : Eviction::none,
                         .limit_bytes = options.max_memory_mb * kMegabyte});
  StoreValues values(store, [&](const std::string& why) { print.try_to(why); });
  Service service(values, {.password = service_options.password, .port = server.port()});
  print(fmt::format("serves Redis clients at {}, over {}",
                    Endpoint{endpoint.address, server.port()}.text(), fabric.description()));
  StoreOperation taking;
  if (options.takes_keys) {
    store.take_keys(taking);
    taking.then([&] { say_how_it_took(taking, print); });
  }
  server.run(service, signals.descriptor());
  const char* const signal = signals.caught();
  const std::string kept =
      options.hands_over ? hand_over(store, options.copies, signals, print) : std::string();
  cast::leave(*entered.group, name, signals);
  print(fmt::format("ends because of {}, after {} commands",
                    signal == nullptr ? "a signal" : signal, service.counters().commands));
  print.complain();
  if (!kept.empty())
    throw Error("--hand-over: keys that had not moved have gone with this member: " + kept);
}

}  // namespace dunlin::app::resp
