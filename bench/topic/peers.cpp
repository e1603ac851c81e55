#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <dunlin/error.hpp>

#include "bench/fabric/group.hpp"
#include "bench/topic/dds_peers.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"
#include "command.hpp"
#include "process/child.hpp"
#include "team/cores.hpp"

/// Topics beside other people's DDS: on shared memory, and over TCP beside UDP on one host or
/// between two.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kMembers = 2;
constexpr std::string_view kHere = "here";
constexpr std::uint32_t kOurs = 2;  // series; those of others follow, two each

/// The ratio to a peer that is aimed at.
double goal_of(const RealNetwork& network, std::size_t bytes, bool is_rate) {
  if (!network.is_shm()) return 1;
  if (!is_rate) return 0.2;
  return bytes >= 10'000 ? 1 : 10;
}

/// Other people's, at each of the two hosts.
class Theirs {
 public:
  /// `address`: of this host; empty for one host alone.
  Theirs(Member& me, const RealNetwork& network, const std::string& address, std::vector<int> cores,
         std::chrono::seconds each)
      : me_(me), on_shm_(network.is_shm()), cores_(std::move(cores)), each_(each) {
    const std::string tag = me.exchange(fresh_group()).front();
    DdsAddresses at;
    if (!address.empty()) at = {.own = address, .other = me.exchange(address).at(1 - me.rank())};
    peers_ = on_shm_ ? dds_peers_on_this_host() : dds_peers_on_udp(tag, at);
  }

  /// A round of each that both hosts have.
  void run(std::size_t bytes) {
    std::uint32_t series = kOurs;
    for (const DdsPeer& peer : peers_) {
      const auto words = me_.exchange(peer.missing.empty() ? kHere : "missing");
      if (std::ranges::count(words, kHere) == kMembers) {
        measure(series, peer, peer.samples_per_second, {"sub", "pub"}, bytes);
        measure(series + 1, peer, peer.latency_ns, {"ping", "pong"}, bytes);
      }
      series += 2;
    }
  }

 private:
  using Roles = std::array<const char*, kMembers>;

  /// On a busy machine a process may get nothing in time, and prints no number then.
  void measure(std::uint32_t series, const DdsPeer& peer,
               const std::function<double(const std::string&)>& number_of, const Roles& roles,
               std::size_t bytes) {
    constexpr std::size_t kMostOfItsOutput = 200;
    me_.meet();
    const std::string output = run_roles(peer, roles, bytes);
    me_.meet();
    if (me_.rank() != 0) return;
    try {
      me_.record(series, number_of(output));
    } catch (const Error& error) {
      me_.note(peer.name + " was not measured in all rounds: " +
               std::string(error.what()).substr(0, kMostOfItsOutput));
    }
  }
  /// Each member runs one of the roles, and the second one takes a second longer. With its shared
  /// memory a peer may need a daemon, which only the processes of one member can share.
  std::string run_roles(const DdsPeer& peer, const Roles& roles, std::size_t bytes) {
    const auto program = [&](std::uint32_t rank) {
      process::Program one =
          peer.program(roles.at(rank), bytes, each_ + std::chrono::seconds(rank));
      one.prepare = [this, prepare = std::move(one.prepare)] {
        app::use_all(cores_);  // of which this member has one
        if (prepare) prepare();
      };
      return one;
    };
    if (!on_shm_) return process::run(program(me_.rank())).output;
    if (me_.rank() != 0) return {};
    const process::Program first = program(0), second = program(1);
    process::Child beside([&] {
      static_cast<void>(process::run(second));
      return 0;
    });
    std::string output = process::run(first).output;
    beside.wait();
    return output;
  }

  Member& me_;
  bool on_shm_;
  std::vector<int> cores_;
  std::chrono::seconds each_;
  std::vector<DdsPeer> peers_;
};

template <std::size_t Bytes>
void measure(const RealNetwork& network, const Effort& effort, std::vector<Result>& results) {
  const bool shm = network.is_shm();
  const std::uint64_t samples = effort.scaled(Bytes >= 10'000 ? 20'000 : shm ? 200'000 : 100'000);
  const Batches plan = effort.plan(shm ? 100 : 50, shm ? 100 : network.trips_per_batch);
  const std::chrono::seconds each(effort.quick ? 2 : 3);
  const std::vector<int> cores = app::usable_cores();
  const auto peers = shm ? dds_peers_on_this_host() : dds_peers_on_udp("", {});
  const Group group(network, effort, kMembers);
  TeamOptions options = group.team(kMembers);
  if (options.hosts > kMembers)
    throw app::BadInput("peers is measured between two hosts, or on one");
  options.timeout += effort.rounds * 2 * peers.size() * (each + std::chrono::seconds(1));
  Team team(options);
  team.run([&](Member& me) {
    auto joined = group.join(me.rank());
    Theirs theirs(me, network, group.address(*joined), cores, each);
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
  for (const DdsPeer& peer : peers) {
    for (const bool is_rate : {true, false}) {
      const auto theirs = team.recorded(series++);
      const auto ours = team.series(is_rate ? 0 : 1);
      std::string note = peer.missing.empty() ? team.note() : peer.missing;
      if (theirs.empty() && note.empty())
        note = peer.name + " was not measured: it is missing at the other host";
      results.push_back(compared(
          {.params = {{"bytes", double(Bytes)}, {"what", is_rate ? "samples a second" : "latency"}},
           .unit = is_rate ? "1/s" : "ns",
           .goal = Goal{.bound = goal_of(network, Bytes, is_rate)},
           .note = note},
          theirs.empty() ? ours : ours.first(theirs.size()), peer.name, theirs));
    }
  }
}

}  // namespace

std::vector<Experiment> dds_peers(const RealNetwork& network) {
  const bool shm = network.is_shm();
  if (!shm && network.name != "tcp") return {};
  return {
      {.name = "peers",
       .title = shm ? "one writer and one reader in two processes, beside Cyclone DDS and Fast DDS"
                    : "one writer and one reader, beside Cyclone DDS and Fast DDS over UDP",
       .fabric = network.name,
       .x = "bytes",
       .between_hosts = !shm,
       .run = [&network](const Effort& effort) {
         std::vector<Result> results;
         measure<64>(network, effort, results);
         if (effort.quick) return results;
         measure<1'000>(network, effort, results);
         measure<10'000>(network, effort, results);
         return results;
       }}};
}

}  // namespace dunlin::bench
