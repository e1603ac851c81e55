#include "relay/house.hpp"
#include "support/errors.hpp"

/// Relays with a secret: where the library has TLS.
namespace dunlin::test {
namespace {

using namespace dunlin::relay;

/// RLY-9 promises what this test checks.
TEST(RelaySecret, ServesOnlyClientsThatKnowItsSecret) {
  const std::string secret = "a secret of the whole group";
  House house({.secret = secret});
  const auto right = house.client({.secret = secret});
  const auto wrong = house.client({.secret = "another secret of no group"});
  const auto none = house.client();
  house.polled = {right.get(), wrong.get(), none.get()};
  RelayWriter<Heavy> writer(*right, "heavy", pubsub::TopicQos{});
  RelayReader<Heavy> reader(*right, "heavy");
  ASSERT_TRUE(house.until([&] {
    return writer.ready() && reader.ready() && !wrong->why_disconnected().empty() &&
           !none->why_disconnected().empty();
  })) << right->why_disconnected();
  std::uint64_t taken = 0;
  Heavy heavy;
  ASSERT_TRUE(house.until([&] {
    heavy.number = writer.written();
    if (writer.written() < 100) static_cast<void>(writer.write(heavy));
    for (const auto& sample : reader.take()) EXPECT_EQ(sample.data.number, taken++);
    return taken == 100 && writer.all_acknowledged();
  }));
  EXPECT_TRUE(contains(wrong->why_disconnected(), "does not accept our secret"))
      << wrong->why_disconnected();
  EXPECT_FALSE(wrong->connected());
  EXPECT_FALSE(none->connected());
}

TEST(RelaySecret, IsRefusedIfItIsTooShort) {
  const std::string why = what_is_thrown_by(
      [] { const RelayClient client({.relays = {"127.0.0.1:1"}, .secret = "short"}); });
  EXPECT_TRUE(contains(why, "5 bytes")) << why;
}

}  // namespace
}  // namespace dunlin::test
