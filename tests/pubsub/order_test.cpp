#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>

#include "pubsub/participants.hpp"
#include "support/errors.hpp"

/// One order over several topics, in the simulator.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

/// A sample of either topic, and its place.
struct Seen {
  bool plain = false;
  std::uint64_t number = 0;
  std::uint64_t place = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};

DataReaderQos keeps_all(Durability::Kind durability = Durability::Kind::volatile_) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{durability};
  return qos;
}

constexpr TopicQos kFlight{.order = "flight"};
constexpr TopicQos kStoredFlight{.level = Level::volatile_storage, .order = "flight"};

/// Two topics of one order at one member, and what was taken of both.
class Ends {
 public:
  Ends(DomainParticipant& participant, const TopicQos& qos, const DataReaderQos& reader_qos)
      : counts_(participant, "counts", qos),
        plains_(participant, "plains", qos),
        count_reader_(Subscriber(participant), counts_, reader_qos),
        plain_reader_(Subscriber(participant), plains_, reader_qos),
        count_writer(Publisher(participant), counts_),
        plain_writer(Publisher(participant), plains_) {
    access_.add<Count>(count_reader_, [this](const Sample<Count>& sample) {
      if (sample.info().valid())
        seen.push_back({false, sample.data().number, sample.info().order_position});
    });
    access_.add<Plain>(plain_reader_, [this](const Sample<Plain>& sample) {
      if (sample.info().valid())
        seen.push_back({true, sample.data().number, sample.info().order_position});
    });
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  [[nodiscard]] bool ready() const {
    return count_reader_->ready() && plain_reader_->ready() && count_writer->ready() &&
           plain_writer->ready();
  }
  std::size_t take() { return access_.take(); }

  std::vector<Seen> seen;

 private:
  Topic<Count> counts_;
  Topic<Plain> plains_;
  DataReader<Count> count_reader_;
  DataReader<Plain> plain_reader_;
  OrderedAccess access_;

 public:
  DataWriter<Count> count_writer;
  DataWriter<Plain> plain_writer;
};

/// Writes to both in turn; takes all the time.
std::function<std::size_t()> writes_in_turn(std::optional<Ends>& ends, std::uint64_t& written,
                                            std::uint64_t first, std::uint64_t count) {
  return [&ends, &written, first, count]() -> std::size_t {
    if (!ends) return 0;
    std::size_t done = ends->take();
    if (written == count) return done;
    const WriteResult result = written % 2 == 0
                                   ? ends->count_writer.write({.number = first + written})
                                   : ends->plain_writer.write({.number = first + written});
    if (result != WriteResult::written) return done;
    ++written;
    return done + 1;
  };
}

TEST(OrderTest, GivesTheSamplesOfItsTopicsInOneSequenceToAll) {
  Participants all(3);
  std::vector<std::optional<Ends>> ends(3);
  std::vector<std::uint64_t> written(3);
  for (Rank rank = 0; rank < 3; ++rank) ends[rank].emplace(all[rank], kFlight, keeps_all());
  ASSERT_TRUE(all.until(
      [&] { return std::ranges::all_of(ends, [](const auto& one) { return one->ready(); }); }));
  for (Rank rank = 0; rank < 3; ++rank)
    all.nodes[rank].work = writes_in_turn(ends[rank], written[rank], rank * 1000, 100);
  ASSERT_TRUE(all.until([&] {
    return std::ranges::all_of(ends, [](const auto& one) { return one->seen.size() == 300; });
  }));
  EXPECT_EQ(ends[0]->seen, ends[1]->seen);
  EXPECT_EQ(ends[0]->seen, ends[2]->seen);
  for (std::size_t i = 0; i < 300; ++i) ASSERT_EQ(ends[0]->seen[i].place, i + 1);
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    std::vector<std::uint64_t> of_writer;
    for (const Seen& one : ends[0]->seen)
      if (one.number / 1000 == rank) of_writer.push_back(one.number % 1000);
    ASSERT_EQ(of_writer.size(), 100U);
    EXPECT_TRUE(std::ranges::is_sorted(of_writer)) << "a member's samples in both topics";
  }
  EXPECT_EQ(all[0].orders().size(), 1U);
  EXPECT_EQ(all[0].orders().front().name, "flight");
  EXPECT_EQ(all[0].orders().front().members.size(), 3U);
  const std::vector<TopicInfo> topics = all[1].topics();
  ASSERT_EQ(topics.size(), 2U);
  EXPECT_EQ(topics[0].qos, kFlight);
  EXPECT_EQ(topics[0].members.size(), 3U);
}

