#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/command_table.hpp"
#include "store/limits.hpp"
#include "store_command/conversation.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"

/// What each command replies, over a map.
namespace {

using dunlin::app::resp::Ending;
using dunlin::app::resp::matches;
using dunlin::app::resp::parse_integer;
using dunlin::test::contains;
using dunlin::test::kWrongTypeReply;

struct RedisCommands : dunlin::test::OneClient {};

TEST_F(RedisCommands, GetWhatWasSet) {
  EXPECT_EQ(ask("get k"), "$-1\r\n");
  EXPECT_EQ(ask("set k value"), "+OK\r\n");
  EXPECT_EQ(ask("GET k"), "$5\r\nvalue\r\n");
  EXPECT_EQ(ask("set k \"\""), "+OK\r\n");
  EXPECT_EQ(ask("get k"), "$0\r\n\r\n");
  EXPECT_EQ(ask("strlen k"), ":0\r\n");
}

TEST_F(RedisCommands, SetOnlyIfTheConditionHolds) {
  EXPECT_EQ(ask("set k a xx"), "$-1\r\n");
  EXPECT_EQ(ask("set k a nx"), "+OK\r\n");
  EXPECT_EQ(ask("set k b nx"), "$-1\r\n");
  EXPECT_EQ(ask("get k"), "$1\r\na\r\n");
  EXPECT_EQ(ask("set k b xx"), "+OK\r\n");
  EXPECT_EQ(ask("setnx k c"), ":0\r\n");
  EXPECT_EQ(ask("setnx l c"), ":1\r\n");
  EXPECT_EQ(ask("set k c get"), "$1\r\nb\r\n");
  EXPECT_EQ(ask("set k d nx get"), "$1\r\nc\r\n");
  EXPECT_EQ(ask("set m d nx get"), "$-1\r\n");
  EXPECT_EQ(ask("set n d xx get"), "$-1\r\n");
  EXPECT_EQ(ask("mget k m n"), "*3\r\n$1\r\nc\r\n$1\r\nd\r\n$-1\r\n");
  EXPECT_EQ(ask("getset k e"), "$1\r\nc\r\n");
  EXPECT_EQ(ask("getdel k"), "$1\r\ne\r\n");
  EXPECT_EQ(ask("getdel k"), "$-1\r\n");
  EXPECT_EQ(ask("set k a nx xx"), "-ERR syntax error\r\n");
  EXPECT_EQ(ask("set k a ex"), "-ERR syntax error\r\n");
  EXPECT_EQ(ask("set k a keepttl ex 5"), "-ERR syntax error\r\n");
}

TEST_F(RedisCommands, SetATimeToLive) {
  EXPECT_EQ(ask("set k a ex 10"), "+OK\r\n");
  EXPECT_EQ(ask("ttl k"), ":10\r\n");
  EXPECT_EQ(ask("set k b keepttl"), "+OK\r\n");
  EXPECT_EQ(ask("pttl k"), ":10000\r\n");
  values.now_ns += 9'999'000'000;
  EXPECT_EQ(ask("get k"), "$1\r\nb\r\n");
  EXPECT_EQ(ask("pttl k"), ":1\r\n");
  values.now_ns += 1'000'000;
  EXPECT_EQ(ask("get k"), "$-1\r\n");
  EXPECT_EQ(ask("ttl k"), ":-2\r\n");
  EXPECT_EQ(ask("set k a px 1500"), "+OK\r\n");
  EXPECT_EQ(ask("ttl k"), ":2\r\n");
  EXPECT_EQ(ask("set k a"), "+OK\r\n");
  EXPECT_EQ(ask("ttl k"), ":-1\r\n");
  EXPECT_EQ(ask("setex k 7 a"), "+OK\r\n");
  EXPECT_EQ(ask("psetex l 7 a"), "+OK\r\n");
  EXPECT_EQ(ask("pttl l"), ":7\r\n");
  EXPECT_EQ(ask("set k a exat 20"), "+OK\r\n");
  EXPECT_EQ(ask("ttl k"), ":10\r\n");
  EXPECT_EQ(ask("set k a ex 0"), "-ERR invalid expire time in 'set' command\r\n");
  EXPECT_EQ(ask("set k a ex 9223372036854775807"), "-ERR invalid expire time in 'set' command\r\n");
  EXPECT_EQ(ask("setex k -1 a"), "-ERR invalid expire time in 'setex' command\r\n");
  EXPECT_EQ(ask("set k a ex ten"), "-ERR value is not an integer or out of range\r\n");
}

TEST_F(RedisCommands, ExpireAndPersist) {
  EXPECT_EQ(ask("expire k 10"), ":0\r\n");
  EXPECT_EQ(ask("persist k"), ":0\r\n");
  ask("set k a");
  EXPECT_EQ(ask("persist k"), ":0\r\n");
  EXPECT_EQ(ask("expire k 10 xx"), ":0\r\n");
  EXPECT_EQ(ask("expire k 10 gt"), ":0\r\n");
  EXPECT_EQ(ask("expire k 10 nx"), ":1\r\n");
  EXPECT_EQ(ask("expire k 11 nx"), ":0\r\n");
  EXPECT_EQ(ask("expire k 9 gt"), ":0\r\n");
  EXPECT_EQ(ask("expire k 9 lt"), ":1\r\n");
  EXPECT_EQ(ask("ttl k"), ":9\r\n");
  EXPECT_EQ(ask("pexpire k 2500"), ":1\r\n");
  EXPECT_EQ(ask("pttl k"), ":2500\r\n");
  EXPECT_EQ(ask("persist k"), ":1\r\n");
  EXPECT_EQ(ask("ttl k"), ":-1\r\n");
  EXPECT_EQ(ask("expire k -1"), ":1\r\n");
  EXPECT_EQ(ask("exists k"), ":0\r\n");
  EXPECT_EQ(ask("expire k 1 never"), "-ERR Unsupported option\r\n");
}

TEST_F(RedisCommands, CountUpAndDown) {
  EXPECT_EQ(ask("incr n"), ":1\r\n");
  EXPECT_EQ(ask("incrby n 41"), ":42\r\n");
  EXPECT_EQ(ask("decr n"), ":41\r\n");
  EXPECT_EQ(ask("decrby n 50"), ":-9\r\n");
  EXPECT_EQ(ask("get n"), "$2\r\n-9\r\n");
  EXPECT_EQ(ask("set n 9223372036854775807"), "+OK\r\n");
  EXPECT_EQ(ask("incr n"), "-ERR increment or decrement would overflow\r\n");
  EXPECT_EQ(ask("decrby n -9223372036854775808"), "-ERR decrement would overflow\r\n");
  EXPECT_EQ(ask("set n 007"), "+OK\r\n");
  EXPECT_EQ(ask("incr n"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(ask("incrby n x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(ask("get n"), "$3\r\n007\r\n");
}

TEST_F(RedisCommands, KeepTheTimeToLiveWhenTheyCount) {
  ask("set n 1 ex 10");
  EXPECT_EQ(ask("incr n"), ":2\r\n");
  EXPECT_EQ(ask("append n 0"), ":2\r\n");
  EXPECT_EQ(ask("ttl n"), ":10\r\n");
}

TEST_F(RedisCommands, AppendAndCutOut) {
  EXPECT_EQ(ask("append k Hello"), ":5\r\n");
  EXPECT_EQ(ask("append k \" World\""), ":11\r\n");
  EXPECT_EQ(ask("getrange k 0 4"), "$5\r\nHello\r\n");
  EXPECT_EQ(ask("getrange k -5 -1"), "$5\r\nWorld\r\n");
  EXPECT_EQ(ask("getrange k 5 2"), "$0\r\n\r\n");
  EXPECT_EQ(ask("getrange k 0 1000"), "$11\r\nHello World\r\n");
  EXPECT_EQ(ask("getrange none 0 -1"), "$0\r\n\r\n");
  const std::string large(1'048'570, 'x');
  EXPECT_EQ(client.ask({"SET", "k", large}), "+OK\r\n");
  EXPECT_EQ(ask("append k 1234567"),
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
  EXPECT_EQ(ask("append k 123456"), ":1048576\r\n");
}

TEST_F(RedisCommands, TakeSeveralKeys) {
  EXPECT_EQ(ask("mset a 1 b 2 c 3"), "+OK\r\n");
  EXPECT_EQ(ask("mget a x c"), "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n3\r\n");
  EXPECT_EQ(ask("exists a b x a"), ":3\r\n");
  EXPECT_EQ(ask("del a x"), ":1\r\n");
  EXPECT_EQ(ask("unlink b c"), ":2\r\n");
  EXPECT_EQ(ask("dbsize"), ":0\r\n");
  EXPECT_EQ(ask("mset a 1 b"), "-ERR wrong number of arguments for 'mset' command\r\n");
}

TEST_F(RedisCommands, ScanAllKeys) {
  ask("mset a1 1 a2 2 b1 3 b2 4 c1 5 c2 6 c3 7");
  EXPECT_EQ(ask("scan 0 count 4"),
            "*2\r\n$1\r\n6\r\n*6\r\n$2\r\na1\r\n$2\r\na2\r\n$2\r\nb1\r\n$2\r\nb2\r\n$2\r\nc1\r\n$"
            "2\r\nc2\r\n");
  EXPECT_EQ(ask("scan 6 count 4"), "*2\r\n$1\r\n0\r\n*1\r\n$2\r\nc3\r\n");
  EXPECT_EQ(ask("scan 0 match ?1 count 100"),
            "*2\r\n$1\r\n0\r\n*3\r\n$2\r\na1\r\n$2\r\nb1\r\n$2\r\nc1\r\n");
  EXPECT_EQ(ask("scan x"), "-ERR invalid cursor\r\n");
  EXPECT_EQ(ask("scan 0 count 0"), "-ERR syntax error\r\n");
  EXPECT_EQ(ask("scan 0 match"), "-ERR syntax error\r\n");
}

TEST_F(RedisCommands, ScanPastAMemberThatHasFailed) {
  ask("mset a1 1 a2 2 a3 3 b1 4 b2 5 c1 6 c2 7");
  values.lost = {3, 5};
  EXPECT_EQ(ask("scan 0 count 100"),
            "*2\r\n$1\r\n0\r\n*5\r\n$2\r\na1\r\n$2\r\na2\r\n$2\r\na3\r\n$2\r\nc1\r\n$2\r\nc2\r\n");
  EXPECT_EQ(ask("scan 3 count 1"), "*2\r\n$1\r\n0\r\n*2\r\n$2\r\nc1\r\n$2\r\nc2\r\n");
  values.lost = {3, 7};
  EXPECT_EQ(ask("scan 3"), "*2\r\n$1\r\n0\r\n*0\r\n");
}

/// A class of a million letters would be read for each letter of each key.
TEST_F(RedisCommands, RefusePatternsOverTheirLimit) {
  const char* const refusal = "-ERR the pattern is too long: 512 bytes are possible\r\n";
  const std::string longest(dunlin::app::resp::kMaxPatternBytes, '*');
  ask("set k v");
  EXPECT_EQ(client.ask({"SCAN", "0", "MATCH", longest}), "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n");
  EXPECT_EQ(client.ask({"SCAN", "0", "MATCH", longest + "*"}), refusal);
  EXPECT_TRUE(contains(client.ask({"CONFIG", "GET", longest}), "maxmemory"));
  EXPECT_EQ(client.ask({"CONFIG", "GET", longest, "*"}), refusal);
}

TEST_F(RedisCommands, KeepFieldsInHashes) {
  EXPECT_EQ(ask("hset h name Ann age 7"), ":2\r\n");
  EXPECT_EQ(ask("hset h age 8 town Ulm"), ":1\r\n");
  EXPECT_EQ(ask("hget h age"), "$1\r\n8\r\n");
  EXPECT_EQ(ask("hget h none"), "$-1\r\n");
  EXPECT_EQ(ask("hmset h age 9 age 10"), "+OK\r\n");
  EXPECT_EQ(ask("hmget h name none age"), "*3\r\n$3\r\nAnn\r\n$-1\r\n$2\r\n10\r\n");
  EXPECT_EQ(
      ask("hgetall h"),
      "*6\r\n$4\r\nname\r\n$3\r\nAnn\r\n$3\r\nage\r\n$2\r\n10\r\n$4\r\ntown\r\n$3\r\nUlm\r\n");
  EXPECT_EQ(ask("hlen h"), ":3\r\n");
  EXPECT_EQ(ask("hexists h town"), ":1\r\n");
  EXPECT_EQ(ask("hdel h town none"), ":1\r\n");
  EXPECT_EQ(ask("type h"), "+hash\r\n");
  EXPECT_EQ(ask("hdel h name age"), ":2\r\n");
  EXPECT_EQ(ask("exists h"), ":0\r\n");
  EXPECT_EQ(ask("hgetall h"), "*0\r\n");
  EXPECT_EQ(ask("hset h a 1 b"), "-ERR wrong number of arguments for 'hset' command\r\n");
}

/// A moment's work, as each field is found by some comparisons; with a look at all fields for each
/// argument, a minute's.
TEST_F(RedisCommands, TakeAsManyFieldsAsARequestHasArguments) {
  constexpr std::size_t kFields =
      (dunlin::app::resp::kMaxArguments - 2) / (dunlin::test::kSanitized ? 8 : 2);
  const auto ask_all = [&](const std::string& command, std::size_t step) {
    std::string text = "*" + std::to_string(2 + kFields * step) + "\r\n$" +
                       std::to_string(command.size()) + "\r\n" + command + "\r\n$1\r\nh\r\n";
    for (std::size_t i = 0; i < kFields; ++i) {
      const std::string name = std::to_string(100'000 + i);
      text += "$6\r\n" + name + "\r\n";
      if (step == 2) text += "$6\r\n" + std::string(name.rbegin(), name.rend()) + "\r\n";
    }
    return client.ask(text);
  };
  const std::string all = std::to_string(kFields);
  for (const std::size_t there : {std::size_t{0}, kFields}) {
    EXPECT_EQ(ask_all("HSET", 2), ":" + std::to_string(kFields - there) + "\r\n");
    EXPECT_EQ(ask("hlen h"), ":" + all + "\r\n");
  }
  std::string values_of_all = "*" + all + "\r\n";
  for (std::size_t i = 0; i < kFields; ++i) {
    const std::string name = std::to_string(100'000 + i);
    values_of_all += "$6\r\n" + std::string(name.rbegin(), name.rend()) + "\r\n";
  }
  EXPECT_EQ(ask_all("HMGET", 1), values_of_all);
  EXPECT_EQ(ask_all("HDEL", 1), ":" + all + "\r\n");
  EXPECT_EQ(ask("exists h"), ":0\r\n");
}

TEST_F(RedisCommands, RefuseAReplyOverItsLimit) {
  const std::string value(100'000, 'v');
  EXPECT_EQ(client.ask({"HSET", "h", "f", value}), ":1\r\n");
  const auto ask_often = [&](std::size_t times) {
    std::string line = "hmget h";
    for (std::size_t i = 0; i < times; ++i) line += " f";
    return ask(line);
  };
  const std::size_t most = dunlin::app::resp::kMaxReplyBytes / value.size();
  EXPECT_GT(ask_often(most).size(), most * value.size());
  EXPECT_EQ(ask_often(most + 1),
            "-ERR the values of the reply would be over 8388608 bytes, which is the limit: ask for "
            "fewer fields\r\n");
  EXPECT_EQ(ask("hlen h"), ":1\r\n") << "the connection goes on";
}

TEST_F(RedisCommands, RefuseTheWrongType) {
  ask("hset h a 1");
  for (const char* const line :
       {"get h", "append h x", "incr h", "set h v get", "strlen h", "getrange h 0 1", "getdel h"})
    EXPECT_EQ(ask(line), kWrongTypeReply) << line;
  ask("set s v");
  for (const char* const line : {"hget s a", "hset s a 1", "hgetall s", "hdel s a"})
    EXPECT_EQ(ask(line), kWrongTypeReply) << line;
  EXPECT_EQ(ask("mget h s"), "*2\r\n$-1\r\n$1\r\nv\r\n");
  EXPECT_EQ(ask("type s"), "+string\r\n");
  EXPECT_EQ(ask("type none"), "+none\r\n");
  EXPECT_EQ(ask("set h v"), "+OK\r\n");
}

TEST_F(RedisCommands, TakeNoStringThatLooksLikeAHash) {
  const std::string mark(dunlin::app::resp::kHashMark);
  EXPECT_EQ(client.ask({"SET", "k", mark + "x"}),
            "-ERR a string cannot begin with the mark of a hash or a sorted set\r\n");
  EXPECT_EQ(client.ask({"SET", "k", mark.substr(0, 4)}), "+OK\r\n");
  EXPECT_EQ(client.ask({"APPEND", "k", mark.substr(4)}),
            "-ERR a string cannot begin with the mark of a hash or a sorted set\r\n");
}

TEST_F(RedisCommands, ReadWhatAnybodyHasWrittenAsAHash) {
  const std::string mark(dunlin::app::resp::kHashMark);
  values.entries["h"].value = mark + "\x01";
  EXPECT_EQ(ask("hgetall h"), "*0\r\n");
  values.entries["h"].value = mark + std::string("\xff\xff\xff\xff\x01\0\0\0ab", 10);
  EXPECT_EQ(ask("hgetall h"), "*0\r\n");
  EXPECT_EQ(ask("hset h a 1"), ":1\r\n");
  const std::string field("\x01\0\0\0\x01\0\0\0a", 9);
  values.entries["h"].value = mark + field + "1" + field + "2";
  EXPECT_EQ(ask("hget h a"), "$1\r\n1\r\n");
  EXPECT_EQ(ask("hmget h a a"), "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
}

TEST_F(RedisCommands, SayWhyTheStoreFailed) {
  values.next_ending = Ending::lost;
  EXPECT_TRUE(contains(ask("get k"), "-CLUSTERDOWN "));
  EXPECT_TRUE(contains(ask("del k l"), "-CLUSTERDOWN "));
  EXPECT_TRUE(contains(ask("mget k"), "*1\r\n-CLUSTERDOWN "));
  values.next_ending = Ending::no_room;
  EXPECT_TRUE(contains(ask("set k v"), "-OOM "));
  EXPECT_TRUE(contains(ask("mset k v l v"), "-OOM "));
  EXPECT_TRUE(contains(ask("incr k"), "-OOM "));
  values.next_ending = Ending::bad_cursor;
  EXPECT_EQ(ask("scan 12345"), "-ERR invalid cursor\r\n");
}

TEST_F(RedisCommands, HaveRedissErrorsForOthers) {
  EXPECT_EQ(ask("subscribe news \"a\\r\\nb\""),
            "-ERR unknown command 'subscribe', with args beginning with: 'news' 'a  b' \r\n");
  EXPECT_EQ(ask("GET"), "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_EQ(ask("get a b"), "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_EQ(ask("select 1"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(ask("config rewrite"), "-ERR unknown subcommand 'rewrite'. Try CONFIG HELP.\r\n");
}

TEST_F(RedisCommands, AnswerWhatClientsAskFirst) {
  EXPECT_EQ(ask("ping"), "+PONG\r\n");
  EXPECT_EQ(ask("ping hello"), "$5\r\nhello\r\n");
  EXPECT_EQ(ask("echo hello"), "$5\r\nhello\r\n");
  EXPECT_EQ(ask("select 0"), "+OK\r\n");
  EXPECT_EQ(ask("config get save"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(ask("client setname me"), "+OK\r\n");
  EXPECT_EQ(ask("client getname"), "$2\r\nme\r\n");
  EXPECT_EQ(ask("client id"), ":1\r\n");
  EXPECT_EQ(ask("client setinfo lib-name x"), "+OK\r\n");
  EXPECT_EQ(ask("command info get none"),
            "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n"
            "*0\r\n*0\r\n*0\r\n*0\r\n*-1\r\n");
  EXPECT_TRUE(contains(ask("info"), "connected_clients:1\r\n"));
}

TEST_F(RedisCommands, LimitTheMemoryOfTheMember) {
  values.limit = {.bytes = 1 << 20, .evicts = true};
  EXPECT_EQ(ask("config get maxmemory"), "*2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n");
  EXPECT_EQ(ask("config get maxmemory*"),
            "*4\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n"
            "$16\r\nmaxmemory-policy\r\n$11\r\nallkeys-lru\r\n");
  EXPECT_EQ(ask("config set maxmemory 3mb maxmemory-policy allkeys-lru"), "+OK\r\n");
  EXPECT_EQ(values.limit.bytes, 3U << 20);
  EXPECT_EQ(ask("config set maxmemory 2k"), "+OK\r\n");
  EXPECT_EQ(values.limit.bytes, 2'000U);
  for (const char* const wrong : {"-1", "mb", "1.5gb", "1tb", "99999999999999gb", ""})
    EXPECT_EQ(
        client.ask({"config", "set", "maxmemory", wrong}),
        "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be "
        "a memory value\r\n");
  EXPECT_TRUE(
      contains(ask("config set maxmemory 1mb maxmemory-policy noeviction"), "at all members"));
  EXPECT_TRUE(
      contains(ask("config set maxmemory-policy allkeys-lfu"), "has no policy 'allkeys-lfu'"));
  EXPECT_TRUE(contains(ask("config set maxmemory-policy nonsense"), "must be one of"));
  EXPECT_TRUE(contains(ask("config set appendonly yes"), "related to argument 'appendonly'"));
  EXPECT_EQ(ask("config set maxmemory"),
            "-ERR wrong number of arguments for 'config|set' command\r\n");
  EXPECT_EQ(values.limit.bytes, 2'000U) << "of a command that failed";
}

TEST_F(RedisCommands, SpeakResp3OnceTheClientAsksForIt) {
  ask("hset h a 1");
  EXPECT_TRUE(contains(ask("hello 3"), "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
  EXPECT_EQ(ask("get none"), "_\r\n");
  EXPECT_EQ(ask("hgetall h"), "%1\r\n$1\r\na\r\n$1\r\n1\r\n");
  EXPECT_EQ(ask("hello 4"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_TRUE(contains(ask("hello 2 setname you"), "*14\r\n"));
  EXPECT_EQ(ask("get none"), "$-1\r\n");
  EXPECT_EQ(ask("client getname"), "$3\r\nyou\r\n");
}

TEST(RedisReply, HasDoublesInBothProtocols) {
  using dunlin::app::resp::Protocol;
  using dunlin::app::resp::Reply;
  std::string text;
  Reply reply(text, Protocol::resp3);
  reply.real(1.5);
  reply.real(-INFINITY);
  reply.use(Protocol::resp2);
  reply.real(0.1);
  EXPECT_EQ(text, ",1.5\r\n,-inf\r\n$3\r\n0.1\r\n");
}

TEST(RedisPattern, MatchesAsInRedis) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("h?llo", "hello"));
  EXPECT_FALSE(matches("h?llo", "hllo"));
  EXPECT_TRUE(matches("h*llo", "heeeello"));
  EXPECT_TRUE(matches("h[ae]llo", "hallo"));
  EXPECT_FALSE(matches("h[^e]llo", "hello"));
  EXPECT_TRUE(matches("h[b-a]llo", "hallo"));
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "x"));
  EXPECT_TRUE(matches("*a*b", "xaxbxb"));
  EXPECT_FALSE(matches("[", ""));
  EXPECT_FALSE(matches("a[", "a"));
  EXPECT_TRUE(matches("a[b", "ab"));
  EXPECT_FALSE(matches(std::string(60, '*') + "b", std::string(100'000, 'a')));
}

TEST(RedisInteger, IsTakenAsRedisTakesIt) {
  std::int64_t number = 0;
  EXPECT_TRUE(parse_integer("-9223372036854775808", number));
  EXPECT_TRUE(parse_integer("0", number));
  for (const char* const text : {"", "+1", "01", "-0", "-", " 1", "1 ", "9223372036854775808"})
    EXPECT_FALSE(parse_integer(text, number)) << text;
}

}  // namespace
