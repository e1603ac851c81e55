#include <algorithm>
#include <csignal>
#include <set>

#include "gateway/house.hpp"

/// `dunlin gateway` between a group and programs that use Cyclone DDS by its Python package.
namespace dunlin::test {
namespace {

using namespace pubsub;

struct Part {
  std::int64_t id = 0;
  std::vector<std::string> tags = {};
  friend bool operator==(const Part&, const Part&) = default;
};
struct Mixed {
  std::uint8_t a = 0;
  std::int64_t id = 0;
  bool b = false;
  double f = 0;
  std::array<std::int32_t, 6> grid = {};
  std::vector<std::string> words = {};
  std::vector<std::vector<std::int32_t>> rows = {};
  std::vector<Part> parts = {};
  Part one = {};
  std::array<Part, 2> two = {};
  using TopicKey = KeyOf<&Mixed::a, &Mixed::id>;
};
struct Note {
  std::int32_t id = 0;
  std::optional<std::int64_t> page = {};
  std::optional<std::string> text = {};
  std::optional<std::vector<std::int32_t>> numbers = {};
  static constexpr auto kExtensibility = Extensibility::appendable;
  using TopicKey = KeyOf<&Note::id>;
};
struct Setting {  // without a key
  std::int32_t key = 0;
  std::int32_t value = 0;
};
struct Position {  // plain
  std::uint32_t ship = 0;
  std::uint32_t number = 0;
  using TopicKey = KeyOf<&Position::ship>;
};

/// A writer in the domain may find a reader after this one has found it. What is stored it sends
/// then.
constexpr TopicQos kStored{.level = Level::volatile_storage};

/// What a reader is given, one line for each sample or change.
template <class T>
class Log {
 public:
  Log(DataReader<T>& reader, std::function<std::string(const T&)> show)
      : reader_(reader), show_(std::move(show)) {}
  bool has(const std::string& line) {
    take();
    return std::ranges::count(lines, line) > 0;
  }
  void take() {
    for (const auto& sample : reader_.take())
      lines.push_back((sample.info().valid()                                     ? "sample "
                       : sample.info().instance_state == InstanceState::disposed ? "disposed "
                                                                                 : "no_writers ") +
                      show_(sample.data()));
  }
  std::vector<std::string> lines = {};