TEST(OrderTest, GivesALateMemberTheSameSequenceFromItsBeginning) {
  Participants all(2, 1, 1);
  std::vector<std::optional<Ends>> ends(3);
  std::vector<std::uint64_t> written(3);
  const DataReaderQos stored = keeps_all(Durability::Kind::transient_local);
  for (Rank rank = 0; rank < 2; ++rank) {
    ends[rank].emplace(all[rank], kStoredFlight, stored);
    all.nodes[rank].work = writes_in_turn(ends[rank], written[rank], rank * 10'000, 1500);
  }
  ASSERT_TRUE(all.until([&] { return written[0] > 700 && written[1] > 700; }));
  all.come(2);
  ASSERT_TRUE(all.until([&] { return all.nodes[2].participant != nullptr; }));
  all.world.on(2, [&] { ends[2].emplace(all[2], kStoredFlight, stored); });
  std::uint64_t none = 0;
  all.nodes[2].work = writes_in_turn(ends[2], none, 0, 0);
  ASSERT_TRUE(all.until([&] {
    return std::ranges::all_of(ends,
                               [](const auto& one) { return one && one->seen.size() == 3000; });
  }));
  EXPECT_EQ(ends[2]->seen, ends[0]->seen);
}

/// PUB-O3 promises what this test checks.
TEST(OrderTest, GivesAMemberTheSamplesOfATopicThatItOpensLater) {
  Participants all(2);
  Topic<Count> counts(all[0], "counts", kStoredFlight);
  DataWriter<Count> writer{Publisher(all[0]), counts};
  Topic<Plain> other(all[1], "plains", kStoredFlight);  // in the order, without that topic
  ASSERT_TRUE(all.until([&] { return writer->ready() && other.joined(); }));
  all.world.on(0, [&] {
    for (std::uint64_t i = 0; i < 20; ++i)
      ASSERT_EQ(writer.write({.number = i}), WriteResult::written);
  });
  all.run_for(5'000'000);
  std::optional<DataReader<Count>> reader;
  all.world.on(1, [&] {
    const Topic<Count> late(all[1], "counts", kStoredFlight);
    reader.emplace(Subscriber(all[1]), late, keeps_all(Durability::Kind::transient_local));
  });
  std::vector<std::uint64_t> numbers;
  ASSERT_TRUE(all.until([&] {
    if (!reader) return false;
    for (const auto& sample : reader->take()) {
      EXPECT_EQ(sample.info().position, sample.info().order_position);
      numbers.push_back(sample.data().number);
    }
    return numbers.size() == 20;
  }));
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
}

TEST(OrderTest, RefusesWhatDoesNotFitIt) {
  Participants all(2);
  EXPECT_THROW(Topic<Plain>(all[0], "p", {.level = Level::unordered, .order = "flight"}), Error);
  EXPECT_THROW(Topic<Plain>(all[0], "p", {.level = Level::logged, .order = "flight"}), Error);
  EXPECT_THROW(Topic<Plain>(all[0], "p", {.order = "a/b"}), Error);
  EXPECT_THROW(Topic<Plain>(all[0], "p", {.order = "a-name-of-more-than-31-characters"}), Error);
  const Topic<Plain> plains(all[0], "plains", kFlight);
  EXPECT_THROW(Topic<Plain>(all[0], "p", {.ring_bytes = 4096, .order = "flight"}), Error);
  EXPECT_THROW(Topic<Plain>(all[0], "plains", {.order = "other"}), Error);
  // Two members that give one topic other policies: the second one to come is told both.
  ASSERT_TRUE(all.until([&] { return plains.joined(); }));
  const Topic<Plain> differs(all[1], "plains", kStoredFlight);
  ASSERT_TRUE(all.until([&] { return !differs.why_refused().empty(); }));
  EXPECT_NE(differs.why_refused().find("level atomic"), std::string::npos) << differs.why_refused();
  EXPECT_NE(differs.why_refused().find("level volatile_storage"), std::string::npos);
  EXPECT_TRUE(plains.why_refused().empty());
  // It can be opened again with those that fit, and not with others.
  EXPECT_THROW(Topic<Plain>(all[1], "plains", kStoredFlight), Error);
  const Topic<Plain> corrected(all[1], "plains", kFlight);
  const DataWriter<Plain> writer{Publisher(all[1]), corrected};
  ASSERT_TRUE(all.until([&] { return writer->ready(); }));
  // Other rings: the order itself refuses the member.
  const Topic<Plain> rings(all[1], "p", {.ring_bytes = 4096, .order = "flight2"});
  ASSERT_TRUE(all.until([&] { return rings.joined(); }));
  const Topic<Plain> small(all[0], "p", {.ring_bytes = 8192, .order = "flight2"});
  ASSERT_TRUE(all.until([&] { return !small.why_refused().empty(); }));
  EXPECT_NE(small.why_refused().find("4096"), std::string::npos) << small.why_refused();
}

TEST(OrderTest, TakesOnlyReadersOfOneOrder) {
  Participants all(1);
  const Topic<Plain> alone(all[0], "alone");
  const Topic<Plain> one(all[0], "one", {.order = "one"});
  const Topic<Plain> two(all[0], "two", {.order = "two"});
  OrderedAccess access;
  const auto ignore = [](const Sample<Plain>&) {};
  const DataReader<Plain> of_alone{Subscriber(all[0]), alone};
  const DataReader<Plain> of_one{Subscriber(all[0]), one};
  const DataReader<Plain> of_two{Subscriber(all[0]), two};
  EXPECT_THROW(access.add<Plain>(of_alone, ignore), Error);
  access.add<Plain>(of_one, ignore);
  EXPECT_THROW(access.add<Plain>(of_two, ignore), Error);
}

TEST(OrderTest, TakingSaysWhyAReaderIsRefused) {
  Participants all(2);
  const Topic<Plain> plains(all[0], "topic", kFlight);
  const DataWriter<Plain> writer{Publisher(all[0]), plains};
  ASSERT_TRUE(all.until([&] { return writer->ready(); }));
  const Topic<Count> counts(all[1], "topic", kFlight);
  const DataReader<Count> reader{Subscriber(all[1]), counts};
  OrderedAccess access;
  access.add<Count>(reader, [](const Sample<Count>&) {});
  EXPECT_EQ(access.take(), 0U);
  ASSERT_TRUE(all.until([&] { return !reader->why_refused().empty(); }));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { access.take(); }), "another one"));
}

