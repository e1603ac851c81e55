#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/join.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/run.hpp>

#include "support/fresh_group.hpp"
#include "support/rounds.hpp"

/// Two members, as threads over shared memory.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

constexpr std::uint32_t kPatienceMs = 60'000;

struct Numbered {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 7> copies = {};
};
struct Named {
  std::string name = {};
  std::vector<std::uint64_t> numbers = {};
};

DataReaderQos everything() {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << ResourceLimits{.max_samples = 100};
  return qos;
}

/// One member's program: writes so many samples of both topics, and takes those of both members.
void take_part(const std::string& group_name, const std::string& name, std::uint64_t samples,
               std::vector<std::uint64_t>& taken, std::uint64_t& named, std::string& error) {
  try {
    auto fabric = join({.group = group_name, .names = {"a", "b"}, .name = name});
    Group group(*fabric);
    DomainParticipant participant(group);
    const Topic<Numbered> numbers(participant, "numbers");
    const Topic<Named> names(participant, "names");
    DataWriter<Numbered> number_writer{Publisher(participant), numbers};
    DataWriter<Named> name_writer{Publisher(participant), names};
    DataReader<Numbered> number_reader{Subscriber(participant), numbers, everything()};
    DataReader<Named> name_reader{Subscriber(participant), names, everything()};
    const std::uint64_t base = name == "a" ? 0 : samples;
    std::uint64_t numbers_written = 0;
    std::uint64_t names_written = 0;
    bool all_there = false;
    const bool done = run_until(
        participant,
        [&] {
          all_there =
              all_there || (number_writer->publication_matched_status().current_count == 2 &&
                            name_writer->publication_matched_status().current_count == 2);
          if (!all_there) return false;
          if (numbers_written < samples) {
            if (Numbered* const place = number_writer.loan()) {
              place->number = base + numbers_written++;
              place->copies.fill(place->number);
              number_writer.publish();
            }
          }
          if (names_written < samples &&
              name_writer.write({.name = name + std::to_string(names_written),
                                 .numbers = {names_written, base}}) == WriteResult::written)
            ++names_written;
          for (const auto& sample : number_reader.take()) {
            if (!sample.info().valid()) continue;
            for (const std::uint64_t copy : sample.data().copies)
              if (copy != sample.data().number) throw Error("a torn sample");
            taken.push_back(sample.data().number);
          }
          for (const auto& sample : name_reader.take()) {
            if (!sample.info().valid()) continue;
            const std::string from = sample.data().numbers.at(1) == 0 ? "a" : "b";
            if (sample.data().name != from + std::to_string(sample.data().numbers.at(0)))
              throw Error("a sample of others' members: " + sample.data().name);
            ++named;
          }
          return taken.size() == 2 * samples && named == 2 * samples;
        },
        kPatienceMs);
    if (!done) error = "the time is up";
    group.leave();
    run_until(
        participant, [&] { return group.ended(); }, kPatienceMs);
  } catch (const std::exception& e) {
    error = e.what();
  }
}

