#include <regex>

#include "gateway/house.hpp"

/// `dunlin gateway` with `ddsperf` of Cyclone DDS, which measures what it sends and receives.
namespace dunlin::test {
namespace {

using namespace pubsub;

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
      {"topic": "DDSPerfRDataKS", "dds_type": "KeyedSeq", "max_samples": 100000}]})")});
  }
};

/// GWY-2.
TEST_F(GatewayWithDdsperf, TakesWhatItPublishesInOrderAndWithoutAGap) {
  constexpr std::uint32_t kKeys = 4;
  constexpr std::uint32_t kSamples = 500;
  const Topic<KeyedSeq> topic(participant, kTopic);
  DataReader<KeyedSeq> reader{Subscriber(participant), topic, everything()};
  Process gateway = start();
  Process ddsperf = start_program({kDdsperf, "-i", domain, "-T", "KS", "-n", std::to_string(kKeys),
                                   "-L", "pub", "2000Hz", "size", "100"});
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
  end(gateway);  // first: while a process is killed, this member is silent
}

TEST_F(GatewayWithDdsperf, IsGivenWhatAMemberPublishes) {
  const Topic<KeyedSeq> topic(participant, kTopic);
  DataWriter<KeyedSeq> writer{Publisher(participant), topic};
  Process gateway = start();
  // It prints each second what it has got, as "... size 20 total 950 lost 0 ...".
  Process ddsperf = start_program({kDdsperf, "-i", domain, "-T", "KS", "-n", "1", "sub"});
  std::string printed;
  KeyedSeq sample{.baggage = std::vector<std::uint8_t>(20)};
  std::uint64_t next_ns = 0;
  std::smatch got;
  ASSERT_TRUE(until([&] {
    std::array<char, 4'096> part;
    const ssize_t count = recv(ddsperf.descriptor(), part.data(), part.size(), MSG_DONTWAIT);
    if (count > 0) printed.append(part.data(), static_cast<std::size_t>(count));
    if (const std::uint64_t now_ns = fabric->now_ns(); now_ns >= next_ns) {
      if (writer.write(sample) == WriteResult::written) ++sample.seq;
      next_ns = now_ns + 1'000'000;
    }
    fabric->wake_at(next_ns);
    return std::regex_search(printed, got, std::regex("total ([1-9][0-9]*) lost ([0-9]+)"));
  })) << printed;
  EXPECT_EQ(got[2], "0") << printed;
  end(gateway);
}

}  // namespace
}  // namespace dunlin::test