TEST(OrderTest, EndsWithItsLastHandleAndBeginsAnew) {
  Participants all(2);
  for (int time = 0; time < 2; ++time) {
    std::vector<std::optional<Ends>> ends(2);
    std::vector<std::uint64_t> written(2);
    for (Rank rank = 0; rank < 2; ++rank) {
      ends[rank].emplace(all[rank], kFlight, keeps_all());
      all.nodes[rank].work = writes_in_turn(ends[rank], written[rank], rank * 1000, 10);
    }
    ASSERT_TRUE(all.until([&] { return written[0] == 10 && written[1] == 10; }));
    all.run_for(5'000'000);
    EXPECT_FALSE(ends[0]->seen.empty());
    EXPECT_LE(ends[0]->seen.back().place, 20U) << "positions begin anew";
    for (Rank rank = 0; rank < 2; ++rank) {
      all.nodes[rank].work = nullptr;
      all.world.on(rank, [&ends, rank] { ends[rank].reset(); });
    }
    ASSERT_TRUE(all.until([&] { return !all[0].holds_topics() && !all[1].holds_topics(); }));
    EXPECT_TRUE(all[0].orders().empty());
  }
}

TEST(OrderTest, ATopicOfAnotherMembersIsNotInTheWayOfOneWithoutAnOrder) {
  Participants all(2);
  const Topic<Plain> theirs(all[0], "same", kFlight);
  const Topic<Plain> other(all[1], "other", kFlight);
  ASSERT_TRUE(all.until([&] { return theirs.joined() && other.joined(); }));
  all.run_for(5'000'000);
  ASSERT_EQ(all[1].topics().size(), 2U);
  const Topic<Count> alone(all[1], "same");  // of another type, too
  ASSERT_TRUE(all.until([&] { return alone.joined(); }));
  EXPECT_THROW(Topic<Plain>(all[1], "same", kFlight), Error) << "which would be two topics here";
}

