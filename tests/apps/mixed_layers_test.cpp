#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/join.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/run.hpp>
#include <dunlin/segment.hpp>
#include <dunlin/store.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/hosts.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"

/// Two hosts with four members each, in one group: topics, the store, containers and segments over
/// the fabric that shares memory within each host.
namespace dunlin {
namespace {

using test::Hosts;
using test::Parent;
using test::Process;

constexpr std::uint32_t kHosts = 2;
constexpr std::uint32_t kOnEach = 4;
constexpr std::uint32_t kMembers = kHosts * kOnEach;
constexpr std::uint32_t kStages = 2;  // all have written; all have read

struct Reached {
  std::uint32_t member;
  std::uint32_t stage;
};

pubsub::DataReaderQos everything() {
  pubsub::DataReaderQos qos;
  qos << pubsub::Reliability::reliable() << pubsub::History::keep_all();
  return qos;
}

void require(bool right, const std::string& what) {
  if (!right) throw Error(what);
}

/// A member of the group, with every layer on it.
struct Site {
  Site(const std::string& group_name, std::uint32_t rank)
      : fabric(join({.network = "auto",
                     .group = group_name,
                     .members = kMembers,
                     .rank = rank,
                     .timeout_ms = test::kPatienceMs,
                     .silence_timeout_ms = 0,
                     .rendezvous = Hosts::address(0) + ":7700",
                     .secret = "only this test knows it"})) {}

  /// Says which stage this member has reached, and waits until all have: in the order of their
  /// samples, which `order` keeps.
  void meet(std::uint32_t stage) {
    bool said = false;
    const bool met = run_until(
        participant,
        [&] {
          progress.poll();
          if (writer->publication_matched_status().current_count != kMembers) return false;
          if (!said)
            said = writer.write({.member = fabric->rank(), .stage = stage}) == WriteResult::written;
          for (const auto& sample : reader.take()) {
            if (!sample.info().valid()) continue;
            order += static_cast<char>('a' + sample.data().member);
          }
          return order.size() == (stage + 1) * kMembers;
        },
        test::kPatienceMs);
    require(met, "not all members said that they have reached stage " + std::to_string(stage) +
                     ": '" + order + "'");
  }

  using WriteResult = pubsub::WriteResult;
  std::unique_ptr<Fabric> fabric;
  Group group{*fabric};
  pubsub::DomainParticipant participant{group};
  pubsub::Topic<Reached> topic{participant, "reached"};
  pubsub::DataWriter<Reached> writer{pubsub::Publisher(participant), topic};
  pubsub::DataReader<Reached> reader{pubsub::Subscriber(participant), topic, everything()};
  GroupMembers members{group, kMembers};
  remote::Progress progress{*fabric, members};
  Store store{progress, {.memory_bytes = std::size_t{1} << 20}};
  Containers containers{progress};
  HashMap<std::uint64_t, std::uint64_t> squares{containers, {.name = "squares", .slots = 64}};
  SegmentSpace space{progress};
  std::string order;
};

std::string key_of(std::uint32_t rank) { return "key " + std::to_string(rank); }
std::string value_of(std::uint32_t rank) { return "value of " + std::to_string(rank); }
std::string note_of(std::uint32_t rank) { return "note/" + std::to_string(rank); }

template <class Operation>
std::string describe(const Operation& operation) {
  return std::string(remote::describe(operation.status()));
}

void write_own(Site& site, std::uint32_t rank) {
  auto put = site.store.put(key_of(rank), value_of(rank));
  require(put.outcome().ok(), describe(put));
  auto insert = site.squares.insert(rank, std::uint64_t{rank} * rank);
  insert.wait();
  require(insert.ok(), describe(insert));
  auto allocation = site.space.allocate({.bytes = sizeof(std::uint64_t),
                                         .coherence = Coherence::strict,
                                         .placement = Placement::here(),
                                         .name = note_of(rank)});
  require(allocation.outcome().ok(), allocation.describe());
  std::uint64_t note = 100 + rank;
  auto segment_put = site.space.put(allocation.outcome().key, bytes_of(note));
  require(segment_put.outcome().ok(), segment_put.describe());
}

void read_all(Site& site) {
  for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
    auto get = site.store.get(key_of(rank));
    require(get.outcome().ok() && get.outcome().text() == value_of(rank), describe(get));
    auto find = site.squares.find(rank);
    find.wait();
    require(find.ok() && find.result().value() == std::uint64_t{rank} * rank, describe(find));
    auto search = site.space.find(note_of(rank));
    require(search.outcome().ok(), search.describe());
    std::uint64_t note = 0;
    auto segment_get = site.space.get(search.outcome().key, bytes_of(note));
    require(segment_get.outcome().ok() && note == 100 + rank, segment_get.describe());
  }
}

int take_part(Parent& parent, const Hosts& hosts, const std::string& group, std::uint32_t rank) {
  hosts.enter(rank / kOnEach);
  Site site(group, rank);
  write_own(site, rank);
  site.meet(0);
  read_all(site);
  site.meet(1);
  parent.send_line(site.fabric->description());
  parent.send_line(site.order);
  site.group.leave();
  const bool ended = run_until(
      site.participant, [&] { return site.group.ended(); }, test::kPatienceMs);
  return ended ? 0 : 1;
}

TEST(MixedLayers, ShareStateAmongFourMembersOnEachOfTwoHosts) {
  if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
  const Hosts hosts(kHosts);
  const std::string group = test::fresh_group();
  std::vector<Process> processes;
  for (std::uint32_t rank = 0; rank < kMembers; ++rank)
    processes.emplace_back(
        [&, rank](Parent& parent) { return take_part(parent, hosts, group, rank); });
  std::vector<std::string> orders;
  for (Process& process : processes) {
    const std::string description = process.receive_line();
    EXPECT_TRUE(test::contains(description, "shared memory with ")) << description;
    EXPECT_TRUE(test::contains(description, "tcp at ")) << description;
    orders.push_back(process.receive_line());
  }
  for (const std::string& order : orders) {
    EXPECT_EQ(order.size(), kStages * kMembers);
    EXPECT_EQ(order, orders.front());
  }
  for (Process& process : processes) EXPECT_EQ(process.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin
