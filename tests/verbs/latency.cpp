#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <sched.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/join.hpp>

#include "bench/fabric/verbs/bare_pair.hpp"
#include "support/process.hpp"

/// How long it takes from a write until it is seen: over the verbs fabric, and beside it, in turn
/// and in the same two processes, by bare libibverbs in the way that promises the same (a polled
/// write; on iWARP, which promises nothing of the kind, a send).
///
///     verbs_latency DEVICE
namespace dunlin::test {
namespace {

constexpr int kBlocks = 11;
constexpr std::uint64_t kTurns = 100;  // of a block

using Clock = std::chrono::steady_clock;

void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);  // without it, only slower
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Our end of the ping-pong over the fabric.
class FabricEnd {
 public:
  FabricEnd(const std::string& group, const std::string& device, Rank rank)
      : fabric_(join({.network = "verbs",
                      .group = group,
                      .members = 2,
                      .rank = rank,
                      .timeout_ms = 60'000,
                      .silence_timeout_ms = 0,
                      .rendezvous = "unix:" + group,
                      .secret = "only this test knows it",
                      .device = device})),
        box_(fabric_->allocate({.name = "box", .bytes = 64})) {
    fabric_->announce(box_);
    while (!fabric_->connected(1 - rank, box_.id())) fabric_->poll();
  }
  void send(std::uint64_t turn) {
    while (!fabric_->post(write(1 - fabric_->rank(), box_.id(), 0, &turn, 8)).all())
      fabric_->poll();
  }
  void await(std::uint64_t turn) {
    const auto& word = *reinterpret_cast<const std::uint64_t*>(box_.memory().data());
    while (memory::load(word) != turn) fabric_->poll();
  }
  [[nodiscard]] std::string description() const { return fabric_->description(); }

 private:
  std::unique_ptr<Fabric> fabric_;
  Region box_;
};

struct BareEnd {
  bench::BarePair pair;
  void send(std::uint64_t) { pair.signal(); }
  void await(std::uint64_t) { pair.await(); }
};

/// Microseconds one way.
template <class End>
double play(End& end, Rank rank, std::uint64_t& turn) {
  const auto started = Clock::now();
  for (std::uint64_t i = 0; i < kTurns; ++i) {
    ++turn;
    if (rank == 0) end.send(turn);
    end.await(turn);
    if (rank == 1) end.send(turn);
  }
  const std::chrono::duration<double, std::micro> took = Clock::now() - started;
  return took.count() / (2.0 * kTurns);
}

struct Result {
  std::vector<double> ours;
  std::vector<double> bare;
};

Result play_all(FabricEnd& ours, BareEnd& bare, Rank rank) {
  Result result;
  std::uint64_t our_turn = 0;
  std::uint64_t bare_turn = 0;
  for (int block = 0; block < kBlocks; ++block) {
    result.ours.push_back(play(ours, rank, our_turn));
    result.bare.push_back(play(bare, rank, bare_turn));
  }
  return result;
}

std::string address_of(const std::string& device) {
  for (const std::string& line : devices_of("verbs"))
    if (line.starts_with(device + " ")) return line.substr(device.size() + 1);
  throw Error("there is no device " + device);
}

int other_end(Parent& parent, const std::string& group, const std::string& device) {
  stay_on(1);
  FabricEnd ours(group, device, 1);
  const std::string port = parent.receive_line();
  BareEnd bare{bench::BarePair(address_of(device), std::stoi(port))};
  play_all(ours, bare, 1);
  return 0;
}

int run(const std::string& device) {
  const std::string group = "latency-" + std::to_string(getpid());
  Process other([&](Parent& parent) { return other_end(parent, group, device); });
  stay_on(0);
  FabricEnd ours(group, device, 0);
  bench::BareListener listener(address_of(device));
  other.send_line(std::to_string(listener.port()));
  BareEnd bare{listener.accept()};
  const Result result = play_all(ours, bare, 0);
  const double us = median(result.ours);
  const double bare_us = median(result.bare);
  std::printf(
      "%s\n8 bytes seen by the peer after %.1f us; bare libibverbs (%s): %.1f us; ratio %.2f\n",
      ours.description().c_str(), us, bare.pair.way(), bare_us, us / bare_us);
  return other.exit_code();
}

}  // namespace
}  // namespace dunlin::test

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: verbs_latency DEVICE\n", stderr);
    return 2;
  }
  try {
    return dunlin::test::run(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "verbs_latency: %s\n", error.what());
    return 1;
  }
}