TEST(OrderTest, TakesTheSamePoliciesInEachSpelling) {
  Participants all(1);
  const TopicQos spelt{.history = {.kind = History::Kind::keep_all, .depth = 7}, .order = "o"};
  const Topic<Plain> plains(all[0], "plains", spelt);
  EXPECT_TRUE(all.until([&] { return plains.joined(); })) << plains.why_refused();
}

TEST(OrderTest, TakesALoanBackWhenAnotherTopicOfItIsWritten) {
  Participants all(1);
  Ends ends(all[0], kFlight, keeps_all());
  ASSERT_TRUE(all.until([&] { return ends.ready(); }));
  all.world.on(0, [&] {
    Plain* const plain = ends.plain_writer.loan();
    ASSERT_NE(plain, nullptr);
    *plain = {.number = 1};
    ASSERT_EQ(ends.count_writer.write({.number = 2}), WriteResult::written);
    ends.plain_writer.publish();
    ASSERT_EQ(ends.plain_writer.write({.number = 3}), WriteResult::written);
  });
  ASSERT_TRUE(all.until([&] { return ends.take() > 0 && ends.seen.size() >= 2; }));
  EXPECT_EQ(ends.seen, (std::vector<Seen>{{false, 2, 1}, {true, 3, 2}}));
}

/// The announcement of the second reader lies behind what fills the first one.
TEST(OrderTest, AReaderThatIsAddedLaterComesThroughAnOrderThatIsFull) {
  Participants all(1);
  DataReaderQos small = keeps_all(Durability::Kind::transient_local);
  small << ResourceLimits{.max_samples = 4};
  const Topic<Plain> one(all[0], "one", kStoredFlight);
  const Topic<Plain> two(all[0], "two", kStoredFlight);
  DataWriter<Plain> to_one{Publisher(all[0]), one};
  DataWriter<Plain> to_two{Publisher(all[0]), two};
  std::vector<std::uint64_t> places;
  const auto note = [&](const Sample<Plain>& sample) {
    places.push_back(sample.info().order_position);
  };
  OrderedAccess access;
  access.add<Plain>({Subscriber(all[0]), one, small}, note);
  ASSERT_TRUE(all.until([&] { return to_one->ready() && to_two->ready(); }));
  all.world.on(0, [&] {
    ASSERT_EQ(to_two.write({}), WriteResult::written);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(to_one.write({}), WriteResult::written);
  });
  all.run_for(5'000'000);
  all.world.on(0, [&] { access.add<Plain>({Subscriber(all[0]), two, small}, note); });
  all.nodes[0].work = [&] { return access.take(); };
  ASSERT_TRUE(all.until([&] { return places.size() == 11; })) << places.size();
  for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(places[i], i + 1);
}