 private:
  DataReader<T>& reader_;
  std::function<std::string(const T&)> show_;
};

TEST_F(Gateway, CarriesSamplesAndTheEndsOfInstancesFromDds) {
  const Topic<Ship> topic(participant, "ships");
  DataReader<Ship> reader{Subscriber(participant), topic, everything()};
  Log<Ship> log(reader, [](const Ship& ship) { return ship.name; });
  Process gateway = start_gateway("dds", ships());
  Process peer = start_peer({"ships", "Ship", "reliable", "keep_all", "no_dispose"});
  begin(peer, {"writer"});
  peer.send_line(R"(write {"name": "Ada", "x": 3, "y": -4})");
  ASSERT_TRUE(until([&] { return reader->available(); }))
      << (gateway.signal(SIGTERM), gateway.receive_all_lines());
  {
    const auto samples = reader.take();
    ASSERT_EQ(samples.length(), 1U);
    EXPECT_EQ(samples[0].data().name, "Ada");
    EXPECT_EQ(samples[0].data().x, 3);
    EXPECT_EQ(samples[0].data().y, -4);
  }
  peer.send_line(R"(write {"name": "Bob"})");
  peer.send_line(R"(dispose {"name": "Ada"})");
  peer.send_line(R"(unregister {"name": "Bob"})");
  ASSERT_TRUE(until([&] { return log.has("no_writers Bob") && log.has("disposed Ada"); }))
      << testing::PrintToString(log.lines);
  // Written again, it is a new instance; and a writer that goes leaves its instances.
  peer.send_line(R"(write {"name": "Ada", "x": 5})");
  ASSERT_TRUE(until([&] { return log.has("sample Ada"); })) << testing::PrintToString(log.lines);
  peer.send_line("end");
  EXPECT_TRUE(until([&] { return log.has("no_writers Ada"); }))
      << testing::PrintToString(log.lines);
  end(gateway);
}

TEST_F(Gateway, CarriesSamplesAndTheEndsOfInstancesToDds) {
  const Topic<Ship> topic(participant, "ships", kStored);
  DataWriter<Ship> writer{Publisher(participant), topic};
  Process gateway = start_gateway("dds", ships());
  Process peer = start_peer({"ships", "Ship", "reliable", "keep_all", "transient_local"});
  begin(peer, {"read"});
  write(writer, {.name = "Ada", .x = 3, .y = -4});
  EXPECT_EQ(next_line(peer), R"(sample {"name": "Ada", "x": 3, "y": -4})");
  write(writer, {.name = "Bob"});
  EXPECT_EQ(next_line(peer), R"(sample {"name": "Bob", "x": 0, "y": 0})");
  ASSERT_TRUE(
      until([&] { return writer.dispose_instance({.name = "Ada"}) == WriteResult::written; }));
  EXPECT_EQ(next_line(peer), R"(disposed {"name": "Ada"})");
  ASSERT_TRUE(
      until([&] { return writer.unregister_instance({.name = "Bob"}) == WriteResult::written; }));
  EXPECT_EQ(next_line(peer), R"(no_writers {"name": "Bob"})");
  write(writer, {.name = "Bob", .x = 7});
  EXPECT_EQ(next_line(peer), R"(sample {"name": "Bob", "x": 7, "y": 0})");
  end(gateway);
  EXPECT_EQ(next_line(peer), R"(no_writers {"name": "Bob"})");
}

TEST_F(Gateway, CarriesMembersOfEveryKindBothWays) {
  const Topic<Mixed> mixed(participant, "mixed", kStored);
  const Topic<Note> notes(participant, "notes", kStored);
  const Topic<Position> positions(participant, "positions", kStored);
  DataReader<Mixed> mixed_reader{Subscriber(participant), mixed, everything()};
  DataReader<Note> note_reader{Subscriber(participant), notes, everything()};
  DataReader<Position> position_reader{Subscriber(participant), positions, everything()};
  DataWriter<Mixed> mixed_writer{Publisher(participant), mixed};
  DataWriter<Note> note_writer{Publisher(participant), notes};
  DataWriter<Position> position_writer{Publisher(participant), positions};
  const std::string config = write_config(
      R"({"topics": [{"topic": "mixed", "dds_type": "Mixed"},
                     {"topic": "notes", "dds_topic": "rt/notes", "dds_type": "Note"},
                     {"topic": "positions", "dds_type": "fleet::Position"}]})");
  Process gateway = start_gateway("dds", {"--config", config}, 3);
  Process mixed_peer = start_peer({"mixed", "Mixed", "reliable", "keep_all", "transient_local"});
  Process note_peer = start_peer({"rt/notes", "Note", "reliable", "keep_all", "transient_local"});
  Process position_peer =
      start_peer({"positions", "Position", "reliable", "keep_all", "transient_local"});
  begin(mixed_peer, {"writer", "read"});
  begin(note_peer, {"writer", "read"});
  begin(position_peer, {"writer", "read"});

