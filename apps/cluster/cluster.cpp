#include "cluster/cluster.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include <dunlin/fabric/mixed.hpp>
#include <dunlin/fabric/ofi.hpp>
#include <dunlin/fabric/shm.hpp>
#include <dunlin/fabric/tcp.hpp>
#include <dunlin/fabric/verbs.hpp>

#include "cluster/aside.hpp"
#include "cluster/own_address.hpp"
#include "cluster/secret.hpp"
#include "command.hpp"
#include "fabric/launch/complete.hpp"
#include "fabric/launch/job.hpp"
#include "fabric/private_file.hpp"
#include "group_name.hpp"
#include "text.hpp"

namespace dunlin::app {
namespace {

std::optional<std::uint32_t> in_ms(const std::optional<double>& seconds) {
  if (!seconds) return {};
  return static_cast<std::uint32_t>(*seconds * 1e3);
}

constexpr std::array kPlaces{"DUNLIN_MEMBERS", "DUNLIN_NAMES", "DUNLIN_NAME", "DUNLIN_RANK",
                             "DUNLIN_RENDEZVOUS"};

/// Whether a launcher, or a user, has given this process a place by the environment: one member is
/// none.
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

/// Of `there`, lines that begin "provider: device ", or "device " where there are no providers.
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
  if (fabric == "tcp" || fabric == "auto") return tcp::networks();
  return fabric == "ofi" ? asked_aside(ofi::networks) : std::vector<std::string>();
}

Cluster::Cluster(const FabricOptions& options)
    : fabric_(options.fabric),
      timeout_ms_(in_ms(options.join_timeout_s)),
      silence_timeout_ms_(in_ms(options.silence_timeout_s)) {
  check(options);
  if (fabric_ == "shm" || fabric_ == "sim") return;
  try {
    choose_hosts(options);
  } catch (const Error& error) {  // whatever it is, the user has said it
    throw BadInput(error.what());
  }
  choose_network(options);
}

/// From the options, or else from a launcher, for which each process is a host (docs/deploy.md has
/// the variables); or this host is alone. The environment fills the options still open.
void Cluster::choose_hosts(const FabricOptions& options) {
  const launch::Environment environment;
  NetworkJoinOptions place{.group = "dunlin", .address = options.address};
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
  launched_ = launch::complete(place, environment);
  if (!silence_timeout_ms_) silence_timeout_ms_ = place.silence_timeout_ms;  // a launcher's watch
  take_place(place);
  check({.hosts = hosts_,
         .host = host_,
         .rendezvous = place.rendezvous,
         .rendezvous_option = said ? "--rendezvous" : "DUNLIN_RENDEZVOUS",
         .secret = secret_,
         .tls = tls_});
  if (!alone) rendezvous_ = place.rendezvous;
}

void Cluster::take_place(const NetworkJoinOptions& place) {
  hosts_ = place.names.empty() ? place.members : static_cast<std::uint32_t>(place.names.size());
  const auto own = std::find(place.names.begin(), place.names.end(), place.name);
  host_ = place.names.empty() ? place.rank : static_cast<std::uint32_t>(own - place.names.begin());
  secret_ = place.secret;
  tls_ = place.tls;
  address_ = place.address;
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
  device_ = options.device;
  encrypt_ = options.encrypt;
  const bool by_ip = options.provider.empty() || options.provider == "tcp";
  if (by_ip && !address_.empty()) {
    demand_own_address(options.address.empty() ? "DUNLIN_ADDRESS" : "--address", address_);
  }
  if (fabric_ == "verbs") {
    const std::string device = device_.empty() ? "" : " --device " + in_quotes(device_);
    const std::vector<std::string> there = rdma_devices();
    const auto asked = std::find(there.begin(), there.end(), device_);
    if (!there.empty() && (device_.empty() || asked != there.end())) return;
    demand_there(there, "--fabric verbs" + device, device_ + " ");
    return;
  }
  if (fabric_ == "tcp" || (fabric_ == "auto" && options.provider.empty())) {
    const std::vector<std::string> rdma = rdma_devices();
    const bool by_rdma =
        fabric_ == "auto" && std::find(rdma.begin(), rdma.end(), device_) != rdma.end();
    if (!device_.empty() && !by_rdma)
      demand_there(networks_of(fabric_), "--fabric " + fabric_ + " --device " + in_quotes(device_),
                   device_ + " ");
    return;
  }
  provider_ = options.provider.empty() ? ofi::kDefaultProvider : options.provider;
  const std::string asked =
      fmt::format("--fabric {} --provider {}{}{}", fabric_, in_quotes(provider_),
                  device_.empty() ? "" : " --device ", device_.empty() ? "" : in_quotes(device_));
  demand_there(networks_of("ofi"), asked,
               provider_ + ": " + (device_.empty() ? std::string() : device_ + " "));
}

void Cluster::agree(Intent intent, std::uint32_t timeout_ms) const {
  intent.text = fmt::format("{}{}{}{}: {}", fabric_, provider_.empty() ? "" : " ", provider_,
                            encrypt_ ? ", encrypted" : "", intent.text);
  app::agree({.hosts = hosts_,
              .host = host_,
              .rendezvous = rendezvous_,
              .secret = secret_,
              .tls = tls_,
              .timeout_ms = timeout_ms_.value_or(timeout_ms)},
             intent);
}

std::string Cluster::group(const std::string& what) const {
  return hosts_ == 1 ? fresh_group(what) : what;
}

/// The options of every fabric, and those of fabrics between hosts.
template <class JoinOptions>
JoinOptions Cluster::options_of(const MemberPlacement& placement) const {
  JoinOptions options;
  options.group = placement.group;
  options.members = placement.members;
  options.rank = placement.rank;
  options.timeout_ms = timeout_ms_.value_or(placement.timeout_ms);
  options.silence_timeout_ms = silence_timeout_ms_.value_or(placement.silence_timeout_ms);
  if constexpr (requires { options.rendezvous; }) {
    options.rendezvous = rendezvous_.empty() ? "unix:" + placement.group : rendezvous_;
    options.secret = secret_;
    options.tls = tls_;
    options.provider = provider_;
    options.encrypt = encrypt_;
    options.device = device_;
    options.address = address_;
  }
  return options;
}

/// The one place that knows how each fabric is joined.
std::unique_ptr<Fabric> Cluster::join(const MemberPlacement& placement) const {
  if (fabric_ == "shm") return shm::join(options_of<shm::JoinOptions>(placement));
  if (fabric_ == "tcp") return tcp::join(options_of<NetworkJoinOptions>(placement));
  if (fabric_ == "auto") return mixed::join(options_of<NetworkJoinOptions>(placement));
  if (fabric_ == "verbs") return verbs::join(options_of<NetworkJoinOptions>(placement));
  if (fabric_ == "ofi") return ofi::join(options_of<NetworkJoinOptions>(placement));
  throw Error("no process can join the fabric " + fabric_);
}

std::string Cluster::describe(const Fabric& fabric) const {
  const std::string& network = fabric.description();
  return launched_.empty() ? network : network + "; " + launched_;
}

}  // namespace dunlin::app
