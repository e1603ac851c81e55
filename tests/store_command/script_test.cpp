#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store_command/conversation.hpp"
#include "support/errors.hpp"

/// Scripts, over a map: those with which clients release and extend their locks, and the limits.
namespace {

using dunlin::test::contains;

struct RedisScript : dunlin::test::OneClient {
  std::string eval(const std::string& script, const std::vector<std::string>& keys = {},
                   const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> words{"EVAL", script, std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
      text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    return client.ask(text);
  }
};

/// As redis-py and Redlock do it: compare and delete, compare and expire.
TEST_F(RedisScript, ReleasesAndExtendsALock) {
  const std::string release =
      "local token = redis.call('get', KEYS[1])\n"
      "if not token or token ~= ARGV[1] then return 0 end\n"
      "redis.call('del', KEYS[1])\nreturn 1\n";
  const std::string extend =
      "local token = redis.call('get', KEYS[1])\n"
      "if not token or token ~= ARGV[1] then return 0 end\n"
      "local expiration = redis.call('pttl', KEYS[1])\n"
      "if not expiration then expiration = 0 end\n"
      "if expiration < 0 then return 0 end\n"
      "local newttl = ARGV[2]\n"
      "if ARGV[3] == \"0\" then newttl = ARGV[2] + expiration end\n"
      "redis.call('pexpire', KEYS[1], newttl)\nreturn 1\n";
  ask("set lock token px 1000");
  EXPECT_EQ(eval(extend, {"lock"}, {"other", "500", "0"}), ":0\r\n");
  EXPECT_EQ(eval(extend, {"lock"}, {"token", "500", "0"}), ":1\r\n");
  EXPECT_EQ(ask("pttl lock"), ":1500\r\n");
  EXPECT_EQ(eval(release, {"lock"}, {"other"}), ":0\r\n");
  EXPECT_EQ(ask("get lock"), "$5\r\ntoken\r\n");
  EXPECT_EQ(eval(release, {"lock"}, {"token"}), ":1\r\n");
  EXPECT_EQ(ask("get lock"), "$-1\r\n");
}

/// As Redisson does it: a hash counts how often its holder has taken the lock.
TEST_F(RedisScript, TakesALockAgain) {
  const std::string lock =
      "if ((redis.call('exists', KEYS[1]) == 0) or "
      "(redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then "
      "redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); "
      "return nil; end; return redis.call('pttl', KEYS[1]);";
  const std::string unlock =
      "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil;end; "
      "local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); "
      "if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; "
      "else redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1; end; "
      "return nil;";
  EXPECT_EQ(eval(lock, {"lock"}, {"30000", "me"}), "$-1\r\n");
  EXPECT_EQ(eval(lock, {"lock"}, {"30000", "me"}), "$-1\r\n");
  EXPECT_EQ(eval(lock, {"lock"}, {"30000", "you"}), ":30000\r\n");
  EXPECT_EQ(eval(unlock, {"lock", "channel"}, {"0", "30000", "you"}), "$-1\r\n");
  EXPECT_EQ(eval(unlock, {"lock", "channel"}, {"0", "30000", "me"}), ":0\r\n");
  EXPECT_EQ(eval(unlock, {"lock", "channel"}, {"0", "30000", "me"}), ":1\r\n");
  EXPECT_FALSE(values.entries.contains("lock"));
}

TEST_F(RedisScript, IsCalledByItsName) {
  const std::string name = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
  EXPECT_EQ(ask("evalsha " + name + " 0"), "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  EXPECT_EQ(ask("script load 'return 1'"), "$40\r\n" + name + "\r\n");
  EXPECT_EQ(ask("evalsha " + name + " 0"), ":1\r\n");
  EXPECT_EQ(ask("script exists " + name + " 0"), "*2\r\n:1\r\n:0\r\n");
  EXPECT_EQ(ask("script flush"), "+OK\r\n");
  EXPECT_EQ(ask("script exists " + name), "*1\r\n:0\r\n");
  EXPECT_TRUE(contains(ask("script load 'return ('"), "-ERR Error compiling script"));
  EXPECT_EQ(eval("return 1"), ":1\r\n");
  EXPECT_EQ(ask("evalsha " + name + " 0"), ":1\r\n");
}

TEST_F(RedisScript, RepliesAsRedisConvertsItsValues) {
  EXPECT_EQ(eval("return {1, 'two', 3.9, true, false, {ok='fine'}}"),
            "*6\r\n:1\r\n$3\r\ntwo\r\n:3\r\n:1\r\n$-1\r\n+fine\r\n");
  EXPECT_EQ(eval("return redis.error_reply('MY error')"), "-MY error\r\n");
  EXPECT_EQ(eval("return redis.call('get', KEYS[1])", {"none"}), "$-1\r\n");
  EXPECT_EQ(eval("return redis.call('mget', KEYS[1], KEYS[2])", {"a", "b"}),
            "*2\r\n$-1\r\n$-1\r\n");
  EXPECT_EQ(eval("return redis.call('set', KEYS[1], 10/2)", {"a"}), "+OK\r\n");
  EXPECT_EQ(ask("get a"), "$1\r\n5\r\n");
  EXPECT_EQ(eval("return redis.pcall('hget', KEYS[1], 'f')['err'] ~= nil", {"a"}), ":1\r\n");
}

TEST_F(RedisScript, DrawsOtherNumbersEachTime) {
  const std::string draw = "return tostring(math.random())";
  EXPECT_NE(eval(draw), eval(draw));
  const std::string seeded = "math.randomseed(10) return tostring(math.random())";
  EXPECT_EQ(eval(seeded), eval(seeded));
}

TEST_F(RedisScript, ChangesNothingIfItFails) {
  EXPECT_TRUE(contains(eval("redis.call('set', KEYS[1], 1) error('no')", {"a"}), "-ERR "));
  EXPECT_TRUE(contains(
      eval("redis.call('set', KEYS[1], 1) redis.call('hget', KEYS[1], 'f')", {"a"}), "-WRONGTYPE"));
  EXPECT_TRUE(contains(eval("return redis.call('get', 'other')", {"a"}), "not among its KEYS"));
  EXPECT_TRUE(contains(eval("return redis.call('eval', 'return 1', 0)"), "not allowed"));
  EXPECT_TRUE(contains(eval("return redis.call('flushall')"), "not allowed"));
  EXPECT_TRUE(contains(eval("return redis.call('config', 'get', 'save')"), "not allowed"));
  EXPECT_TRUE(values.entries.empty());
}

TEST_F(RedisScript, TakesNoMoreThanItsLimits) {
  const std::string ends = "limit";
  EXPECT_TRUE(contains(eval("while true do end"), ends));
  EXPECT_TRUE(contains(eval("while true do pcall(function() while true do end end) end"), ends));
  EXPECT_TRUE(contains(eval("local s = 'x' while true do s = s .. s end"), "not enough memory"));
  EXPECT_TRUE(contains(eval("local t = {} t[1] = t return t"), "16 tables deep"));
  EXPECT_TRUE(contains(eval("return string.rep('x', 10)"), "-ERR "));
  EXPECT_TRUE(contains(eval("return load('return 1')()"), "-ERR "));
  EXPECT_TRUE(contains(eval(std::string(70'000, ' ')), "over 65536 bytes"));
}

TEST_F(RedisScript, SortsWithinItsTime) {
  EXPECT_EQ(eval("local t = {3, 1, 2} table.sort(t) return t"), "*3\r\n:1\r\n:2\r\n:3\r\n");
  EXPECT_EQ(eval("local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t"),
            "*3\r\n:3\r\n:2\r\n:1\r\n");
  EXPECT_TRUE(contains(eval("table.sort({1, 'a'})"), "attempt to compare"));
  const std::string strings =
      "local s = 'a' for i = 1, 20 do s = s .. s end local t = {} for i = 1, 20000 do t[i] = s "
      "end ";
  EXPECT_TRUE(contains(eval(strings + "table.sort(t)"), "100 ms, which is the limit"));
  EXPECT_TRUE(contains(eval(strings + "table.sort(t, string.lower)"), "100 ms, which is the limit"))
      << "a comparison in C";
}

TEST_F(RedisScript, GivesCommandsNoMoreThanARequestCan) {
  const std::string megabyte(1 << 20, 'v');
  const std::string call = " return redis.call('del', unpack(t))";
  EXPECT_TRUE(
      contains(eval("local t = {} for i = 1, 9 do t[i] = ARGV[1] end" + call, {}, {megabyte}),
               "over 8388608 bytes"));
  EXPECT_TRUE(contains(eval("return redis.call('del', ARGV[1] .. 'v')", {}, {megabyte}),
                       "over 1048576 bytes"));
  EXPECT_TRUE(contains(eval("local t = {} for i = 1, 70000 do t[i] = 1 end" + call), "over 65536"));
  EXPECT_EQ(eval("return redis.pcall('del', ARGV[1] .. 'v')['err'] ~= nil", {}, {megabyte}),
            ":1\r\n");
}

TEST_F(RedisScript, ReadsNoMoreThanATransaction) {
  values.entries["k"].value = std::string(1'000'000, 'v');
  const std::string keys = "local t = {} for i = 1, 1000 do t[i] = KEYS[1] end ";
  EXPECT_TRUE(contains(eval(keys + "return redis.call('mget', unpack(t))", {"k"}),
                       "replies of the transaction would be over 8388608 bytes"));
  EXPECT_TRUE(contains(eval(keys + "return redis.call('exists', unpack(t))", {"k"}), "limit"));
}

TEST_F(RedisScript, HasAtMost64Keys) {
  EXPECT_EQ(eval("return 1", std::vector<std::string>(64, "k")), ":1\r\n");
  EXPECT_EQ(eval("return 1", std::vector<std::string>(65, "k")),
            "-ERR a script has at most 64 keys\r\n");
}

TEST_F(RedisScript, CallsNothingThatIsAboutATransaction) {
  for (const char* const command : {"watch', KEYS[1]", "unwatch'", "multi'", "exec'", "discard'"})
    EXPECT_TRUE(contains(eval(std::string("return redis.call('") + command + ")", {"a"}),
                         "not allowed from script"))
        << command;
  EXPECT_EQ(client.session.queued(), 0U);
}

TEST_F(RedisScript, SharesItsTimeWithTheOthersOfATransaction) {
  ask("multi");
  for (int i = 0; i < 10; ++i) eval("while true do end");
  ask("set a 1");
  EXPECT_TRUE(
      contains(ask("exec"), "-ERR the commands of the transaction have run for over 100 ms"));
  EXPECT_TRUE(values.entries.empty());
}

TEST_F(RedisScript, IsPartOfATransaction) {
  ask("multi");
  ask("set a 1");
  EXPECT_EQ(eval("return redis.call('incr', KEYS[1])", {"a"}), "+QUEUED\r\n");
  EXPECT_EQ(eval("redis.call('incr', KEYS[1]) error('no')", {"a"}), "+QUEUED\r\n");
  ask("get a");
  const std::string replies = ask("exec");
  EXPECT_TRUE(replies.starts_with("*4\r\n+OK\r\n:2\r\n-ERR ")) << replies;
  EXPECT_TRUE(replies.ends_with("\r\n$1\r\n2\r\n")) << replies;
}

}  // namespace
