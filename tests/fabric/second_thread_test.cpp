#include <cstddef>
#include <memory>
#include <span>
#include <thread>

#include <gtest/gtest.h>

#include <dunlin/dunlin.hpp>
#include <dunlin/join.hpp>

#include "fabric/thread_guard.hpp"
#include "support/fresh_group.hpp"

/// FAB-T1: a call of a second thread, while one of the first thread is under way, ends the process.
namespace dunlin::test {
namespace {

constexpr const char* kSentence = "FAB-T1: one thread at a time";

/// The calling thread is inside a call of its own.
template <class Call>
void in_second_thread(const Call& call) {
  std::thread(call).join();
}

std::unique_ptr<Fabric> alone() {
  return join({.group = fresh_group(), .names = {"a"}, .name = "a"});
}

TEST(ThreadGuardDeathTest, NoticesACallWhileOneOfAnotherThreadIsUnderWay) {
  ThreadGuard guard;
  EXPECT_DEATH(
      {
        const ThreadGuard::Call call(&guard);
        in_second_thread([&] { const ThreadGuard::Call second(&guard); });
      },
      kSentence);
}

TEST(ThreadGuard, LetsThreadsTakeTurnsAndCallsBeNested) {
  ThreadGuard guard;
  for (int turn = 0; turn < 3; ++turn) {
    in_second_thread([&] {
      const ThreadGuard::Call outer(&guard);
      const ThreadGuard::Call inner(&guard);
    });
    const ThreadGuard::Call call(&guard);
  }
}

TEST(ThreadGuard, LetsAnObjectBeUsedByAnotherThreadThanTheOneThatMadeIt) {
  const auto fabric = alone();
  Group group(*fabric, {.subgroups = {{.name = "casts"}}});
  Multicast casts(group, "casts");
  std::size_t delivered = 0;
  casts.on_delivery([&](std::span<const multicast::Delivery> batch) { delivered += batch.size(); });
  for (std::size_t turn = 1; turn <= 2; ++turn) {
    in_second_thread([&] {
      while (casts.send(std::span<const std::byte>()) != multicast::SendResult::sent) group.poll();
    });
    while (delivered < turn) group.poll();
  }
}

/// In every tree.
TEST(SecondThreadDeathTest, IsNoticedByAFabric) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        const ThreadGuard::Call call(ThreadGuard::of(fabric.get()));
        in_second_thread([&] { fabric->ignore(7); });
      },
      kSentence);
}

TEST(SecondThreadDeathTest, IsNoticedByAGroupThatIsPolled) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        Group group(*fabric);
        group.on_view([&](const View&) { in_second_thread([&] { group.poll(); }); });
        group.poll();
      },
      kSentence);
}

#ifndef NDEBUG

struct Row {
  Cell<int> step;
};

TEST(SecondThreadDeathTest, IsNoticedByATable) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        Table<Row> table(*fabric);
        table.when(all(&Row::step) >= 0).once([](auto& t) {
          in_second_thread([&] { t.push(&Row::step); });
        });
        table.poll();
      },
      kSentence);
}

TEST(SecondThreadDeathTest, IsNoticedByAGroup) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        Group group(*fabric);
        group.on_view([&](const View&) { in_second_thread([&] { group.leave(); }); });
        group.poll();
      },
      kSentence);
}

TEST(SecondThreadDeathTest, IsNoticedByAMulticast) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        Group group(*fabric, {.subgroups = {{.name = "casts"}}});
        Multicast casts(group, "casts");
        group.on_view([&](const View&) {
          in_second_thread([&] { static_cast<void>(casts.send(std::span<const std::byte>())); });
        });
        group.poll();
      },
      kSentence);
}

struct Number {
  int value = 0;
};

/// What a second thread does to a topic while the first one polls.
template <class Call>
void while_a_topic_is_polled(const Call& call) {
  const auto fabric = alone();
  Group group(*fabric);
  pubsub::DomainParticipant participant(group);
  const pubsub::Topic<Number> topic(participant, "numbers");
  pubsub::DataWriter<Number> writer{pubsub::Publisher(participant), topic};
  pubsub::DataReader<Number> reader{pubsub::Subscriber(participant), topic};
  group.on_view([&](const View&) { in_second_thread([&] { call(writer, reader); }); });
  participant.poll();
}

TEST(SecondThreadDeathTest, IsNoticedByAWriter) {
  EXPECT_DEATH(while_a_topic_is_polled(
                   [](auto& writer, auto&) { static_cast<void>(writer.write({.value = 1})); }),
               kSentence);
}

TEST(SecondThreadDeathTest, IsNoticedByAReader) {
  EXPECT_DEATH(while_a_topic_is_polled(
                   [](auto&, auto& reader) { static_cast<void>(reader.take().length()); }),
               kSentence);
}

TEST(SecondThreadDeathTest, IsNoticedByASegmentSpace) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        SegmentSpace space(*fabric);
        auto first = space.allocate({.bytes = 8});
        while (!first.finished()) space.poll();
        first.then([&] { in_second_thread([&] { auto second = space.allocate({.bytes = 8}); }); });
      },
      kSentence);
}

using Map = HashMap<int, int>;

TEST(SecondThreadDeathTest, IsNoticedByAContainer) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        Containers containers(*fabric);
        Map map(containers, {.name = "map", .slots = 16});
        auto first = map.insert(1, 1);
        while (!first.finished()) containers.poll();
        first.then([&] { in_second_thread([&] { auto second = map.insert(2, 2); }); });
      },
      kSentence);
}

TEST(SecondThreadDeathTest, IsNoticedByAStore) {
  EXPECT_DEATH(
      {
        const auto fabric = alone();
        Store store(*fabric);
        auto first = store.put("key", "value");
        while (!first.finished()) store.poll();
        first.then([&] { in_second_thread([&] { auto second = store.get("key"); }); });
      },
      kSentence);
}

#endif

}  // namespace
}  // namespace dunlin::test
