#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <dunlin/error.hpp>

#include "bench/fabric/group.hpp"
#include "bench/table/nodes.hpp"
#include "bench/topic/dds_peers.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"
#include "command.hpp"
#include "team/cores.hpp"

/// Topics over TCP beside other people's DDS over UDP, on one host or between two.
namespace dunlin::bench {
namespace {

constexpr double kGoal = 1;
constexpr std::uint32_t kMembers = 2;
constexpr std::string_view kHere = "here";
constexpr std::uint32_t kOurs = 2;  // series; those of others follow, two each

/// Of others, at each of the two hosts.
class Theirs {
 public:
  /// `address`: of this host; empty for one host alone.
  Theirs(Member& me, const std::string& address, std::vector<int> cores, std::chrono::seconds each)
      : me_(me), cores_(std::move(cores)), each_(each) {
    const std::string tag = me.exchange(fresh_group()).front();
    DdsAddresses at;
    if (!address.empty()) at = {.own = address, .other = me.exchange(address).at(1 - me.rank())};
    peers_ = dds_peers_on_udp(tag, at);
  }
  /// A round of each that both hosts have.
  void run(std::size_t bytes) {
    std::uint32_t series = kOurs;
    for (const DdsPeer& peer : peers_) {
      const auto words = me_.exchange(peer.missing.empty() ? kHere : "missing");
      if (std::ranges::count(words, kHere) == kMembers) measure(peer, bytes, series);
      series += 2;
    }
  }

 private:
  void measure(const DdsPeer& peer, std::size_t bytes, std::uint32_t series) {
    const std::string rate = run_role(peer, "sub", "pub", bytes);
    const std::string latency = run_role(peer, "ping", "pong", bytes);
    if (me_.rank() != 0) return;
    record(series, peer.samples_per_second, rate);
    record(series + 1, peer.latency_ns, latency);
  }
  /// On a busy machine a process may get nothing in time, and prints no number then.
  void record(std::uint32_t series, const std::function<double(const std::string&)>& number_of,
              const std::string& output) {
    try {
      me_.record(series, number_of(output));
    } catch (const Error&) {
      return;
    }
  }
  /// The other host's takes a second longer.
  std::string run_role(const DdsPeer& peer, const char* first, const char* second,
                       std::size_t bytes) {
    me_.meet();
    const bool one = me_.rank() == 0;
    process::Program program =
        peer.program(one ? first : second, bytes, one ? each_ : each_ + std::chrono::seconds(1));
    program.prepare = [this, prepare = std::move(program.prepare)] {
      app::use_all(cores_);  // of which this member has one
      if (prepare) prepare();
    };
    std::string output = process::run(program).output;
    me_.meet();
    return output;
  }

  Member& me_;
  std::vector<int> cores_;
  std::chrono::seconds each_;
  std::vector<DdsPeer> peers_;
};

template <std::size_t Bytes>
void measure(const RealNetwork& network, const Effort& effort, std::vector<Result>& results) {
  const std::uint64_t samples = effort.scaled(Bytes >= 10'000 ? 20'000 : 100'000);
  const Batches plan = effort.plan(50, network.trips_per_batch);
  const std::chrono::seconds each(effort.quick ? 2 : 3);
  const std::vector<int> cores = app::usable_cores();
  const Group group(network, effort, kMembers);
  TeamOptions options = group.team(kMembers);
  if (options.hosts > kMembers)
    throw app::BadInput("peers is measured between two hosts, or on one");
  options.timeout += effort.rounds * 4 * (each + std::chrono::seconds(1));
  Team team(options);
  team.run([&](Member& me) {
    auto joined = group.join(me.rank());
    Theirs theirs(me, group.address(*joined), cores, each);
    TopicNode node(me, std::move(joined));
    const auto topics =
        make_topics<Blob<Bytes>>(node, "atomic", 1, measured_qos(pubsub::Level::atomic), kMembers);
    for (std::uint32_t round = 0; round < effort.rounds; ++round) {
      alternate(me, 1,
                {[&] { return stream<Blob<Bytes>>(node, topics, samples); },
                 [&] { return ping_pong(node, *topics.front(), plan); }});
      if (!effort.quick || round == 0) theirs.run(Bytes);
    }
  });
  std::uint32_t series = kOurs;
  for (const DdsPeer& peer : dds_peers_on_udp("", {})) {
    for (const Compared what : {Compared::rate, Compared::latency}) {
      const auto theirs = team.recorded(series++);
      Result result =
          beside(peer, Bytes, what, team.series(what == Compared::rate ? 0 : 1), theirs, kGoal);
      if (theirs.empty() && peer.missing.empty())
        result.note = peer.name +
                      " was not measured: it is missing at the other host, or got nothing in time";
      results.push_back(std::move(result));
    }
  }
}

}  // namespace

std::vector<Experiment> dds_peers_over_networks() {
  std::vector<Experiment> all;
  for (const RealNetwork& network : real_networks()) {
    if (network.name != "tcp") continue;
    all.push_back({.name = "peers",
                   .title = "one writer and one reader, beside Cyclone DDS and Fast DDS over UDP",
                   .fabric = network.name,
                   .x = "bytes",
                   .between_hosts = true,
                   .run = [&network](const Effort& effort) {
                     std::vector<Result> results;
                     measure<64>(network, effort, results);
                     if (effort.quick) return results;
                     measure<1'000>(network, effort, results);
                     measure<10'000>(network, effort, results);
                     return results;
                   }});
  }
  return all;
}

}  // namespace dunlin::bench
