#include <algorithm>
#include <list>
#include <set>
#include <stop_token>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/pubsub.hpp>
#include <dunlin/run.hpp>

#include "command.hpp"
#include "gateway/bridge.hpp"
#include "gateway/options.hpp"
#include "multicast/enter.hpp"
#include "multicast/leave.hpp"
#include "signals.hpp"
#include "standard_output.hpp"

namespace dunlin::app::gateway {
namespace {

constexpr std::uint64_t kRetryNs = 1'000'000;  // Cyclone does not tell of room and acknowledgements
constexpr std::uint32_t kSettleMs = 2'000;     // at the end
constexpr std::uint32_t kLeaveMs = 5'000;

/// All bridges, and the loop's eye on signals. Polled behind the participant.
class Gateway {
 public:
  Gateway(pubsub::DomainParticipant& participant, Domain& domain, SignalGuard& signals,
          const std::string& name, const std::string& network, const std::vector<Rule>& rules)
      : participant_(participant), domain_(domain), signals_(signals), name_(name) {
    for (const Rule& rule : rules)
      bridges_.emplace_back(
          participant, domain, rule, name, network,
          [name](const std::string& sentence) { say(fmt::format("{}: {}", name, sentence)); });
    domain_.on_endpoint = [this](const RemoteEndpoint& endpoint) {
      for (Bridge& bridge : bridges_) bridge.on_endpoint(endpoint);
    };
    domain_.on_forgotten = [this](dds_instance_handle_t publication) {
      for (Bridge& bridge : bridges_) bridge.forget(publication);
    };
  }
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway() {
    domain_.on_endpoint = nullptr;
    domain_.on_forgotten = nullptr;
  }

  std::size_t poll() {
    // A bridge that is held up may still have to take samples of writers that are gone.
    const bool woken = domain_.look(settled());
    std::size_t done = woken ? 1 : 0;
    for (Bridge& bridge : bridges_) done += bridge.poll(woken);
    if (std::ranges::any_of(bridges_, &Bridge::awaits_dds))
      participant_.fabric().wake_at(participant_.fabric().now_ns() + kRetryNs);
    if (++polls_ % kPollsPerLook == 0 || done == 0) {
      signal_ = signal_ == nullptr ? signals_.caught() : signal_;
      if (signal_ != nullptr || participant_.group().ended()) stop_.request_stop();
    }
    return done;
  }
  [[nodiscard]] Waits waits() const {
    return {.descriptors = {signals_.descriptor(), domain_.descriptor()}};
  }

  /// Runs until a signal comes; throws Error if the group ends before.
  void run() {
    Loop(participant_.fabric(), {.stop = stop_.get_token()}).add(participant_).add(*this).run();
    if (signal_ == nullptr) throw Error(participant_.group().why_ended());
    Loop(participant_.fabric())
        .add(participant_)
        .add(*this)
        .run_until([this] { return settled() && acknowledged(); }, kSettleMs);
    for (const Bridge& bridge : bridges_)
      if (!bridge.settled() || !bridge.acknowledged())
        say(fmt::format("{}: topic '{}': not all samples have arrived on the other side\n", name_,
                        bridge.rule().topic));
  }
  [[nodiscard]] std::string summary() const {
    BridgeCounters all;
    for (const Bridge& bridge : bridges_) {
      all.to_dds += bridge.counters().to_dds;
      all.from_dds += bridge.counters().from_dds;
      all.refused += bridge.counters().refused;
    }
    return fmt::format("ends because of {}: {} changes carried to DDS, {} from DDS, {} refused\n",
                       signal_, all.to_dds, all.from_dds, all.refused);
  }

 private:
  static constexpr std::uint32_t kPollsPerLook = 1'024;

  [[nodiscard]] bool settled() const { return std::ranges::all_of(bridges_, &Bridge::settled); }
  [[nodiscard]] bool acknowledged() const {
    const bool all = std::ranges::all_of(bridges_, &Bridge::acknowledged);
    if (!all) participant_.fabric().wake_at(participant_.fabric().now_ns() + kRetryNs);
    return all;
  }

  pubsub::DomainParticipant& participant_;
  Domain& domain_;
  SignalGuard& signals_;
  std::string name_;
  std::list<Bridge> bridges_;
  std::stop_source stop_;
  const char* signal_ = nullptr;
  std::uint32_t polls_ = 0;
};

std::vector<Rule> rules_of(const Options& options) {
  std::vector<Rule> rules =
      options.config.empty() ? std::vector<Rule>() : read_rules(options.config);
  for (const std::string& name : options.topics) rules.push_back({.topic = name});
  if (rules.empty()) throw BadInput("no topic is to be carried: give --topics or --config");
  std::set<std::string> names;
  for (const Rule& rule : rules)
    if (!names.insert(rule.topic).second)
      throw BadInput(fmt::format("topic '{}' is given twice", rule.topic));
  return rules;
}

}  // namespace

void run(const Options& options) {
  const std::vector<Rule> rules = rules_of(options);
  const std::string network =
      options.network.empty() ? fmt::format("dds{}", options.domain) : options.network;
  const cast::Place place(options.place);
  const std::string& name = place.name();
  if (name != network && !name.starts_with(network + "-"))
    throw BadInput(
        fmt::format("--name {}: a gateway of network {} is called '{}' or '{}-...', so that other "
                    "gateways know "
                    "which samples it has carried; or give --network",
                    name, network, network, network));
  say(fmt::format("{}: process {}\n", name, getpid()));
  SignalGuard signals;
  Domain domain(options.domain, fmt::format("dunlin gateway, group {}", place.group()));
  const cast::Entered entered =
      cast::enter(place, GroupOptions{.rendezvous = place.rendezvous()}, signals);
  if (!entered.group) return;
  Group& group = *entered.group;
  {
    pubsub::DomainParticipant participant(group);
    {
      Gateway gateway(participant, domain, signals, name, network, rules);
      gateway.run();
      say(fmt::format("{}: {}", name, gateway.summary()));
    }
    // What was written arrives before the topics go.
    run_until(
        participant, [&] { return !participant.holds_topics(); }, kLeaveMs);
  }
  cast::leave(group, name, signals);
}

}  // namespace dunlin::app::gateway
