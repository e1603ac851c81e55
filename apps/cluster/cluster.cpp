#include "cluster/cluster.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include <dunlin/fabric/ofi.hpp>
#include <dunlin/fabric/shm.hpp>

#include "cluster/secret.hpp"
#include "command.hpp"
#include "group_name.hpp"
#include "routing/text.hpp"

namespace dunlin::app {
namespace {

using routing::in_quotes;

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

/// Of `there`, lines that begin "provider: device ".
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
  if (!said) {  // here the environment of a launcher is asked, once the library can read it
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

void Cluster::choose_network(const FabricOptions& options) {
  device_ = options.device;
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

/// The one place that knows how each fabric is joined.
std::unique_ptr<Fabric> Cluster::join(const Seat& seat) const {
  const std::uint32_t timeout_ms = timeout_ms_.value_or(seat.timeout_ms);
  const std::uint32_t silence_timeout_ms = silence_timeout_ms_.value_or(seat.silence_timeout_ms);
  if (fabric_ == "shm") {
    return shm::join({.group = seat.group,
                      .members = seat.members,
                      .rank = seat.rank,
                      .timeout_ms = timeout_ms,
                      .silence_timeout_ms = silence_timeout_ms});
  }
  const std::string meeting = meeting_.empty() ? "unix:" + seat.group : meeting_;
  if (fabric_ == "ofi") {
    return ofi::join({.group = seat.group,
                      .members = seat.members,
                      .rank = seat.rank,
                      .timeout_ms = timeout_ms,
                      .silence_timeout_ms = silence_timeout_ms,
                      .meeting = meeting,
                      .secret = secret_,
                      .provider = provider_,
                      .device = device_,
                      .address = address_});
  }
  throw Error("no process can join the fabric " + fabric_);
}

std::string describe_network(const Fabric& fabric) {
  if (fabric.kind() == "ofi") return ofi::description(fabric);
  return fabric.kind() == "shm" ? "shared memory of this host" : std::string(fabric.kind());
}

}  // namespace dunlin::app