  const std::string mixed_json =
      R"({"a": 7, "b": true, "f": 2.5, "grid": [1, 2, 3, 4, 5, 6], "id": -8, )"
      R"("one": {"id": 9, "tags": ["x"]}, "parts": [{"id": 1, "tags": []}, {"id": 2, "tags": ["yy", ""]}], )"
      R"("rows": [[1], [], [2, 3]], "two": [{"id": 3, "tags": []}, {"id": 4, "tags": ["z"]}], )"
      R"("words": ["", "abc"]})";
  mixed_peer.send_line("write " + mixed_json);
  ASSERT_TRUE(until([&] { return mixed_reader->available(); }));
  const Mixed got = mixed_reader.take()[0].data();
  EXPECT_EQ(got.a, 7);
  EXPECT_EQ(got.id, -8);
  EXPECT_TRUE(got.b);
  EXPECT_EQ(got.f, 2.5);
  EXPECT_EQ(got.grid, (std::array<std::int32_t, 6>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(got.words, (std::vector<std::string>{"", "abc"}));
  EXPECT_EQ(got.rows, (std::vector<std::vector<std::int32_t>>{{1}, {}, {2, 3}}));
  EXPECT_EQ(got.parts, (std::vector<Part>{{1, {}}, {2, {"yy", ""}}}));
  EXPECT_EQ(got.one, (Part{9, {"x"}}));
  EXPECT_EQ(got.two, (std::array<Part, 2>{Part{3, {}}, Part{4, {"z"}}}));
  EXPECT_EQ(next_line(mixed_peer), "sample " + mixed_json);  // its own
  write(mixed_writer, got);
  EXPECT_EQ(next_line(mixed_peer), "sample " + mixed_json);

  for (const std::string json : {R"({"id": 1, "numbers": [4, 5], "page": 6, "text": "seven"})",
                                 R"({"id": 2, "numbers": null, "page": null, "text": null})"}) {
    note_peer.send_line("write " + json);
    std::optional<Note> note;
    ASSERT_TRUE(until([&] {
      for (const auto& sample : note_reader.take())
        if (sample.info().publication.member == "dds") note = sample.data();
      return note.has_value();
    }));
    write(note_writer, *note);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(next_line(note_peer), "sample " + json);
  }

  position_peer.send_line(R"(write {"number": 1, "ship": 4000000000})");
  ASSERT_TRUE(until([&] { return position_reader->available(); }));
  write(position_writer, Position(position_reader.take()[0].data()));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(next_line(position_peer), R"(sample {"number": 1, "ship": 4000000000})");
  end(gateway);
}

TEST_F(Gateway, CarriesATypeWithoutAKeyThatHasAMemberCalledKey) {
  const Topic<Setting> topic(participant, "settings", kStored);
  DataReader<Setting> reader{Subscriber(participant), topic, everything()};
  DataWriter<Setting> writer{Publisher(participant), topic};
  const std::string config =
      write_config(R"({"topics": [{"topic": "settings", "dds_type": "Setting"}]})");
  Process gateway = start_gateway("dds", {"--config", config});
  Process peer = start_peer({"settings", "Setting", "reliable", "keep_all", "transient_local"});
  begin(peer, {"writer", "read"});
  peer.send_line(R"(write {"key": 1, "value": 2})");
  ASSERT_TRUE(until([&] { return reader->available(); }));
  const Setting got = reader.take()[0].data();
  EXPECT_EQ(got.key, 1);
  EXPECT_EQ(got.value, 2);
  write(writer, {.key = 3, .value = 4});
  // The peer hears its own sample, too, before or after the gateway's.
  const std::set<std::string> heard{next_line(peer), next_line(peer)};
  EXPECT_EQ(heard, (std::set<std::string>{R"(sample {"key": 1, "value": 2})",
                                          R"(sample {"key": 3, "value": 4})"}));
  end(gateway);
}

/// Applications that have different types of one name ask each other for these types, and all
/// participants of the domain get the answers. Each of them ends a participant of Cyclone DDS
/// 0.10.2.
TEST_F(Gateway, GoesOnWhenApplicationsTellEachOtherTheirTypes) {
  const Topic<Ship> topic(participant, "ships");
  DataReader<Ship> reader{Subscriber(participant), topic, everything()};
  Process gateway = start_gateway("dds", ships());
  Process first = start_peer({"ships", "Bytes", "reliable"});
  begin(first, {"writer", "read"});
  Process second = start_peer({"ships", "MoreBytes", "reliable"});
  begin(second, {"writer", "read"});
  Process third = start_peer({"ships", "Ship", "reliable"});
  begin(third, {"writer"});
  third.send_line(R"(write {"name": "Ada", "x": 3})");
  ASSERT_TRUE(until([&] { return reader->available(); }));
  EXPECT_EQ(reader.take()[0].data().name, "Ada");
  end(gateway);
}

TEST_F(Gateway, NamesTheWriterOfTheGroupThatItCannotHear) {
  const Topic<Ship> topic(participant, "ships");
  DataWriterQos qos;
  qos << Reliability::best_effort();
  const DataWriter<Ship> writer{Publisher(participant), topic, qos};
  Process gateway = start_gateway("dds", ships());
  const std::string line = hear(gateway, "what it writes is not carried");
  EXPECT_NE(line.find("writer 0 of member 'a'"), std::string::npos) << line;
  EXPECT_NE(line.find("reliab"), std::string::npos) << line;
  end(gateway);
}

/// GWY-1, GWY-2.
TEST_F(Gateway, CarriesEachSampleOnceAlsoBesideAnotherGateway) {
  constexpr std::uint32_t kSamples = 50;  // which a peer can print before we listen
  const Topic<Position> topic(participant, "positions", kStored);
  DataReader<Position> reader{Subscriber(participant), topic, everything()};
  DataWriter<Position> writer{Publisher(participant), topic};
  const std::string config =
      write_config(R"({"topics": [{"topic": "positions", "dds_type": "fleet::Position"}]})");
  Process one = start_gateway("dds", {"--config", config});
  Process other = start_gateway("dds-b", {"--config", config});
  Process peer = start_peer({"positions", "Position", "reliable", "keep_all", "transient_local"});
  begin(peer, {"writer", "read"});
  ASSERT_TRUE(until([&] { return writer->publication_matched_status().current_count == 3; }));

  const auto show = [](const Position& position) {
    return std::to_string(position.ship) + " " + std::to_string(position.number);
  };
  Log<Position> log(reader, show);
  std::vector<std::string> expected;
  const auto expect_all = [&] {
    ASSERT_TRUE(until([&] { return log.has(expected.back()); }))
        << log.lines.size() << " of " << expected.size() << ", last "
        << (log.lines.empty() ? "" : log.lines.back());
    ASSERT_EQ(log.lines, expected);
  };
  std::vector<std::string> expected_of_peer;
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    peer.send_line("write {\"ship\": 1, \"number\": " + std::to_string(i) + "}");
    expected.push_back("sample 1 " + std::to_string(i));
    expected_of_peer.push_back("sample {\"number\": " + std::to_string(i) + ", \"ship\": 1}");
  }
  expect_all();
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    write(writer, {.ship = 2, .number = i});
    expected.push_back("sample 2 " + std::to_string(i));
    expected_of_peer.push_back("sample {\"number\": " + std::to_string(i) + ", \"ship\": 2}");
  }
  expect_all();
  for (const std::string& line : expected_of_peer) ASSERT_EQ(next_line(peer), line);

