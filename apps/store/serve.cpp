#include "store/serve.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "command.hpp"
#include "endpoint.hpp"
#include "fabric/private_file.hpp"
#include "multicast/enter.hpp"
#include "multicast/leave.hpp"
#include "signals.hpp"
#include "standard_output.hpp"
#include "store/server.hpp"
#include "store/store_values.hpp"

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kLargeShare = 4;  // of the memory, for entries of more than 32 KB

Endpoint choose_endpoint(const ServeOptions& options) {
  const Endpoint endpoint = Endpoint::parse("--resp", options.endpoint, kDefaultEndpoint);
  if (!endpoint.is_loopback() && options.password_file.empty())
    throw BadInput(fmt::format(
        "--resp {}: other hosts can reach it, so clients need a password; give --password-file",
        endpoint.text()));
  return endpoint;
}

std::string read_password(const std::string& file) {
  if (file.empty()) return {};
  try {
    return read_secret(file, "--password-file");
  } catch (const Error& error) {
    throw BadInput(error.what());
  }
}

/// A store of one member needs no names.
void complete(cast::PlaceOptions& place) {
  if (place.join) return;
  if (place.members.empty() && place.name.empty()) place.name = "a";
  if (place.members.empty()) place.members = {place.name};
}

/// Between hosts, members that say where they are found can be joined.
bool may_be_joined(const cast::PlaceOptions& place) {
  const bool is_here = place.fabric.rendezvous.empty() || place.fabric.fabric == "shm";
  return is_here || !place.listen.empty();
}

}  // namespace

void serve(ServeOptions options) {
  const Endpoint endpoint = choose_endpoint(options);
  const ServiceOptions service_options{.password = read_password(options.password_file)};
  complete(options.place);
  const bool joinable = may_be_joined(options.place);
  if (!joinable) options.place.listen = options.place.fabric.rendezvous;  // looked for by nobody
  const cast::Place place(options.place);
  const std::string& name = place.name();
  const auto print = [&name](const std::string& text) { say(fmt::format("{}: {}\n", name, text)); };
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
  Store store(progress, {.memory_bytes = memory_bytes,
                         .large_bytes = memory_bytes / kLargeShare,
                         .copies = options.copies,
                         .cache_bytes = options.cache_mb * kMegabyte,
                         .eviction = options.evicts ? Eviction::lru : Eviction::none,
                         .limit_bytes = options.max_memory_mb * kMegabyte});
  StoreValues values(store);
  Service service(values, {.password = service_options.password, .port = server.port()});
  print(fmt::format("serves Redis clients at {}, over {}",
                    Endpoint{endpoint.address, server.port()}.text(), fabric.description()));
  server.run(service, signals.descriptor());
  const char* const signal = signals.caught();
  cast::leave(*entered.group, name, signals);
  print(fmt::format("ends because of {}, after {} commands",
                    signal == nullptr ? "a signal" : signal, service.counters().commands));
}

}  // namespace dunlin::app::resp
