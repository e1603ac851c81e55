#include <string>

#include <gtest/gtest.h>

#include "store/limits.hpp"
#include "store_command/conversation.hpp"
#include "support/errors.hpp"

/// Commands that clients ask for less often, over a map.
namespace {

using dunlin::test::contains;
using dunlin::test::Conversation;
using dunlin::test::kWrongTypeReply;
using dunlin::test::request;

struct RedisMoreCommands : dunlin::test::OneClient {};

TEST_F(RedisMoreCommands, ReadAndSetATimeToLiveInOneStep) {
  ask("set k v");
  EXPECT_EQ(ask("getex k ex 100"), "$1\r\nv\r\n");
  EXPECT_EQ(ask("ttl k"), ":100\r\n");
  EXPECT_EQ(ask("getex k"), "$1\r\nv\r\n");
  EXPECT_EQ(ask("ttl k"), ":100\r\n");
  EXPECT_EQ(ask("getex k persist"), "$1\r\nv\r\n");
  EXPECT_EQ(ask("ttl k"), ":-1\r\n");
  EXPECT_EQ(ask("getex none ex 1"), "$-1\r\n");
  EXPECT_EQ(ask("getex k ex 0"), "-ERR invalid expire time in 'getex' command\r\n");
  EXPECT_EQ(ask("getex k ex"), "-ERR syntax error\r\n");
}

TEST_F(RedisMoreCommands, KeepTimesToLiveBeyondALifetime) {
  ask("set k v");
  EXPECT_EQ(ask("expire k 100000000000"), ":1\r\n");  // 3,170 years
  EXPECT_EQ(ask("ttl k"), ":4398046511\r\n");         // 139 years
  EXPECT_EQ(ask("set k v px 9000000000000000"), "+OK\r\n");
  EXPECT_EQ(ask("ttl k"), ":4398046511\r\n");
  EXPECT_EQ(ask("expire k 9223372036854775807"),
            "-ERR invalid expire time in 'expire' command\r\n");
  EXPECT_EQ(ask("expireat k 9000000000000"), ":1\r\n");
  EXPECT_EQ(ask("pexpireat k -9223372036854770000"), ":1\r\n");
  EXPECT_EQ(ask("exists k"), ":0\r\n");
}

TEST_F(RedisMoreCommands, TellTheMomentThatTheyWereGiven) {
  values.now_ns += 999'999;  // nearly a millisecond is over
  const std::string moment = std::to_string(values.now_ns / 1'000'000 + 5'000);
  ask("set k v");
  EXPECT_EQ(ask("pexpireat k " + moment), ":1\r\n");
  EXPECT_EQ(ask("pexpiretime k"), ":" + moment + "\r\n");
}

TEST_F(RedisMoreCommands, CombineConditionsOfATimeToLive) {
  ask("set k v");
  EXPECT_EQ(ask("expire k 100 xx gt"), ":0\r\n");
  EXPECT_EQ(ask("expire k 100 lt"), ":1\r\n");
  EXPECT_EQ(ask("expire k 200 xx gt"), ":1\r\n");
  EXPECT_EQ(ask("expire k 300 xx lt"), ":0\r\n");
  EXPECT_EQ(ask("ttl k"), ":200\r\n");
  EXPECT_TRUE(contains(ask("expire k 1 nx gt"), "-ERR NX and XX, GT or LT options"));
  EXPECT_TRUE(contains(ask("expire k 1 gt lt"), "-ERR GT and LT options"));
}

TEST_F(RedisMoreCommands, ChangeAPieceOfAString) {
  EXPECT_EQ(ask("setrange k 3 abc"), ":6\r\n");
  EXPECT_EQ(ask("get k"), std::string("$6\r\n\0\0\0abc\r\n", 12));
  EXPECT_EQ(ask("setrange k 1 xy"), ":6\r\n");
  EXPECT_EQ(ask("get k"), std::string("$6\r\n\0xyabc\r\n", 12));
  EXPECT_EQ(ask("setrange none 5 \"\""), ":0\r\n");
  EXPECT_EQ(ask("exists none"), ":0\r\n");
  EXPECT_EQ(ask("setrange k -1 x"), "-ERR offset is out of range\r\n");
  EXPECT_TRUE(contains(ask("setrange k 1048576 x"), "-ERR string exceeds maximum"));
}

TEST_F(RedisMoreCommands, AddFractions) {
  EXPECT_EQ(ask("incrbyfloat n 10.5"), "$4\r\n10.5\r\n");
  EXPECT_EQ(ask("incrbyfloat n 0.1"), "$4\r\n10.6\r\n");
  EXPECT_EQ(ask("incrbyfloat n -10.6"), "$1\r\n0\r\n");
  EXPECT_EQ(ask("incrbyfloat n x"), "-ERR value is not a valid float\r\n");
  EXPECT_EQ(ask("incrbyfloat n inf"), "-ERR increment would produce NaN or Infinity\r\n");
  EXPECT_EQ(ask("hincrbyfloat h f inf"), "-ERR value is NaN or Infinity\r\n");
  EXPECT_EQ(ask("hincrbyfloat h f 1.25"), "$4\r\n1.25\r\n");
  EXPECT_EQ(ask("hincrby h g 5"), ":5\r\n");
  EXPECT_EQ(ask("hincrby h g -6"), ":-1\r\n");
  EXPECT_EQ(ask("hincrby h f 1"), "-ERR hash value is not an integer\r\n");
  EXPECT_EQ(ask("hincrby h g 9223372036854775807"), ":9223372036854775806\r\n");
  EXPECT_EQ(ask("hincrby h g 2"), "-ERR increment or decrement would overflow\r\n");
}

TEST_F(RedisMoreCommands, LookThroughAHash) {
  EXPECT_EQ(ask("hsetnx h a 1"), ":1\r\n");
  EXPECT_EQ(ask("hsetnx h a 2"), ":0\r\n");
  ask("hset h b 22");
  EXPECT_EQ(ask("hkeys h"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(ask("hvals h"), "*2\r\n$1\r\n1\r\n$2\r\n22\r\n");
  EXPECT_EQ(ask("hstrlen h b"), ":2\r\n");
  EXPECT_EQ(ask("hscan h 0"),
            "*2\r\n$1\r\n0\r\n*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$2\r\n22\r\n");
  EXPECT_EQ(ask("hscan h 0 match b novalues count 5"), "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n");
  EXPECT_EQ(ask("hscan h x"), "-ERR invalid cursor\r\n");
  ask("set k v");
  for (const char* const line :
       {"hkeys k", "hvals k", "hscan k 0", "hsetnx k a 1", "hincrby k a 1"})
    EXPECT_EQ(ask(line), kWrongTypeReply) << line;
}

TEST_F(RedisMoreCommands, LookThroughASortedSet) {
  ask("zadd z 1 a 2 b 3 c 4 d");
  EXPECT_EQ(ask("zrank z c"), ":2\r\n");
  EXPECT_EQ(ask("zrevrank z c"), ":1\r\n");
  EXPECT_EQ(ask("zrank z none"), "$-1\r\n");
  EXPECT_EQ(ask("zrank z c withscore"), "*2\r\n:2\r\n$1\r\n3\r\n");
  EXPECT_EQ(ask("zrange z 0 1 rev"), "*2\r\n$1\r\nd\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zrevrange z 0 0 withscores"), "*2\r\n$1\r\nd\r\n$1\r\n4\r\n");
  EXPECT_EQ(ask("zrevrange z -1 -1"), "*1\r\n$1\r\na\r\n");
  EXPECT_EQ(ask("zrange z 2 +inf byscore limit 1 1"), "*1\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zrange z +inf (2 byscore rev"), "*2\r\n$1\r\nd\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zrange z 4 1 byscore rev limit 1 2"), "*2\r\n$1\r\nc\r\n$1\r\nb\r\n");
  EXPECT_EQ(ask("zrevrangebyscore z 4 1 limit 0 1"), "*1\r\n$1\r\nd\r\n");
  EXPECT_TRUE(contains(ask("zrange z 0 1 limit 0 1"), "-ERR syntax error, LIMIT is only"));
  EXPECT_EQ(ask("zmscore z a none"), "*2\r\n$1\r\n1\r\n$-1\r\n");
  EXPECT_EQ(ask("zscan z 0 match d"), "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nd\r\n$1\r\n4\r\n");
  EXPECT_EQ(ask("zremrangebyscore z 2 (3"), ":1\r\n");
  EXPECT_EQ(ask("zremrangebyrank z -1 -1"), ":1\r\n");
  EXPECT_EQ(ask("zrange z 0 -1"), "*2\r\n$1\r\na\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zremrangebyrank z 0 -1"), ":2\r\n");
  EXPECT_EQ(ask("exists z"), ":0\r\n");
}