  // What had come back would be here before this.
  peer.send_line(R"(write {"ship": 3, "number": 0})");
  write(writer, {.ship = 4, .number = 0});
  std::set<std::string> last{next_line(peer), next_line(peer)};
  EXPECT_EQ(last, (std::set<std::string>{R"(sample {"number": 0, "ship": 3})",
                                         R"(sample {"number": 0, "ship": 4})"}));
  ASSERT_TRUE(until([&] { return log.has("sample 3 0") && log.has("sample 4 0"); }));
  EXPECT_EQ(log.lines.size(), expected.size() + 2);

  // The younger one goes on when the older one has left.
  end(one);
  write(writer, {.ship = 5, .number = 1});
  hear(peer, R"(sample {"number": 1, "ship": 5})");  // behind the ends of the older one's instances
  peer.send_line(R"(write {"ship": 6, "number": 2})");
  ASSERT_TRUE(until([&] { return log.has("sample 6 2"); }));
  log.take();
  std::erase_if(log.lines, [](const std::string& line) { return line.starts_with("no_writers"); });
  EXPECT_EQ(log.lines.size(), expected.size() + 4);
  end(other);
}

/// GWY-1, GWY-2.
TEST_F(Gateway, CarriesNothingAgainAfterItWasKilledAndStartedAgain) {
  const TopicQos qos{.level = Level::volatile_storage};
  const Topic<Ship> topic(participant, "ships", qos);
  DataReader<Ship> reader{Subscriber(participant), topic, everything()};
  DataWriter<Ship> writer{Publisher(participant), topic};
  Log<Ship> log(reader, [](const Ship& ship) { return ship.name; });
  Process killed = start_gateway("dds", ships());
  Process peer = start_peer({"ships", "Ship", "reliable", "keep_all", "transient_local"});
  begin(peer, {"writer"});
  write(writer, {.name = "ours"});
  peer.send_line(R"(write {"name": "theirs"})");
  ASSERT_TRUE(until([&] { return log.has("sample ours") && log.has("sample theirs"); }));
  killed.kill();
  // The group sees it fail, and its instances have no writers any more.
  ASSERT_TRUE(until([&] { return log.has("no_writers theirs"); }));

  Process gateway = start_gateway("dds", ships());
  begin(peer, {"read"});
  peer.send_line(R"(write {"name": "theirs", "x": 2})");
  ASSERT_TRUE(until(
      [&] { return std::ranges::count(log.lines, "sample theirs") == 2 || (log.take(), false); }));
  // A late reader in the domain is given what the group had stored, and nothing twice.
  write(writer, {.name = "last"});
  std::set<std::string> heard;
  for (std::string line; line != R"(sample {"name": "last", "x": 0, "y": 0})";) {
    line = next_line(peer);
    ASSERT_TRUE(heard.insert(line).second) << line;
  }
  EXPECT_TRUE(heard.contains(R"(sample {"name": "ours", "x": 0, "y": 0})"));
  EXPECT_TRUE(heard.contains(R"(sample {"name": "theirs", "x": 2, "y": 0})"));
  ASSERT_TRUE(until([&] { return log.has("sample last"); }));
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{"sample ours", "sample theirs", "no_writers theirs",
                                      "sample theirs", "sample last"}));
  end(gateway);
}

