#include <array>
#include <cstdint>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/run.hpp>
#include <dunlin/segment.hpp>

#include "support/fresh_group.hpp"
#include "support/group_member.hpp"
#include "support/histories.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// Real processes get and put the same segments, and one of them is killed; an independent checker
/// decides whether what they saw is linearizable.
namespace dunlin {
namespace {

using remote::Status;
using test::Histories;
using test::NodeBackend;
using test::Parent;
using test::Process;

constexpr std::uint32_t kClients = 4;
constexpr std::uint32_t kDoomed = 3;  // is killed in the middle
const std::uint32_t kOperations = test::rounds(200);
constexpr std::size_t kWords = 40;  // lines enough to be torn
constexpr std::uint64_t kPatienceNs = std::uint64_t{test::kPatienceMs} * 1'000'000;
const std::array<Coherence, 2> kSegments{Coherence::write, Coherence::strict};

/// The clock that all processes of a host share.
std::uint64_t stamp() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// One process. The one that will be killed tells the parent each put before it begins, and each
/// operation that has ended, at once. The others tell all of it in the end: a process that waits
/// until the parent listens cannot poll.
class Client {
 public:
  Client(const NodeBackend& backend, const std::string& group_name, Rank rank, Parent& to)
      : fabric_(backend.join({.group = group_name, .nodes = kClients, .rank = rank})),
        rank_(rank),
        parent_(to),
        random_(rank + 1) {}

  void make_segments() {
    for (std::size_t i = 0; i < kSegments.size(); ++i) {
      make({.bytes = sizeof words_,
            .coherence = kSegments.at(i),
            .placement = Placement::on(static_cast<Rank>(i)),
            .name = name_of(i)});
    }
  }
  void find_segments() {
    for (std::size_t i = 0; i < kSegments.size(); ++i) keys_.at(i) = find(name_of(i));
    // Names may be at the one that is killed: it begins when the others have found them.
    if (rank_ != kDoomed) return make({.bytes = sizeof words_, .name = name_of_found(rank_)});
    for (Rank other = 0; other < kDoomed; ++other) static_cast<void>(find(name_of_found(other)));
  }
  void work() {
    for (std::uint32_t i = 0; i < kOperations || rank_ == kDoomed; ++i) {
      const std::size_t which = random_() % kSegments.size();
      if (random_() % 2 == 0) {
        put(which);
      } else {
        get(which);
      }
    }
    parent_.send_line(lines_ + "over");
    run(space_);  // serves the others, until the parent kills this process
  }

 private:
  static std::string name_of(std::size_t i) { return "segment-" + std::to_string(i); }
  static std::string name_of_found(Rank rank) { return "found-" + std::to_string(rank); }

  void make(const SegmentSpec& spec) {
    auto made = space_.allocate(spec);
    if (!made.outcome(kPatienceNs).ok()) throw Error(made.describe());
  }
  Key find(const std::string& name) {
    Outcome found;
    do found = space_.find(name).outcome(kPatienceNs);
    while (found.status == Status::unknown);
    if (!found.ok()) throw Error(std::string(remote::describe(found.status)));
    return found.key;
  }

  void put(std::size_t which) {
    const std::uint64_t value = std::uint64_t{rank_} * 1'000'000 + ++puts_;
    words_.fill(value);
    const std::string text = "put " + std::to_string(which) + " " + std::to_string(value) + " " +
                             std::to_string(stamp());
    if (rank_ == kDoomed) parent_.send_line("begin " + text);
    auto operation = space_.put(keys_.at(which), bytes_of(words_));
    if (!operation.outcome(kPatienceNs).ok()) throw Error(operation.describe());
    tell(text + " " + std::to_string(stamp()));
  }
  void get(std::size_t which) {
    const std::uint64_t call = stamp();
    auto operation = space_.get(keys_.at(which), bytes_of(words_));
    const Outcome outcome = operation.outcome(kPatienceNs);
    const std::uint64_t end = stamp();
    // The killed process was in the middle of a put: so until the next put.
    if (outcome.status == Status::half_written) return;
    if (!outcome.ok()) throw Error(operation.describe());
    for (const std::uint64_t word : words_)
      if (word != words_[0]) throw Error("torn");
    tell("get " + std::to_string(which) + " " + std::to_string(words_[0]) + " " +
         std::to_string(call) + " " + std::to_string(end));
  }
  void tell(const std::string& line) {
    if (rank_ == kDoomed) {
      parent_.send_line(line);
    } else {
      lines_ += line + "\n";
    }
  }

  std::unique_ptr<Fabric> fabric_;
  test::GroupMember member_{*fabric_};
  SegmentSpace space_{member_.progress, {.pool_bytes = 1 << 16}};
  Rank rank_;
  Parent& parent_;
  std::string lines_;
  std::mt19937_64 random_;
  std::array<Key, kSegments.size()> keys_;
  alignas(64) std::array<std::uint64_t, kWords> words_{};
  std::uint64_t puts_ = 0;
};

int live(const NodeBackend& backend, const std::string& group, Rank rank, Parent& parent) {
  Client client(backend, group, rank, parent);
  if (rank == 0) client.make_segments();
  client.find_segments();
  client.work();
  return 0;
}

/// Adds a client's lines until it is through, or has been killed after `most` of them.
void collect(Process& process, std::uint32_t client, std::uint32_t most, std::string& all) {
  std::string begun;
  for (std::uint32_t lines = 0;; ++lines) {
    if (lines == most) process.kill();
    const std::string line = process.receive_line();
    if (line.empty() || line == "over") break;
    ASSERT_FALSE(line.starts_with("error")) << "client " << client << ": " << line;
    if (line.starts_with("begin ")) {
      begun = line.substr(6);
      continue;
    }
    begun.clear();
    all += std::to_string(client) + " " + line + "\n";
  }
  if (!begun.empty()) all += std::to_string(client) + " " + begun + " -\n";
}

struct LinearizableProcesses : testing::TestWithParam<NodeBackend> {
  void SetUp() override {
    DUNLIN_SKIP_WITHOUT(GetParam());
    if (const std::string why = Histories::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
};

DUNLIN_RUN_ON(test::backends(), LinearizableProcesses);

TEST_P(LinearizableProcesses, GetAndPutThoughOneIsKilled) {
  const std::string group = test::fresh_group();
  std::vector<Process> processes;
  for (Rank rank = 0; rank < kClients; ++rank)
    processes.emplace_back([=](Parent& parent) { return live(GetParam(), group, rank, parent); });
  std::string lines;
  ASSERT_NO_FATAL_FAILURE(collect(processes[kDoomed], kDoomed, kOperations / 2, lines));
  for (std::uint32_t client = 0; client < kDoomed; ++client)
    ASSERT_NO_FATAL_FAILURE(collect(processes[client], client, UINT32_MAX, lines));
  Histories histories;
  histories.begin("processes", Histories::Model::one_register);
  histories.append(lines);
  const auto verdict = histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;

  // The same history, with one more get that returns the initial value in the end, is wrong.
  const std::uint64_t now = stamp();
  histories.get(0, "0", "0", now, now);
  EXPECT_FALSE(histories.check().linearizable);
}

}  // namespace
}  // namespace dunlin