TEST_F(RedisMoreCommands, GoOverAllKeys) {
  EXPECT_EQ(ask("randomkey"), "$-1\r\n");
  ask("mset a1 x a2 x b1 x b2 x b3 x");
  ask("hset h f v");
  EXPECT_EQ(ask("keys a*"), "*2\r\n$2\r\na1\r\n$2\r\na2\r\n");
  EXPECT_EQ(ask("scan 0 count 100 type hash"), "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nh\r\n");
  const std::string key = ask("randomkey");
  EXPECT_TRUE(values.entries.contains(key.substr(4, key.size() - 6))) << key;
  for (const char* const erased : {"a2", "b1", "b2", "b3"})
    values.entries.erase(erased);  // one step
  EXPECT_EQ(ask("flushdb wrong"), "-ERR syntax error\r\n");
  EXPECT_EQ(ask("flushall async"), "+OK\r\n");
  EXPECT_TRUE(values.entries.empty());
  values.entries["k"].value = "v";
  EXPECT_EQ(client.ask("FLUSHDB\r\nSET k w\r\nGET k\r\n"), "+OK\r\n+OK\r\n$1\r\nw\r\n");
}

TEST_F(RedisMoreCommands, TellOfOneKey) {
  ask("set n 12");
  ask("hset h f v");
  EXPECT_EQ(ask("object encoding n"), "$3\r\nint\r\n");
  EXPECT_EQ(ask("object encoding h"), "$8\r\nlistpack\r\n");
  EXPECT_EQ(ask("object encoding none"), "$-1\r\n");
  EXPECT_TRUE(contains(ask("object freq n"), "-ERR unknown subcommand"));
  EXPECT_EQ(ask("memory usage n"), ":43\r\n");
  EXPECT_EQ(ask("memory usage none"), "$-1\r\n");
}