/// GWY-2: the other gateway has what the killed one did not carry.
TEST_F(Gateway, LosesNothingOfTheDomainWhenTheOldestOneIsKilled) {
  constexpr std::uint32_t kSamples = 200;
  const Topic<Position> topic(participant, "positions");
  DataReader<Position> reader{Subscriber(participant), topic, everything()};
  const std::string config =
      write_config(R"({"topics": [{"topic": "positions", "dds_type": "fleet::Position"}]})");
  Process oldest = start_gateway("dds", {"--config", config});
  Process other = start_gateway("dds-b", {"--config", config});
  Process peer = start_peer({"positions", "Position", "reliable", "keep_all"});
  begin(peer, {"writer"}, 2);
  Log<Position> log(reader, [](const Position& at) { return std::to_string(at.number); });
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    peer.send_line("write {\"ship\": 1, \"number\": " + std::to_string(i) + "}");
    if (i == kSamples / 2) {
      ASSERT_TRUE(until([&] { return log.has("sample 20"); }));
      oldest.kill();
    }
  }
  ASSERT_TRUE(until([&] { return log.has("sample " + std::to_string(kSamples - 1)); }));
  std::erase_if(log.lines, [](const std::string& line) { return line.starts_with("no_writers"); });
  std::vector<std::string> expected;
  for (std::uint32_t i = 0; i < kSamples; ++i) expected.push_back("sample " + std::to_string(i));
  EXPECT_EQ(log.lines, expected);
  end(other);
}

