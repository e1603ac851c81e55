#include "cluster/cluster.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include <dunlin/join.hpp>

#include "cluster/aside.hpp"
#include "cluster/own_address.hpp"
#include "command.hpp"
#include "fabric/join/network.hpp"
#include "fabric/launch/complete.hpp"
#include "fabric/launch/job.hpp"
#include "fabric/private_file.hpp"
#include "group_name.hpp"
#include "text.hpp"

namespace dunlin::app {
namespace {

constexpr std::array kPlaces{"DUNLIN_MEMBERS", "DUNLIN_NAMES", "DUNLIN_NAME", "DUNLIN_RANK",
                             "DUNLIN_RENDEZVOUS"};

/// Whether a launcher, or a user, has given this process a place among several by the environment.
bool placed_by(const launch::Environment& environment) {
  const bool told = std::any_of(kPlaces.begin(), kPlaces.end(),
                                [&](const char* name) { return environment.has(name); });
  const std::optional<launch::Job> job = launch::find_job(environment);
  return told || (job && job->members.value_or(0) != 1);
}

void check_place(const FabricOptions& options) {
  if (!options.hosts || !options.host || options.rendezvous.empty()) {
    throw BadInput("--rendezvous, --hosts and --host: several hosts need all three");
  }
  const std::uint32_t hosts = *options.hosts;
  if (hosts == 0 || hosts > kMaxViewMembers) {
    throw BadInput(fmt::format("--hosts {}: 1 to {} are possible", hosts, kMaxViewMembers));
  }
  if (*options.host >= hosts) {
    throw BadInput(
        fmt::format("--host {}: the {} hosts are 0 to {}", *options.host, hosts, hosts - 1));
  }
}

void demand_secret(const launch::Environment& environment) {
  if (environment.has("DUNLIN_SECRET_FILE") || environment.has("DUNLIN_SECRET")) return;
  throw BadInput(
      "--secret-file is missing: several hosts need a secret that nobody else knows, in a file on "
      "each; a good one: openssl rand -hex 32");
}

/// `there` has lines that begin "provider: device ", or "device " where there are no providers.
void demand_there(const std::vector<std::string>& there, const std::string& asked,
                  const std::string& start) {
  const bool found = std::any_of(there.begin(), there.end(),
                                 [&](const std::string& line) { return line.starts_with(start); });
  if (found) return;
  std::string text = fmt::format("{}: there is no such network. This host has:", asked);
  if (there.empty()) text += " none";
  for (const std::string& line : there) text += "\n  " + line;
  throw BadInput(text);
}

/// By their names in the kernel.
std::vector<std::string> rdma_devices() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

}  // namespace

std::vector<std::string> networks_of(const std::string& fabric) {
  if (fabric == "verbs") return rdma_devices();
  if (fabric == "ofi") return asked_aside([] { return devices_of("ofi"); });
  return devices_of(fabric == "auto" ? "tcp" : fabric);
}

Cluster::Cluster(const FabricOptions& options) : common_(options) {
  check(options);
  if (common_.network == "shm" || simulated()) return;
  try {
    choose_hosts(options);
  } catch (const Error& error) {  // whatever it is, the user has said it
    throw BadInput(error.what());
  }
  choose_network(options);
}

/// Takes the hosts from the options, or else from a launcher, for which each process is a host
/// (docs/deploy.md); or this host is alone. The environment fills the options still open.
void Cluster::choose_hosts(const FabricOptions& options) {
  const launch::Environment environment;
  JoinOptions place = options;
  place.group = "dunlin";
  place.secret_file.clear();
  const bool said = options.hosts || options.host || !options.rendezvous.empty();
  const bool alone = !said && !placed_by(environment);
  if (alone && !options.secret_file.empty()) {
    throw BadInput("--secret-file: one host needs none; say --rendezvous, --hosts and --host");
  }
  if (!options.secret_file.empty()) {
    place.secret = read_secret(options.secret_file, "--secret-file");
  }
  if (said) {
    check_place(options);
    if (place.secret.empty()) demand_secret(environment);
    place.members = *options.hosts;
    place.rank = *options.host;
    place.rendezvous = options.rendezvous;
  } else if (alone) {
    place.members = 1;
    place.rank = 0;
    place.rendezvous = "unix:alone";  // each group under its own name: join()
    place.secret = random_secret();
  }
  launched_ = launch::complete(place, true, environment);
  take_place(place);
  check({.hosts = hosts_,
         .host = host_,
         .rendezvous = place.rendezvous,
         .rendezvous_option = said ? "--rendezvous" : "DUNLIN_RENDEZVOUS",
         .secret = place.secret,
         .tls = place.tls});
  if (alone) common_.rendezvous.clear();
}

void Cluster::take_place(const JoinOptions& place) {
  hosts_ = place.names.empty() ? place.members : static_cast<std::uint32_t>(place.names.size());
  const auto own = std::find(place.names.begin(), place.names.end(), place.name);
  host_ = place.names.empty() ? place.rank : static_cast<std::uint32_t>(own - place.names.begin());
  common_ = place;
  common_.names.clear();
  common_.name.clear();
  if (hosts_ == 0) {
    throw BadInput("DUNLIN_MEMBERS is missing (or DUNLIN_NAMES): how many hosts take part");
  }
  if (host_ >= hosts_) throw BadInput("DUNLIN_RANK is missing: each host must know which it is");
  if (hosts_ > kMaxViewMembers) {
    throw BadInput(fmt::format("{} hosts: at most {} can watch each other, as members of one view",
                               hosts_, kMaxViewMembers));
  }
}

void Cluster::choose_network(const FabricOptions& options) {
  const std::string& network = common_.network;
  const std::string& device = common_.device;
  const bool by_ip = common_.provider.empty() || common_.provider == "tcp";
  if (by_ip && !common_.address.empty()) {
    demand_own_address(options.address.empty() ? "DUNLIN_ADDRESS" : "--address", common_.address);
  }
  if (network == "verbs") {
    const std::string asked = device.empty() ? "" : " --device " + in_quotes(device);
    const std::vector<std::string> there = rdma_devices();
    const auto found = std::find(there.begin(), there.end(), device);
    if (!there.empty() && (device.empty() || found != there.end())) return;
    demand_there(there, "--fabric verbs" + asked, device + " ");
    return;
  }
  if (!network_of(network).has_providers || (network == "auto" && common_.provider.empty())) {
    const std::vector<std::string> rdma = rdma_devices();
    const bool by_rdma =
        network == "auto" && std::find(rdma.begin(), rdma.end(), device) != rdma.end();
    if (!device.empty() && !by_rdma)
      demand_there(networks_of(network), "--fabric " + network + " --device " + in_quotes(device),
                   device + " ");
    return;
  }
  if (common_.provider.empty()) common_.provider = ofi::kDefaultProvider;
  const std::string asked =
      fmt::format("--fabric {} --provider {}{}{}", network, in_quotes(common_.provider),
                  device.empty() ? "" : " --device ", device.empty() ? "" : in_quotes(device));
  demand_there(networks_of("ofi"), asked,
               common_.provider + ": " + (device.empty() ? std::string() : device + " "));
}

void Cluster::agree(Intent intent, std::uint32_t timeout_ms) const {
  intent.text = fmt::format("{}{}{}{}: {}", common_.network, common_.provider.empty() ? "" : " ",
                            common_.provider, common_.encrypt ? ", encrypted" : "", intent.text);
  app::agree({.hosts = hosts_,
              .host = host_,
              .rendezvous = common_.rendezvous,
              .secret = common_.secret,
              .tls = common_.tls,
              .timeout_ms = common_.timeout_ms.value_or(timeout_ms)},
             intent);
}

std::string Cluster::group(const std::string& what) const {
  return hosts_ == 1 ? fresh_group(what) : what;
}

std::unique_ptr<Fabric> Cluster::join(const MemberPlacement& placement) const {
  JoinOptions options = common_;
  options.group = placement.group;
  options.members = placement.members;
  options.rank = placement.rank;
  if (!options.timeout_ms) options.timeout_ms = placement.timeout_ms;
  if (!options.silence_timeout_ms) options.silence_timeout_ms = placement.silence_timeout_ms;
  if (network_of(options.network).between_hosts && options.rendezvous.empty())
    options.rendezvous = "unix:" + placement.group;
  return dunlin::join(options);
}

std::string Cluster::describe(const Fabric& fabric) const {
  const std::string& network = fabric.description();
  return launched_.empty() ? network : network + "; " + launched_;
}

}  // namespace dunlin::app
