#include "gateway/rule.hpp"

#include "gateway/dds_sample.hpp"
#include "gateway/dds_type.hpp"
#include "gateway/house.hpp"
#include "support/errors.hpp"
#include "topic/sample_json.hpp"

/// What the rules of a gateway, and the types of DDS, can be.
namespace dunlin::test {
namespace {

using namespace pubsub;

using app::gateway::DdsType;
using app::gateway::Rule;

std::string why_refused(const std::string& entry) {
  const OwnDirectory directory;
  std::ofstream(directory / "topics.json") << "{\"topics\": [" << entry << "]}";
  return what_is_thrown_by(
      [&] { static_cast<void>(app::gateway::read_rules(directory / "topics.json")); });
}

TEST(GatewayRules, SayWhatIsCarriedAndHow) {
  const OwnDirectory directory;
  std::ofstream(directory / "topics.json") << R"({"topics": [
    {"topic": "a"},
    {"topic": "b", "dds_topic": "rt/b", "dds_type": "T", "type": "T final\nx i32\n",
     "direction": "to_dds", "reliability": "best_effort", "durability": "transient_local",
     "depth": 5, "max_samples": 7, "deadline_ms": 20, "lifespan_ms": 30, "partition": ["p", "q*"],
     "representation": "xcdr2", "ownership": "shared", "liveliness": "automatic",
     "destination_order": "by_reception"}]})";
  const auto rules = app::gateway::read_rules(directory / "topics.json");
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].dds_name(), "a");
  EXPECT_TRUE(rules[0].to_dds && rules[0].from_dds && !rules[0].transient_local);
  const Rule& b = rules[1];
  EXPECT_EQ(b.dds_name(), "rt/b");
  EXPECT_TRUE(b.to_dds && !b.from_dds && b.transient_local.value_or(false));
  EXPECT_EQ(b.reliability, Reliability::best_effort());
  EXPECT_EQ(b.partitions, (Words{"p", "q*"}));
  EXPECT_EQ(b.representation, Rule::Representation::xcdr2);
  const TopicQos topic = app::gateway::topic_qos_of(b);
  EXPECT_EQ(topic.level, Level::volatile_storage);
  EXPECT_EQ(topic.history, History::keep_last(5));
  EXPECT_EQ(topic.max_samples, 7U);
  EXPECT_EQ(app::gateway::writer_qos_of(b).deadline.period_ns, 20'000'000U);
  EXPECT_EQ(app::gateway::writer_qos_of(b).lifespan.duration_ns, 30'000'000U);
  EXPECT_FALSE(app::gateway::is_transient_local(rules[0], {}));
  EXPECT_TRUE(app::gateway::is_transient_local(rules[0], topic));
}

TEST(GatewayRules, NameWhatCannotBeCarried) {
  const std::map<std::string, std::string> refused{
      {R"("ownership": "exclusive")", R"(ownership "exclusive" cannot be carried: all writers)"},
      {R"("ownership_strength": 3)", "ownership_strength 3 cannot be carried"},
      {R"("liveliness": "manual_by_topic")", R"(liveliness "manual_by_topic" cannot be carried)"},
      {R"("presentation": "group")", R"(presentation "group" cannot be carried: changes)"},
      {R"("destination_order": "by_source")", R"(destination_order "by_source" cannot be carried)"},
      {R"("time_based_filter": 5)",
       "time_based_filter 5 cannot be carried: give it to the readers"},
      {R"("latency_budget": 5)", "latency_budget 5 cannot be carried"},
      {R"("transport_priority": 5)", "transport_priority 5 cannot be carried"},
      {R"("resource_limits": {})", "resource_limits {} cannot be carried"},
      {R"("durability_service": {})", "durability_service {} cannot be carried"},
      {R"("writer_data_lifecycle": true)", "writer_data_lifecycle true cannot be carried"},
      {R"("reader_data_lifecycle": 1)", "reader_data_lifecycle 1 cannot be carried"},
      {R"("user_data": "x")", R"(user_data "x" cannot be carried)"},
      {R"("durability": "persistent")", R"(durability "persistent" cannot be carried; one of)"},
      {R"("direction": "up")",
       R"(direction "up" cannot be carried; one of both, to_dds, from_dds)"},
      {R"("depth": 0)", "depth is 0, and not a number from 1 to"},
      {R"("deadline_ms": "x")", "deadline_ms is \"x\", and not a number"},
      {R"("partition": [1])", "partition has 1, which is no text"},
      {R"("topics": 1)", R"("topics" is no key of a topic)"}};
  for (const auto& [policy, why] : refused) {
    const std::string told = why_refused("{\"topic\": \"ships\", " + policy + "}");
    EXPECT_TRUE(contains(told, "entry 1, topic \"ships\": " + why)) << told;
  }
  EXPECT_TRUE(contains(why_refused("{}"), "has no \"topic\""));
  Rule stores{.topic = "ships", .transient_local = true};
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { static_cast<void>(app::gateway::is_transient_local(stores, {})); }),
      "durability 'transient_local' cannot be carried: the topic is of level"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         static_cast<void>(
                             app::gateway::is_transient_local({}, {.level = Level::logged}));
                       }),
                       "logged"));
}

TEST(GatewayRules, AreReadBeforeAnythingIsEntered) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_command({"gateway", "--group", "none", "--join", "--name", "dds0"}),
            app::Status::bad_input);
  EXPECT_EQ(run_command({"gateway", "--group", "none", "--join", "--name", "b", "--topics", "t"}),
            app::Status::bad_input);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(told, "no topic is to be carried: give --topics or --config")) << told;
  EXPECT_TRUE(contains(told, "a gateway of network dds0 is called 'dds0' or 'dds0-...'")) << told;
}

