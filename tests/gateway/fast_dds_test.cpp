#include "gateway/house.hpp"

/// `dunlin gateway` between a group and a program that uses Fast DDS.
namespace dunlin::test {
namespace {

using namespace pubsub;

#ifdef DUNLIN_FAST_DDS_PEER
constexpr const char* kPeer = DUNLIN_FAST_DDS_PEER;
#else
constexpr const char* kPeer = "";
#endif

struct Position {
  std::uint32_t ship = 0;
  std::uint32_t number = 0;
  using TopicKey = KeyOf<&Position::ship>;
};

class GatewayWithFastDds : public GatewayHouse {
 protected:
  GatewayWithFastDds() {
    // Fast DDS knows no tags, so participants of other tests may be in the domain, too: the topic
    // is this test's own.
    setenv("CYCLONEDDS_URI",
           "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"lo\"/>"
           "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery>"
           "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>9"
           "</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>"
           "</Domain></CycloneDDS>",
           1);
  }
  void SetUp() override {
    if (*kPeer == 0) GTEST_SKIP() << "Fast DDS is missing (libfastrtps-dev)";
  }
  Process start_positions_gateway() {
    return start_gateway(
        "dds", {"--config", write_config(R"({"topics": [{"topic": "positions", )"
                                         R"("dds_type": "fleet::Position", "dds_topic": ")" +
                                         dds_topic + "\"}]}")});
  }
  Process start_fast_dds() {
    Process peer = start_program({kPeer, domain, dds_topic, "keep_all"});
    hear(peer, "ready");
    return peer;
  }
  std::string dds_topic = "positions_" + std::to_string(getpid());
};

TEST_F(GatewayWithFastDds, CarriesSamplesAndTheEndsOfInstancesFromFastDds) {
  const Topic<Position> topic(participant, "positions");
  DataReader<Position> reader{Subscriber(participant), topic, everything()};
  Process gateway = start_positions_gateway();
  Process peer = start_fast_dds();
  begin(peer, {"writer"});
  // In DDS a reader may find a writer after the writer has found it, and gets nothing of what was
  // written before: so the peer writes about a ship of its own until something comes.
  for (std::uint32_t slice = 0;
       slice < kPatienceNs / (kSliceMs * 1'000'000) && !reader->available(); ++slice) {
    peer.send_line("write 9 0");
    run_until(
        participant, [&] { return reader->available(); }, kSliceMs);
  }
  const auto next = [&]() -> std::string {
    while (until([&] { return reader->available(); })) {
      const auto samples = reader.take({.max_samples = 1});
      const Position& position = samples[0].data();
      if (position.ship == 9) continue;
      const std::string ship = std::to_string(position.ship);
      if (samples[0].info().valid()) return ship + " " + std::to_string(position.number);
      const bool disposed = samples[0].info().instance_state == InstanceState::disposed;
      return (disposed ? "disposed " : "no_writers ") + ship;
    }
    return "nothing";
  };
  peer.send_line("write 7 3");
  EXPECT_EQ(next(), "7 3");
  peer.send_line("write 8 4000000000");
  EXPECT_EQ(next(), "8 4000000000");
  peer.send_line("dispose 7");
  EXPECT_EQ(next(), "disposed 7");
  peer.send_line("end");
  EXPECT_EQ(next(), "no_writers 8");
  end(gateway);
}

/// Not the ends of instances: Fast DDS 2.9 takes the header of a serialized key for a part of the
/// key.
TEST_F(GatewayWithFastDds, CarriesSamplesToFastDds) {
  // What is stored it is sent, if it finds the gateway's writer late.
  const Topic<Position> topic(participant, "positions", {.level = Level::volatile_storage});
  DataWriter<Position> writer{Publisher(participant), topic};
  Process gateway = start_positions_gateway();
  Process peer = start_fast_dds();
  begin(peer, {"read"});
  write(writer, {.ship = 7, .number = 3});
  EXPECT_EQ(next_line(peer), "sample 7 3");
  write(writer, {.ship = 8, .number = 4'000'000'000});
  EXPECT_EQ(next_line(peer), "sample 8 4000000000");
  end(gateway);
}

}  // namespace
}  // namespace dunlin::test