TEST_F(Gateway, GivesLateReadersWhatATransientLocalTopicHasStored) {
  const std::string config = write_config(
      R"({"topics": [{"topic": "ships", "durability": "transient_local", "depth": 2,
                      "dds_type": "Ship", "type": "dunlin::test::Ship final\nname string key\nx i32\ny i32\n"}]})");
  Process gateway = start_gateway("dds", {"--config", config});
  Process peer = start_peer({"ships", "Ship", "reliable", "keep_all", "transient_local"});
  begin(peer, {"writer"});
  for (int x = 0; x < 3; ++x)
    peer.send_line("write {\"name\": \"Ada\", \"x\": " + std::to_string(x) + "}");
  // The gateway alone has the topic so far, as its rule says.
  const auto stored = [&] {
    for (const TopicInfo& info : participant.topics())
      if (info.name == "ships") return info.qos.level == Level::volatile_storage;
    return false;
  };
  ASSERT_TRUE(until(stored));
  const TopicQos qos{
      .level = Level::volatile_storage, .history = History::keep_last(2), .max_samples = 4096};
  const Topic<Ship> topic(participant, "ships", qos);
  DataReaderQos late = everything();
  late.durability.kind = Durability::Kind::transient_local;
  DataReader<Ship> reader{Subscriber(participant), topic, late};
  Log<Ship> log(reader, [](const Ship& ship) { return ship.name + std::to_string(ship.x); });
  ASSERT_TRUE(until([&] { return log.has("sample Ada2"); }));
  EXPECT_GE(log.lines.size(), 2U);  // and more, if it came before the first was written

  DataWriter<Ship> writer{Publisher(participant), topic};
  for (int x = 0; x < 3; ++x) write(writer, {.name = "Bob", .x = x});
  ASSERT_TRUE(until([&] { return log.has("sample Bob2"); }));
  Process late_peer = start_peer({"ships", "Ship", "reliable", "keep_all", "transient_local"});
  begin(late_peer, {"read"});
  std::multiset<std::string> heard;
  hear(late_peer, R"(sample {"name": "Bob", "x": 1, "y": 0})");
  hear(late_peer, R"(sample {"name": "Bob", "x": 2, "y": 0})");
  end(gateway);
}

TEST_F(Gateway, CarriesOnlyTheTopicsPartitions) {
  const Topic<Ship> topic(participant, "ships");
  DataReader<Ship> reader{Subscriber(participant), topic, everything()};
  Log<Ship> log(reader, [](const Ship& ship) { return ship.name; });
  const std::string config = write_config(
      R"({"topics": [{"topic": "ships", "dds_type": "Ship", "partition": ["north", "east"], "direction": "from_dds"}]})");
  Process gateway = start_gateway("dds", {"--config", config});
  Process elsewhere = start_peer({"ships", "Ship", "reliable", "partition=south"});
  elsewhere.send_line(R"(write {"name": "south"})");
  Process peer = start_peer({"ships", "Ship", "reliable", "partition=east"});
  begin(peer, {"writer"});
  peer.send_line(R"(write {"name": "east"})");
  ASSERT_TRUE(until([&] { return log.has("sample east"); }));
  EXPECT_EQ(log.lines, Words{"sample east"});
  end(gateway);
}

TEST_F(Gateway, NamesThePolicyOrTypeThatKeepsAnApplicationOut) {
  const Topic<Ship> topic(participant, "ships");
  DataReader<Ship> reader{Subscriber(participant), topic, everything()};
  Process gateway = start_gateway("dds", ships());
  Process best_effort = start_peer({"ships", "Ship", "best_effort"});
  best_effort.send_line("writer");
  hear(gateway, "topic 'ships': a DDS writer offers less reliability");
  Process exclusive = start_peer({"ships", "Ship", "reliable", "exclusive"});
  exclusive.send_line("writer");
  hear(gateway, "topic 'ships': a DDS writer offers less ownership");
  Process persistent = start_peer({"ships", "Ship", "reliable", "persistent"});
  persistent.send_line("read");
  hear(gateway, "topic 'ships': a DDS reader requests more durability");
  Process other = start_peer({"ships", "Position", "reliable"});
  other.send_line("writer");
  hear(gateway, "a DDS writer has type 'fleet::Position', and not 'Ship'");
  Process keyless = start_peer({"ships", "Keyless", "reliable"});
  keyless.send_line("writer");
  hear(gateway, "the type 'Ship' of a DDS writer has no key, and the topic's type has one");
  Process coherent = start_peer({"ships", "Ship", "reliable", "coherent"});
  coherent.send_line("writer");
  hear(gateway, "a DDS writer is not heard: presentation: coherent_access");
  coherent.send_line(R"(write {"name": "coherent"})");
  Process peer = start_peer({"ships", "Ship", "reliable"});
  begin(peer, {"writer"});
  peer.send_line(R"(write {"name": "Ada"})");
  ASSERT_TRUE(until([&] { return reader->available(); }));
  EXPECT_EQ(reader.take()[0].data().name, "Ada");
  end(gateway);
}

}  // namespace
}  // namespace dunlin::test
