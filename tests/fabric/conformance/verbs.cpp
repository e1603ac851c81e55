#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/conformance/growing.hpp"
#include "fabric/conformance/mixed.hpp"
#include "fabric/conformance/real_group.hpp"

namespace dunlin::conformance {

namespace {

/// Silence is not counted: a test polls when it likes, on a machine that has other work.
JoinOptions options_for(const std::string& device, const std::string& group, Rank rank,
                        std::uint32_t nodes) {
  return {.network = "verbs",
          .group = group,
          .members = nodes,
          .rank = rank,
          .timeout_ms = 60'000,
          .silence_timeout_ms = 0,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it",
          .device = device};
}

}  // namespace

/// Those that DUNLIN_VERBS_DEVICES names, and none if it names none: devices are the emulated
/// machine's (tests/verbs), or someone's own.
std::vector<std::string> named_devices() {
  const char* const named = std::getenv("DUNLIN_VERBS_DEVICES");
  std::istringstream text(named == nullptr ? "" : named);
  return {std::istream_iterator<std::string>(text), {}};
}

std::vector<Backend> verbs_backends() {
  std::vector<Backend> backends;
  for (const std::string& device : named_devices()) {
    Backend backend{.variant = device};
    backend.join = [device](const std::string& group, Rank rank, std::uint32_t nodes) {
      return join(options_for(device, group, rank, nodes));
    };
    backend.begin = [device](const std::string& group, Rank rank, std::uint32_t nodes) {
      return begin_join(options_for(device, group, rank, nodes));
    };
    backend.start = [backend](std::uint32_t nodes) { return start_real_group(backend, nodes); };
    backends.push_back(std::move(backend));
  }
  return backends;
}

/// Shared memory within a host, and the device between hosts.
std::vector<Backend> mixed_backends_on_devices() {
  std::vector<Backend> backends;
  for (const std::string& device : named_devices())
    backends.push_back(on_hosts(device, in_turn, {.device = device}));
  return backends;
}

DUNLIN_CONFORMANCE(Verbs, verbs_backends);
DUNLIN_CONFORMANCE_SUITE(Verbs, Forming, verbs_backends);
DUNLIN_CONFORMANCE(MixedVerbs, mixed_backends_on_devices);
DUNLIN_CONFORMANCE_SUITE(MixedVerbs, Forming, mixed_backends_on_devices);

namespace {

/// A newcomer meets nobody: the suite tells it of the members.
Grower verbs_grower(const Backend& backend) {
  const auto start = [backend](std::uint32_t founders, std::uint32_t nodes) {
    return real_growing_backend(founders, nodes, backend.begin,
                                [device = backend.variant](const std::string& group, Rank rank) {
                                  JoinOptions options =
                                      options_for(device, "newcomers", JoinOptions::kAnyRank, 0);
                                  options.rendezvous = "unix:" + group + "-" + std::to_string(rank);
                                  return make_rendezvous(options, {});
                                });
  };
  return {"Verbs_" + backend.variant, start};
}

bool add_verbs_growers() {
  for (const Backend& backend : verbs_backends()) add_grower(verbs_grower(backend));
  return true;
}

const bool kVerbsGrow = add_verbs_growers();

}  // namespace

}  // namespace dunlin::conformance