TEST(TopicShmTest, CarriesPlainAndOtherSamplesBetweenTwoMembers) {
  const std::uint64_t samples = rounds(2'000);
  const std::string group = "topics-" + std::to_string(getpid());
  std::vector<std::uint64_t> taken_a;
  std::vector<std::uint64_t> taken_b;
  std::uint64_t named_a = 0;
  std::uint64_t named_b = 0;
  std::string error_a;
  std::string error_b;
  {
    const std::jthread a([&] { take_part(group, "a", samples, taken_a, named_a, error_a); });
    const std::jthread b([&] { take_part(group, "b", samples, taken_b, named_b, error_b); });
  }
  EXPECT_EQ(error_a, "");
  EXPECT_EQ(error_b, "");
  ASSERT_EQ(taken_a.size(), 2 * samples);
  EXPECT_EQ(taken_a, taken_b) << "one order";
  EXPECT_EQ(named_a, 2 * samples);
  EXPECT_EQ(named_b, 2 * samples);
}

/// Member b writes, and ends as `end` says, without a poll in between; returns the samples that a
/// reader at a was given. With two members, the one of rank 0 goes on alone.
std::uint64_t given_of_a_writer_that_ends(Level level, const ParticipantOptions& options,
                                          const std::function<void(DataWriter<Numbered>&)>& end) {
  constexpr std::uint64_t kSamples = 1'000;
  const std::string group_name = fresh_group();
  std::uint64_t given = 0;
  std::jthread reading([&] {
    auto fabric = join({.group = group_name, .names = {"a", "b"}, .name = "a"});
    Group group(*fabric);
    DomainParticipant participant(group);
    const Topic<Numbered> topic(participant, "numbers", {.level = level});
    DataReader<Numbered> reader{Subscriber(participant), topic, everything()};
    run_until(
        participant,
        [&] {
          for (const auto& sample : reader.take())
            if (sample.info().valid() && sample.data().number == given) ++given;
          return given == kSamples;
        },
        kPatienceMs);
  });
  {
    auto fabric = join({.group = group_name, .names = {"a", "b"}, .name = "b"});
    Group group(*fabric);
    DomainParticipant participant(group, options);
    const Topic<Numbered> topic(participant, "numbers", {.level = level});
    DataWriter<Numbered> writer{Publisher(participant), topic};
    EXPECT_TRUE(run_until(
        participant, [&] { return writer->publication_matched_status().current_count == 1; },
        kPatienceMs));
    for (std::uint64_t i = 0; i < kSamples; ++i)
      EXPECT_EQ(writer.write({.number = i}), WriteResult::written);
    end(writer);
  }
  reading.join();
  return given;
}

TEST(TopicShmTest, AWriterThatEndsLosesNoSample) {
  const auto just_end = [](DataWriter<Numbered>&) {};
  const auto close = [](DataWriter<Numbered>& writer) { writer = {}; };
  EXPECT_EQ(given_of_a_writer_that_ends(Level::unordered, {}, just_end), 1'000U);
  EXPECT_EQ(given_of_a_writer_that_ends(Level::atomic, {}, just_end), 1'000U);
  EXPECT_EQ(given_of_a_writer_that_ends(Level::atomic, {}, close), 1'000U);
}

TEST(TopicShmTest, WhatWasAcknowledgedIsNotLost) {
  const auto wait = [](DataWriter<Numbered>& writer) {
    EXPECT_FALSE(writer->acknowledged());
    EXPECT_TRUE(writer.wait_for_acknowledgments(kPatienceMs));
    EXPECT_TRUE(writer->acknowledged());
  };
  const ParticipantOptions at_once{.hand_over_ms = 0};
  EXPECT_EQ(given_of_a_writer_that_ends(Level::unordered, at_once, wait), 1'000U);
  EXPECT_EQ(given_of_a_writer_that_ends(Level::atomic, at_once, wait), 1'000U);
}

/// Nobody polls at the reader's member.
TEST(TopicShmTest, AnAcknowledgmentIsWaitedForAsLongAsTheCallerSays) {
  const std::string group_name = fresh_group();
  std::atomic<bool> polls = true;
  std::atomic<bool> over = false;
  const std::jthread other([&] {
    auto fabric = join({.group = group_name, .names = {"a", "b"}, .name = "b"});
    Group group(*fabric);
    DomainParticipant participant(group, {.hand_over_ms = 0});
    const Topic<Numbered> topic(participant, "numbers");
    DataReader<Numbered> reader{Subscriber(participant), topic, everything()};
    run_until(
        participant, [&] { return reader->ready() && topic.endpoints().size() == 2; }, kPatienceMs);
    polls = false;
    over.wait(false);
  });
  auto fabric = join({.group = group_name, .names = {"a", "b"}, .name = "a"});
  Group group(*fabric);
  DomainParticipant participant(group, {.hand_over_ms = 0});
  const Topic<Numbered> topic(participant, "numbers");
  DataWriter<Numbered> writer{Publisher(participant), topic};
  EXPECT_TRUE(writer.wait_for_acknowledgments(0)) << "nothing was written";
  EXPECT_TRUE(run_until(
      participant,
      [&] { return !polls && writer->publication_matched_status().current_count == 1; },
      kPatienceMs));
  EXPECT_EQ(writer.write({}), WriteResult::written);
  EXPECT_FALSE(writer.wait_for_acknowledgments(20));
  over = true;
  over.notify_all();
}

}  // namespace
}  // namespace dunlin::test
