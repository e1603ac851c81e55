#include "pubsub/client_numbers.hpp"

#include <cstring>

#include <gtest/gtest.h>

namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

ClientStamp stamp(std::uint64_t client, std::uint64_t number) {
  ClientStamp made{.number = number};
  std::memcpy(made.client.data(), &client, sizeof client);
  return made;
}

TEST(ClientNumbers, TakeEachNumberOnce) {
  ClientNumbers numbers;
  EXPECT_TRUE(numbers.note(stamp(1, 1)));
  EXPECT_TRUE(numbers.note(stamp(2, 1)));
  EXPECT_TRUE(numbers.note(stamp(1, 2)));
  EXPECT_FALSE(numbers.note(stamp(1, 2)));
  EXPECT_FALSE(numbers.note(stamp(1, 1)));
  EXPECT_EQ(numbers.delivered_of(stamp(1, 0).client), 2U);
  EXPECT_EQ(numbers.delivered_of(stamp(3, 0).client), 0U);
}

TEST(ClientNumbers, ForgetTheClientThatHasBeenSilentForLongest) {
  ClientNumbers numbers;
  for (std::uint64_t client = 0; client < kMaxTopicClients; ++client)
    ASSERT_TRUE(numbers.note(stamp(client, 1)));
  EXPECT_TRUE(numbers.note(stamp(0, 2)));
  EXPECT_TRUE(numbers.note(stamp(kMaxTopicClients, 1)));
  EXPECT_EQ(numbers.size(), kMaxTopicClients);
  EXPECT_EQ(numbers.delivered_of(stamp(0, 0).client), 2U);
  EXPECT_EQ(numbers.delivered_of(stamp(1, 0).client), 0U);
}

TEST(ClientNumbers, TravelInTheOrderInWhichTheyWouldBeForgotten) {
  ClientNumbers numbers;
  for (const auto& [client, number] : {std::pair{1, 5}, {2, 6}, {1, 7}})
    ASSERT_TRUE(numbers.note(
        stamp(static_cast<std::uint64_t>(client), static_cast<std::uint64_t>(number))));
  std::vector<std::byte> bytes;
  Writer writer(bytes);
  numbers.save(writer);
  ClientNumbers copy;
  Reader reader(bytes);
  ASSERT_TRUE(copy.load(reader));
  EXPECT_EQ(copy.delivered_of(stamp(1, 0).client), 7U);
  EXPECT_EQ(copy.delivered_of(stamp(2, 0).client), 6U);
  std::vector<std::byte> again;
  Writer second(again);
  copy.save(second);
  EXPECT_EQ(again, bytes);
  std::vector<std::byte> too_many;
  Writer(too_many).u32(kMaxTopicClients + 1);
  Reader damaged(too_many);
  EXPECT_FALSE(copy.load(damaged));
}

}  // namespace
}  // namespace dunlin::test