TEST(DdsType, NamesTheMemberThatDdsCannotHave) {
  const std::map<std::string, std::string> refused{
      {"T final\nids[] i32 key\n", "key member 'ids' is a sequence"},
      {"T final\nid? i32 key\n", "key member 'id' is a sequence, an optional member"},
      {"T final\nk P appendable key\nk.x i32\n", "key member 'k' is an appendable struct"},
      {"T final\nxs[]? i32\n", "member 'xs' has optional elements"},
      {"T final\nx i128\n", "member 'x' is a 'i128', which DDS does not have"}};
  for (const auto& one : refused) {
    const std::string told =
        what_is_thrown_by([&] { DdsType(app::topic::parse_type(one.first), "T"); });
    EXPECT_TRUE(contains(told, one.second)) << told;
  }
}

/// As `idlc` of Cyclone DDS 0.10.2 compiles them.
TEST(DdsType, TellsKeysOfNestedStructsByTheirInstructions) {
  const DdsType type(
      app::topic::parse_type("T final\nx i64\np P final key\np.a i32\np.b char*3\nk u8 key\n"),
      "T");
  const auto& descriptor = type.descriptor();
  ASSERT_EQ(descriptor.m_nkeys, 3U);
  EXPECT_STREQ(descriptor.m_keys[0].m_name, "p.a");
  EXPECT_STREQ(descriptor.m_keys[1].m_name, "p.b");
  EXPECT_STREQ(descriptor.m_keys[2].m_name, "k");
  const auto path = [&](std::size_t key) {
    const std::uint32_t* const at = descriptor.m_ops + descriptor.m_keys[key].m_offset;
    return std::vector<std::uint32_t>(at + 1, at + 1 + (*at & DDS_KOF_OFFSET_MASK));
  };
  EXPECT_EQ(path(0), (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(path(1), (std::vector<std::uint32_t>{2, 2}));
  EXPECT_EQ(path(2), (std::vector<std::uint32_t>{5}));
  EXPECT_EQ(descriptor.m_flagset, DDS_TOPIC_FIXED_KEY | DDS_TOPIC_FIXED_KEY_XCDR2);
}

TEST(DdsType, LaysASampleOutInMemoryAndTakesItBack) {
  const app::topic::TypeTree tree = app::topic::parse_type(
      "T appendable\nb bool\ns string key\nd? f64\nt? string\nps[] P appendable\nps[].x i16\n"
      "ps[].names[2] string\ncs[] char*3\ngrid[2][3] u16\nrows[][] i64\nop? P2 final\nop?.v[] "
      "u8\n");
  const DdsType type(tree, "T");
  app::gateway::DdsSample memory(type);
  for (const std::string json :
       {R"({})",
        R"({"b": true, "s": "key", "d": 2.5, "t": "", "ps": [{"x": -1, "names": ["a", ""]}],
            "cs": ["abc", "d"], "grid": [[1, 2, 3], [4, 5, 6]], "rows": [[1], [], [2, 3]],
            "op": {"v": [9, 8]}})"}) {
    const RawSample sample = app::topic::read_sample(tree, json);
    memory.load(sample.payload);
    const RawSample again = raw_sample_of(type, memory.data());
    EXPECT_EQ(again.payload, sample.payload) << json;
    EXPECT_EQ(again.key_hash, sample.key_hash) << json;
    // Damaged ones are refused, or are another sample; what was taken so far is given back.
    for (std::size_t bytes = 0; bytes < sample.payload.size(); ++bytes) {
      const auto part = std::span(sample.payload).first(bytes);
      static_cast<void>(what_is_thrown_by([&] { memory.load(part); }));
    }
  }
}

TEST(DdsType, TakesNoMoreMemoryThanInProportionToThePayload) {
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<std::byte> payload(kBytes);
  payload[1] = std::byte{7};
  const auto put = [&](std::size_t at, std::uint32_t value) {
    std::memcpy(&payload[at], &value, sizeof value);
  };
  put(4, kBytes - 8);
  put(8, kBytes - 12);
  for (const std::string text : {"T final\nps[] P final\nps[].x char*8184\n",
                                 "T final\nps[] P appendable\nps[].x char*9000\n",
                                 "T final\nps[] P final\nps[].x[4096][4096] i8\n"}) {
    const DdsType type(app::topic::parse_type(text), "T");
    app::gateway::DdsSample memory(type);
    EXPECT_TRUE(contains(what_is_thrown_by([&] { memory.load(payload); }), "no XCDR2")) << text;
    EXPECT_EQ(static_cast<const dds_sequence_t*>(memory.data())->_buffer, nullptr) << text;
  }
}

TEST(DdsType, RefusesATextWithAZeroInside) {
  const app::topic::TypeTree tree = app::topic::parse_type("T final\ns string\n");
  const DdsType type(tree, "T");
  app::gateway::DdsSample memory(type);
  RawSample sample = app::topic::read_sample(tree, R"({"s": "ab"})");
  sample.payload.at(8) = std::byte{0};
  EXPECT_TRUE(contains(what_is_thrown_by([&] { memory.load(sample.payload); }),
                       "member 's' has a text with a zero byte"));
}

}  // namespace
}  // namespace dunlin::test
