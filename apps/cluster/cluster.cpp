#include "cluster/cluster.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include <dunlin/fabric/ofi.hpp>
#include <dunlin/fabric/shm.hpp>
#include <dunlin/fabric/verbs.hpp>

#include "cluster/secret.hpp"
#include "command.hpp"
#include "fabric/launch/complete.hpp"
#include "fabric/launch/job.hpp"
#include "group_name.hpp"
#include "text.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kDefaultProvider = "tcp";
constexpr const char* kSecretVariable = "DUNLIN_SECRET_FILE";

std::optional<std::uint32_t> in_ms(const std::optional<double>& seconds) {
  if (!seconds) return {};
  return static_cast<std::uint32_t>(*seconds * 1e3);
}

std::string secret_of(const FabricOptions& options) {
  if (!options.secret_file.empty()) return read_secret("--secret-file", options.secret_file);
  const char* const named = std::getenv(kSecretVariable);
  if (named != nullptr && *named != '\0') return read_secret(kSecretVariable, named);
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

/// By their names in the kernel: who asks the libraries cannot have children that use a device.
std::vector<std::string> rdma_devices() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

}  // namespace

Cluster::Cluster(const FabricOptions& options)
    : fabric_(options.fabric),
      address_(options.address),
      timeout_ms_(in_ms(options.join_timeout_s)),
      silence_timeout_ms_(in_ms(options.silence_timeout_s)) {
  check(options);
  if (fabric_ == "shm" || fabric_ == "sim") return;
  choose_hosts(options);
  choose_network(options);
}

void Cluster::choose_hosts(const FabricOptions& options) {
  const bool said = options.hosts || options.host || !options.meeting.empty();
  if (!said) {
    if (ask_launcher(options)) return;
    secret_ = random_secret();
    if (!options.secret_file.empty()) {
      throw BadInput("--secret-file: one host needs none; say --meeting, --hosts and --host");
    }
    return;
  }
  if (!options.hosts || !options.host || options.meeting.empty()) {
    throw BadInput("--meeting, --hosts and --host: several hosts need all three");
  }
  hosts_ = *options.hosts;
  host_ = *options.host;
  if (hosts_ == 0 || hosts_ > kMaxStreamMembers) {
    throw BadInput(fmt::format("--hosts {}: 1 to {} are possible", hosts_, kMaxStreamMembers));
  }
  if (host_ >= hosts_) {
    throw BadInput(fmt::format("--host {}: the {} hosts are 0 to {}", host_, hosts_, hosts_ - 1));
  }
  meeting_ = options.meeting;
  secret_ = secret_of(options);
}

/// Each process that a launcher starts is a host to us; docs/deploy.md has the variables. False if
/// there is no launcher, or nobody but this process.
bool Cluster::ask_launcher(const FabricOptions& options) {
  const launch::Environment environment;
  try {
    constexpr std::array kPlaces{"DUNLIN_MEMBERS", "DUNLIN_NAMES", "DUNLIN_NAME", "DUNLIN_RANK",
                                 "DUNLIN_MEETING"};
    const bool told = std::any_of(kPlaces.begin(), kPlaces.end(),
                                  [&](const char* name) { return environment.has(name); });
    const std::optional<launch::Job> job = launch::find_job(environment);
    if (!told && (!job || job->members.value_or(1) == 1)) return false;
    ofi::JoinOptions place{.group = "dunlin", .address = address_};
    if (!options.secret_file.empty()) place.secret = secret_of(options);
    launched_ = launch::complete(place, environment);
    hosts_ = place.names.empty() ? place.members : static_cast<std::uint32_t>(place.names.size());
    const auto own = std::find(place.names.begin(), place.names.end(), place.name);
    host_ =
        place.names.empty() ? place.rank : static_cast<std::uint32_t>(own - place.names.begin());
    meeting_ = place.meeting;
    secret_ = place.secret;
    tls_ = place.tls;
    address_ = place.address;
  } catch (const Error& error) {
    throw BadInput(error.what());
  }
  if (hosts_ == 0) {
    throw BadInput("DUNLIN_MEMBERS is missing (or DUNLIN_NAMES): how many hosts take part");
  }
  if (host_ >= hosts_) throw BadInput("DUNLIN_RANK is missing: each host must know which it is");
  return true;
}

void Cluster::choose_network(const FabricOptions& options) {
  device_ = options.device;
  if (fabric_ == "verbs") {
    const std::string device = device_.empty() ? "" : " --device " + in_quotes(device_);
    const std::vector<std::string> there = rdma_devices();
    const auto asked = std::find(there.begin(), there.end(), device_);
    if (!there.empty() && (device_.empty() || asked != there.end())) return;
    demand_there(there, "--fabric verbs" + device, device_ + " ");
    return;
  }
  provider_ = options.provider.empty() ? kDefaultProvider : options.provider;
  const std::string asked =
      fmt::format("--fabric ofi --provider {}{}{}", in_quotes(provider_),
                  device_.empty() ? "" : " --device ", device_.empty() ? "" : in_quotes(device_));
  demand_there(ofi::networks(), asked,
               provider_ + ": " + (device_.empty() ? std::string() : device_ + " "));
}

std::string Cluster::group(const std::string& what) const {
  return hosts_ == 1 ? fresh_group(what) : what;
}

/// What each fabric asks for, and those between hosts besides.
template <class JoinOptions>
JoinOptions Cluster::options_of(const Seat& seat) const {
  JoinOptions options;
  options.group = seat.group;
  options.members = seat.members;
  options.rank = seat.rank;
  options.timeout_ms = timeout_ms_.value_or(seat.timeout_ms);
  options.silence_timeout_ms = silence_timeout_ms_.value_or(seat.silence_timeout_ms);
  if constexpr (requires { options.meeting; }) {
    options.meeting = meeting_.empty() ? "unix:" + seat.group : meeting_;
    options.secret = secret_;
    options.tls = tls_;
    options.device = device_;
    options.address = address_;
  }
  return options;
}

/// The one place that knows how each fabric is joined.
std::unique_ptr<Fabric> Cluster::join(const Seat& seat) const {
  if (fabric_ == "shm") return shm::join(options_of<shm::JoinOptions>(seat));
  if (fabric_ == "verbs") return verbs::join(options_of<verbs::JoinOptions>(seat));
  if (fabric_ == "ofi") {
    auto options = options_of<ofi::JoinOptions>(seat);
    options.provider = provider_;
    return ofi::join(options);
  }
  throw Error("no process can join the fabric " + fabric_);
}

std::string Cluster::describe(const Fabric& fabric) const {
  if (fabric.kind() == "shm") return "shared memory of this host";
  const std::string network =
      fabric.kind() == "verbs" ? verbs::description(fabric) : ofi::description(fabric);
  return launched_.empty() ? network : network + "; " + launched_;
}

}  // namespace dunlin::app