/// What tells of a writer that is gone has its place, too.
TEST(OrderTest, TellsOfTheEndOfAnInstanceWhereItHappened) {
  Participants all(1);
  const Topic<Count> counts(all[0], "counts", kFlight);
  const Topic<Plain> plains(all[0], "plains", kFlight);
  std::optional<DataWriter<Count>> goes(std::in_place, Publisher(all[0]), counts);
  DataWriter<Plain> stays{Publisher(all[0]), plains};
  std::vector<std::pair<std::uint64_t, bool>> places;
  OrderedAccess access;
  access.add<Count>({Subscriber(all[0]), counts, keeps_all()}, [&](const Sample<Count>& sample) {
    places.emplace_back(sample.info().order_position, sample.info().valid());
  });
  access.add<Plain>({Subscriber(all[0]), plains, keeps_all()}, [&](const Sample<Plain>& sample) {
    places.emplace_back(sample.info().order_position, sample.info().valid());
  });
  ASSERT_TRUE(all.until([&] { return (*goes)->ready() && stays->ready(); }));
  all.world.on(0, [&] {
    ASSERT_EQ(goes->write({.number = 1}), WriteResult::written);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(stays.write({}), WriteResult::written);
    goes.reset();
  });
  all.run_for(5'000'000);
  access.take();
  EXPECT_EQ(places, (std::vector<std::pair<std::uint64_t, bool>>{
                        {1, true}, {2, true}, {3, true}, {4, true}, {4, false}}));
}

/// A handler that opens a topic of the order while writers of it go with their member.
TEST(OrderTest, TakesATopicThatAHandlerOpens) {
  Participants all(2);
  const Topic<Count> here(all[0], "counts", kFlight);
  std::vector<Topic<Plain>> opened;
  DataReader<Count> reader{Subscriber(all[0]), here, keeps_all()};
  reader.on_sample([&](const Count&, const SampleInfo& info) {
    if (info.valid()) return;
    for (const char* name : {"a", "b", "c", "d", "e"}) opened.emplace_back(all[0], name, kFlight);
  });
  const Topic<Count> there(all[1], "counts", kFlight);
  DataWriter<Count> writer{Publisher(all[1]), there};
  ASSERT_TRUE(all.until([&] { return reader->ready() && writer->ready(); }));
  all.world.on(1, [&] { ASSERT_EQ(writer.write({.number = 1}), WriteResult::written); });
  all.run_for(1'000'000);
  all.crash(1);
  ASSERT_TRUE(all.until([&] { return opened.size() == 5 && opened.back().joined(); }));
  EXPECT_EQ(all.nodes[0].error, "");
}

/// A slow reader of one topic holds the order back, so the others' too.
TEST(OrderTest, AFullReaderHoldsAllTopicsOfItBack) {
  Participants all(1);
  DataReaderQos small = keeps_all();
  small << ResourceLimits{.max_samples = 2};
  const Topic<Plain> one(all[0], "one", kFlight);
  const Topic<Plain> two(all[0], "two", kFlight);
  DataWriter<Plain> to_one{Publisher(all[0]), one};
  DataWriter<Plain> to_two{Publisher(all[0]), two};
  DataReader<Plain> slow{Subscriber(all[0]), one, small};
  DataReader<Plain> fast{Subscriber(all[0]), two, keeps_all()};
  ASSERT_TRUE(all.until([&] { return to_one->ready() && to_two->ready() && slow->ready(); }));
  all.world.on(0, [&] {
    for (std::uint64_t i = 0; i < 3; ++i)
      ASSERT_EQ(to_one.write({.number = i}), WriteResult::written);
    ASSERT_EQ(to_two.write({.number = 7}), WriteResult::written);
  });
  all.run_for(5'000'000);
  EXPECT_FALSE(fast->available());
  all.world.on(0, [&] { ASSERT_EQ(slow.take().length(), 2U); });
  ASSERT_TRUE(all.until([&] { return fast->available(); }));
}

}  // namespace
}  // namespace dunlin::test
