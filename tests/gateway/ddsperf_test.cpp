#include "gateway/house.hpp"

/// `dunlin gateway` with `ddsperf` of Cyclone DDS, which measures what it sends and receives.
namespace dunlin::test {
namespace {

struct KeyedSeq {
  std::uint32_t seq = 0;
  std::uint32_t keyval = 0;
  std::vector<std::uint8_t> baggage = {};
  using TopicKey = KeyOf<&KeyedSeq::keyval>;
};

class GatewayWithDdsperf : public GatewayHouse {
 protected:
  void SetUp() override {
    if (access(kDdsperf, X_OK) != 0) GTEST_SKIP() << "ddsperf is missing (cyclonedds-tools)";
  }
  static constexpr const char* kDdsperf = "/usr/bin/ddsperf";
  static constexpr const char* kTopic = "DDSPerfRDataKS";

  Process start() {
    return start_gateway("dds", {"--config", write_config(R"({"topics": [
      {"topic": "DDSPerfRDataKS", "dds_type": "KeyedSeq", "partition": ["DDSPerf"], "max_samples": 100000}]})")});
  }
};

/// GWY-2.
TEST_F(GatewayWithDdsperf, TakesWhatItPublishesInOrderAndWithoutAGap) {
  constexpr std::uint32_t kKeys = 4;
  constexpr std::uint32_t kSamples = 500;
  const Topic<KeyedSeq> topic(participant, kTopic);
  DataReader<KeyedSeq> reader{Subscriber(participant), topic, everything()};
  Process gateway = start();
  Process ddsperf =
      start_program({kDdsperf, "-i", domain, "-T", "KS", "-n", std::to_string(kKeys), "-L", "pub",
                     "2000Hz", "size", "100"});
  std::array<std::optional<std::uint32_t>, kKeys> last;
  std::uint32_t taken = 0;
  ASSERT_TRUE(until([&] {
    for (const auto& sample : reader.take()) {
      if (!sample.info().valid()) continue;
      const KeyedSeq& data = sample.data();
      EXPECT_EQ(data.baggage.size(), 100U - 12U);
      auto& before = last.at(data.keyval);
      EXPECT_TRUE(!before || data.seq == *before + kKeys) << data.seq;
      before = data.seq;
      ++taken;
    }
    return taken >= kSamples;
  }));
  ddsperf.kill();
  end(gateway);
}

TEST_F(GatewayWithDdsperf, IsGivenWhatAMemberPublishes) {
  const Topic<KeyedSeq> topic(participant, kTopic);
  DataWriter<KeyedSeq> writer{Publisher(participant), topic};
  Process gateway = start();
  // It fails unless so many samples have come when its time is up.
  Process ddsperf = start_program({kDdsperf, "-i", domain, "-T", "KS", "-n", "1", "-D", "1.5", "-Q",
                                   "samples:100", "sub"});
  bool over = false;
  KeyedSeq sample{.baggage = std::vector<std::uint8_t>(20)};
  std::uint64_t next_ns = 0;
  ASSERT_TRUE(until([&] {
    std::array<char, 4'096> part;
    over = over || recv(ddsperf.descriptor(), part.data(), part.size(), MSG_DONTWAIT) == 0;
    if (const std::uint64_t now_ns = fabric->now_ns(); !over && now_ns >= next_ns) {
      if (writer.write(sample) == WriteResult::written) ++sample.seq;
      next_ns = now_ns + 1'000'000;
    }
    fabric->wake_at(next_ns);
    return over;
  }));
  EXPECT_EQ(ddsperf.exit_code(), 0);
  end(gateway);
}

}  // namespace
}  // namespace dunlin::test
