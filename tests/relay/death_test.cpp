#include <algorithm>
#include <string>
#include <vector>

#include <poll.h>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>

#include "relay/house.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// Relays that are processes, and die.
namespace dunlin::test {
namespace {

using namespace dunlin::relay;
using pubsub::WriteResult;

constexpr std::uint32_t kPatienceMs = 60'000;

pubsub::TopicQos stored_topic() {
  pubsub::TopicQos qos;
  qos.level = pubsub::Level::volatile_storage;
  return qos;
}

/// A member of a group of three that relays until its parent says so. It tells its port, and at the
/// end whether it was given each sample of the topic once, in order.
int relay_and_listen(Parent& parent, const std::string& group_name, const std::string& name) {
  const auto fabric = join({.group = group_name, .names = {"x", "y", "z"}, .name = name});
  Group group(*fabric);
  pubsub::DomainParticipant participant(group);
  Relay relay(participant);
  const pubsub::Topic<Counted> topic(participant, "counts", stored_topic());
  pubsub::DataReader<Counted> reader{pubsub::Subscriber(participant), topic};
  std::vector<std::uint32_t> heard;
  reader.on_sample([&](const Counted& sample, const pubsub::SampleInfo& info) {
    if (info.valid()) heard.push_back(sample.number);
  });
  Loop loop(*fabric, {.wait = Wait::block});
  loop.add(participant).add(relay);
  if (!loop.run_until([&] { return reader->ready(); }, kPatienceMs)) return 1;
  parent.send_line(std::to_string(relay.port()));
  std::uint64_t awaited = UINT64_MAX;
  struct Watch {
    Parent& parent;
    std::uint64_t& awaited;
    std::size_t poll() {
      pollfd line{.fd = parent.descriptor(), .events = POLLIN, .revents = 0};
      if (awaited != UINT64_MAX || ::poll(&line, 1, 0) <= 0) return 0;
      awaited = std::stoull("0" + parent.receive_line());
      return 1;
    }
    [[nodiscard]] Waits waits() const { return {.descriptors = {parent.descriptor()}}; }
  } watch{parent, awaited};
  loop.add(watch);
  if (!loop.run_until([&] { return heard.size() >= awaited; }, kPatienceMs)) return 1;
  std::string verdict = "each once, in order";
  for (std::size_t i = heard.size(); i > 0; --i)
    if (heard[i - 1] != i - 1)
      verdict = "at " + std::to_string(i - 1) + " is " + std::to_string(heard[i - 1]);
  parent.send_line(std::to_string(heard.size()) + " samples, " + verdict);
  // Its parent ends it: two members cannot go on when one of them leaves without a word.
  static_cast<void>(loop.run_until([] { return false; }, kPatienceMs));
  return 0;
}

TEST(RelayDeath, LosesAndRepeatsNoSampleWhenTheClientGoesOnAtAnotherRelay) {
  const auto all = static_cast<std::uint32_t>(rounds(4'000));
  const std::string group = fresh_group();
  const auto start = [&](const std::string& name) {
    return std::make_unique<Process>(
        [=](Parent& parent) { return relay_and_listen(parent, group, name); });
  };
  const auto first = start("x");
  const auto second = start("y");
  const auto third = start("z");
  const std::string first_port = first->receive_line();
  const std::string second_port = second->receive_line();
  ASSERT_NE(third->receive_line(), "");
  RelayClient client({.relays = {"127.0.0.1:" + first_port, "127.0.0.1:" + second_port}});
  RelayWriter<Counted> writer(client, "counts");
  RelayReader<Counted> reader(client, "counts",
                              {.durability = {.kind = pubsub::Durability::Kind::transient_local}});
  ASSERT_TRUE(client.run_until([&] { return writer.ready() && reader.ready(); }, kPatienceMs))
      << client.why_disconnected();
  std::vector<std::uint32_t> taken;
  bool killed = false;
  ASSERT_TRUE(client.run_until(
      [&] {
        const std::uint32_t up_to = killed ? all : all / 2;
        for (int i = 0; i < 16 && writer.written() < up_to; ++i)
          if (writer.write({1, static_cast<std::uint32_t>(writer.written())}) !=
              WriteResult::written)
            break;
        for (const auto& sample : reader.take()) taken.push_back(sample.data.number);
        if (!killed && writer.acknowledged() > all / 4) {
          EXPECT_EQ(client.relay(), "127.0.0.1:" + first_port);
          first->kill();  // SIGKILL
          killed = true;
        }
        return taken.size() >= all && writer.acknowledged() == all;
      },
      kPatienceMs))
      << client.why_disconnected() << " taken " << taken.size() << " acknowledged "
      << writer.acknowledged();
  EXPECT_TRUE(killed);
  EXPECT_EQ(client.relay(), "127.0.0.1:" + second_port);
  EXPECT_EQ(client.counters().connections, 2U);
  ASSERT_EQ(taken.size(), all);
  for (std::uint32_t i = 0; i < all; ++i) ASSERT_EQ(taken[i], i);
  EXPECT_EQ(reader.lost(), 0U);

  for (Process* const member : {second.get(), third.get()}) {
    member->send_line(std::to_string(all));
    EXPECT_EQ(member->receive_line(), std::to_string(all) + " samples, each once, in order");
  }
}

}  // namespace
}  // namespace dunlin::test