TEST_F(RedisMoreCommands, TellOfTheServer) {
  values.now_ns = 1'700'000'000'123'000'000;
  EXPECT_EQ(ask("time"), "*2\r\n$10\r\n1700000000\r\n$6\r\n123000\r\n");
  const std::string memory = ask("info memory");
  EXPECT_TRUE(contains(memory, "# Memory\r\nused_memory:"));
  EXPECT_FALSE(contains(memory, "# Server"));
  EXPECT_TRUE(contains(ask("info"), "cluster_enabled:0\r\n"));
  Conversation other(service, 2);
  other.ask("CLIENT SETNAME other\r\n");
  EXPECT_TRUE(contains(ask("client list"), "id=2 addr="));
  EXPECT_TRUE(contains(ask("client list"), " name=other "));
  EXPECT_TRUE(contains(ask("client help"), "SETNAME"));
  EXPECT_TRUE(contains(ask("client setname"), "wrong number of arguments for 'client|setname'"));
}

/// A value over the limit is refused by a sentence, and the connection goes on.
TEST_F(RedisMoreCommands, RefuseAValueOverTheLimit) {
  const std::string value((1 << 20) + 1, 'v');
  EXPECT_EQ(client.ask(request({"SET", "k", value}) + request({"PING"}), 10'000),
            "-ERR a value or key has over 1048576 bytes, which is the limit\r\n+PONG\r\n");
  EXPECT_EQ(client.ask(request({"MULTI"}) + request({"SET", "k", value}) + request({"EXEC"})),
            "+OK\r\n-ERR a value or key has over 1048576 bytes, which is the limit\r\n"
            "-EXECABORT Transaction discarded because of previous errors.\r\n");
}

}  // namespace
