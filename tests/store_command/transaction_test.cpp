#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "store/key_overlay.hpp"
#include "store/limits.hpp"
#include "store_command/conversation.hpp"
#include "support/errors.hpp"

/// MULTI, EXEC, DISCARD and WATCH, over a map.
namespace {

using dunlin::app::resp::Ending;
using dunlin::app::resp::find_command;
using dunlin::app::resp::KeyOverlay;
using dunlin::app::resp::kMaxReplyBytes;
using dunlin::app::resp::Protocol;
using dunlin::app::resp::TransactionKey;
using dunlin::test::contains;
using dunlin::test::Conversation;
using dunlin::test::kWrongTypeReply;

struct RedisTransaction : dunlin::test::OneClient {};

TEST_F(RedisTransaction, DoesItsCommandsAtExec) {
  EXPECT_EQ(ask("multi"), "+OK\r\n");
  EXPECT_EQ(ask("set a 1"), "+QUEUED\r\n");
  EXPECT_EQ(ask("incr a"), "+QUEUED\r\n");
  EXPECT_EQ(ask("mset b 2 c 3"), "+QUEUED\r\n");
  EXPECT_EQ(ask("mget a b none"), "+QUEUED\r\n");
  EXPECT_EQ(ask("expire b 100 nx"), "+QUEUED\r\n");
  EXPECT_EQ(ask("ttl b"), "+QUEUED\r\n");
  EXPECT_EQ(ask("del c none"), "+QUEUED\r\n");
  EXPECT_EQ(ask("hset h f v"), "+QUEUED\r\n");
  EXPECT_EQ(ask("zadd z 1 m"), "+QUEUED\r\n");
  EXPECT_EQ(ask("rename h i"), "+QUEUED\r\n");
  EXPECT_EQ(ask("ping"), "+QUEUED\r\n");
  EXPECT_TRUE(values.entries.empty());
  EXPECT_EQ(
      ask("exec"),
      "*11\r\n+OK\r\n:2\r\n+OK\r\n*3\r\n$1\r\n2\r\n$1\r\n2\r\n$-1\r\n:1\r\n:100\r\n:1\r\n:1\r\n"
      ":1\r\n+OK\r\n+PONG\r\n");
  EXPECT_EQ(values.entries["a"].value, "2");
  EXPECT_TRUE(values.entries["b"].end_ns.has_value());
  EXPECT_FALSE(values.entries.contains("c"));
  EXPECT_FALSE(values.entries.contains("h"));
  EXPECT_EQ(ask("hget i f"), "$1\r\nv\r\n");
}

TEST_F(RedisTransaction, KeepsTheTimeToLiveOfAKeyThatItOnlyChanges) {
  ask("set n 1 ex 100");
  ask("multi");
  ask("incr n");
  EXPECT_EQ(ask("exec"), "*1\r\n:2\r\n");
  EXPECT_EQ(ask("ttl n"), ":100\r\n");
  ask("multi");
  ask("set n 5");
  ask("exec");
  EXPECT_EQ(ask("ttl n"), ":-1\r\n");
}

TEST_F(RedisTransaction, GoesOnBehindACommandThatFailsAtExec) {
  ask("hset h f v");
  ask("multi");
  ask("set a 1");
  ask("incr h");
  ask("set a x ex none");
  ask("set b 2");
  EXPECT_EQ(ask("exec"), std::string("*4\r\n+OK\r\n") + kWrongTypeReply +
                             "-ERR value is not an integer or out of range\r\n+OK\r\n");
  EXPECT_EQ(values.entries["a"].value, "1");
  EXPECT_EQ(values.entries["b"].value, "2");
}

TEST_F(RedisTransaction, DoesNothingIfACommandWasRefused) {
  for (const char* const refused : {"lpush l 1", "get", "dbsize", "hello 3"}) {
    EXPECT_EQ(ask("multi"), "+OK\r\n");
    EXPECT_EQ(ask("set a 1"), "+QUEUED\r\n");
    EXPECT_TRUE(ask(refused).starts_with("-ERR ")) << refused;
    EXPECT_EQ(ask("set b 1"), "+QUEUED\r\n");
    EXPECT_EQ(ask("exec"), "-EXECABORT Transaction discarded because of previous errors.\r\n");
  }
  EXPECT_TRUE(values.entries.empty());
  EXPECT_EQ(ask("set a 1"), "+OK\r\n");
}

TEST_F(RedisTransaction, DoesNothingAfterAMultiThatWasRefused) {
  EXPECT_TRUE(contains(ask("multi 1"), "-ERR wrong number of arguments"));
  EXPECT_TRUE(contains(ask("set a 1"), "-EXECABORT "));
  EXPECT_TRUE(contains(ask("exec"), "-EXECABORT "));
  EXPECT_TRUE(values.entries.empty());
  ask("multi 1");
  EXPECT_EQ(ask("multi"), "+OK\r\n");
  EXPECT_EQ(ask("set a 1"), "+QUEUED\r\n");
  EXPECT_EQ(ask("exec"), "*1\r\n+OK\r\n");
}

TEST_F(RedisTransaction, RefusesWhatIsInTheWrongPlace) {
  EXPECT_EQ(ask("exec"), "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(ask("discard"), "-ERR DISCARD without MULTI\r\n");
  ask("multi");
  EXPECT_EQ(ask("multi"), "-ERR MULTI calls can not be nested\r\n");
  EXPECT_EQ(ask("watch a"), "-ERR WATCH inside MULTI is not allowed\r\n");
  EXPECT_EQ(ask("set a 1"), "+QUEUED\r\n");
  EXPECT_EQ(ask("discard"), "+OK\r\n");
  EXPECT_EQ(ask("get a"), "$-1\r\n");
}

TEST_F(RedisTransaction, DoesNothingIfAWatchedKeyHasChanged) {
  Conversation other(service, 2);
  for (const std::string change : {"SET a 2", "INCR a", "DEL a", "EXPIRE a 100", "APPEND a x"}) {
    ask("set a 1");
    EXPECT_EQ(ask("watch a b"), "+OK\r\n");
    other.ask(change + "\r\n");
    ask("multi");
    ask("set c 1");
    EXPECT_EQ(ask("exec"), "*-1\r\n") << change;
    EXPECT_FALSE(values.entries.contains("c"));
  }
  EXPECT_EQ(ask("watch b"), "+OK\r\n");
  other.ask("SET b 1\r\n");
  EXPECT_EQ(ask("unwatch"), "+OK\r\n");
  ask("multi");
  ask("set c 1");
  EXPECT_EQ(ask("exec"), "*1\r\n+OK\r\n");
  // EXEC forgets what was watched, and so does DISCARD.
  ask("watch b");
  ask("multi");
  ask("discard");
  other.ask("SET b 2\r\n");
  ask("multi");
  ask("get b");
  EXPECT_EQ(ask("exec"), "*1\r\n$1\r\n2\r\n");
}

TEST_F(RedisTransaction, HasLimitsThatItSays) {
  ask("multi");
  for (int i = 0; i < 17; ++i) ask("set k" + std::to_string(i) + " v");
  EXPECT_TRUE(contains(ask("exec"), "-ERR the transaction would change over 16 keys"));
  EXPECT_TRUE(values.entries.empty());
  ask("multi");
  for (int i = 0; i < 64; ++i) ask("get k" + std::to_string(i));
  EXPECT_TRUE(contains(ask("get one_more"), "-ERR a transaction reads at most 64 keys"));
  EXPECT_TRUE(contains(ask("exec"), "-EXECABORT "));
  values.entries["k"].value = std::string(1'000'000, 'v');
  ask("multi");
  for (int i = 0; i < 9; ++i) ask("get k");
  EXPECT_TRUE(contains(ask("exec"), "-ERR the replies of the transaction would be over 8388608"));
  ask("multi");
  for (int i = 0; i < 70; ++i) ask("strlen k");
  ask("set a 1");
  EXPECT_TRUE(contains(ask("exec"), "read and write over 67108864 bytes"));
  EXPECT_FALSE(values.entries.contains("a"));
}

TEST_F(RedisTransaction, StopsWithinACommandOnManyKeys) {
  const std::string value(1'000'000, 'v');
  std::array<TransactionKey, 1> keys{TransactionKey{.key = "k", .found = true, .value = value}};
  const std::vector<std::string_view> words(1'000, "k");  // the first one is the name
  std::string replies;
  KeyOverlay read(keys);
  EXPECT_TRUE(
      contains(read.run(*find_command("mget"), client.session, words, Protocol::resp2, replies),
               "replies of the transaction would be over 8388608 bytes"));
  EXPECT_LT(replies.size(), kMaxReplyBytes + 1'100'000);
  KeyOverlay look(keys);
  EXPECT_TRUE(look.run(*find_command("exists"), client.session, words, Protocol::resp2, replies) !=
              nullptr);
  EXPECT_LT(client.session.tally.number, 100);
}

TEST_F(RedisTransaction, EndsWithTheErrorOfTheStore) {
  ask("multi");
  ask("set a 1");
  values.next_ending = Ending::no_room;
  EXPECT_TRUE(contains(ask("exec"), "-OOM "));
  values.next_ending = Ending::conflict;
  ask("multi");
  ask("set a 1");
  EXPECT_TRUE(contains(ask("exec"), "-ERR other commands have changed the keys"));
  EXPECT_EQ(ask("exec"), "-ERR EXEC without MULTI\r\n");
}

/// RSP-C2: what is behind EXEC in a pipeline sees what it has changed.
TEST_F(RedisTransaction, EndsBeforeWhatIsBehindIt) {
  values.delay(7);
  EXPECT_EQ(client.ask("SET a 1\r\nMULTI\r\nSET a 2\r\nINCR b\r\nEXEC\r\nGET a\r\nGET b\r\n"),
            "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:1\r\n$1\r\n2\r\n$1\r\n1\r\n");
}

TEST_F(RedisTransaction, IsForgottenWithReset) {
  ask("hello 3");
  ask("watch a");
  ask("multi");
  EXPECT_EQ(ask("reset"), "+RESET\r\n");
  EXPECT_EQ(ask("get a"), "$-1\r\n");
  EXPECT_EQ(ask("exec"), "-ERR EXEC without MULTI\r\n");
}

TEST_F(RedisTransaction, ChangesSeveralKeysInOneStep) {
  EXPECT_EQ(ask("msetnx a 1 b 2"), ":1\r\n");
  EXPECT_EQ(ask("msetnx b 3 c 4"), ":0\r\n");
  EXPECT_EQ(ask("mget a b c"), "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n");
  ask("expire a 100");
  EXPECT_EQ(ask("rename a c"), "+OK\r\n");
  EXPECT_EQ(ask("ttl c"), ":100\r\n");
  EXPECT_EQ(ask("rename a c"), "-ERR no such key\r\n");
  EXPECT_EQ(ask("rename c c"), "+OK\r\n");
  EXPECT_EQ(ask("renamenx c b"), ":0\r\n");
  EXPECT_EQ(ask("renamenx c d"), ":1\r\n");
  EXPECT_EQ(ask("copy d b"), ":0\r\n");
  EXPECT_EQ(ask("copy d b replace"), ":1\r\n");
  EXPECT_EQ(ask("copy none b replace"), ":0\r\n");
  EXPECT_EQ(ask("mget b d"), "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
  EXPECT_EQ(ask("ttl b"), ":100\r\n");
}

}  // namespace
