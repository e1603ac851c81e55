#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "process/program.hpp"
#include "store/command_table.hpp"
#include "store/limits.hpp"
#include "store_command/conversation.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// What the commands on sorted sets reply, over a map; and that Redis replies the same.
namespace {

using dunlin::app::resp::kSortedSetMark;
using dunlin::test::contains;
using dunlin::test::kWrongTypeReply;
using dunlin::test::request;

struct RedisSortedSets : dunlin::test::OneClient {};

TEST_F(RedisSortedSets, KeepMembersInTheOrderOfTheirScores) {
  EXPECT_EQ(ask("zadd z 3 c 1 a 2 b"), ":3\r\n");
  EXPECT_EQ(ask("zrange z 0 -1"), "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zadd z 0.5 c 7 d"), ":1\r\n");
  EXPECT_EQ(ask("zrange z 0 1 withscores"), "*4\r\n$1\r\nc\r\n$3\r\n0.5\r\n$1\r\na\r\n$1\r\n1\r\n");
  EXPECT_EQ(ask("zadd z 2 bb 2 B"), ":2\r\n");
  EXPECT_EQ(ask("zrange z -4 -2"), "*3\r\n$1\r\nB\r\n$1\r\nb\r\n$2\r\nbb\r\n");
  EXPECT_EQ(ask("zrange z 2 1"), "*0\r\n");
  EXPECT_EQ(ask("zcard z"), ":6\r\n");
  EXPECT_EQ(ask("zscore z d"), "$1\r\n7\r\n");
  EXPECT_EQ(ask("zscore z e"), "$-1\r\n");
  EXPECT_EQ(ask("type z"), "+zset\r\n");
  EXPECT_EQ(ask("zrem z a e d"), ":2\r\n");
  EXPECT_EQ(ask("zrem z B b bb c"), ":4\r\n");
  EXPECT_EQ(ask("exists z"), ":0\r\n");
  EXPECT_EQ(ask("zrem z a"), ":0\r\n");
  EXPECT_EQ(ask("zcard z"), ":0\r\n");
  EXPECT_EQ(ask("zrange z 0 -1"), "*0\r\n");
}

TEST_F(RedisSortedSets, FindRangesOfScores) {
  ask("zadd z -inf low 1 a 2 b 2 c 3.5 d +inf high");
  EXPECT_EQ(ask("zrangebyscore z 1 2"), "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zrangebyscore z (1 (3.5"), "*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zrangebyscore z 3 +inf withscores"),
            "*4\r\n$1\r\nd\r\n$3\r\n3.5\r\n$4\r\nhigh\r\n$3\r\ninf\r\n");
  EXPECT_EQ(ask("zrangebyscore z -inf (1"), "*1\r\n$3\r\nlow\r\n");
  EXPECT_EQ(ask("zrangebyscore z 0 inf limit 1 2"), "*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
  EXPECT_EQ(ask("zrangebyscore z 3 inf limit 1 -1"), "*1\r\n$4\r\nhigh\r\n");
  EXPECT_EQ(ask("zrangebyscore z 0 inf limit 9 2"), "*0\r\n");
  EXPECT_EQ(ask("zrangebyscore z 2 1"), "*0\r\n");
  EXPECT_EQ(ask("zrangebyscore none 0 9"), "*0\r\n");
  EXPECT_EQ(ask("zcount z 1 (3.5"), ":3\r\n");
  client.ask("HELLO 3\r\n");
  EXPECT_EQ(ask("zrangebyscore z 3 +inf withscores"),
            "*2\r\n*2\r\n$1\r\nd\r\n,3.5\r\n*2\r\n$4\r\nhigh\r\n,inf\r\n");
}

TEST_F(RedisSortedSets, AddOnlyIfTheConditionHolds) {
  EXPECT_EQ(ask("zadd z xx 1 a"), ":0\r\n");
  EXPECT_EQ(ask("exists z"), ":0\r\n");
  EXPECT_EQ(ask("zadd z nx 1 a"), ":1\r\n");
  EXPECT_EQ(ask("zadd z nx 2 a"), ":0\r\n");
  EXPECT_EQ(ask("zadd z gt ch 0 a"), ":0\r\n");
  EXPECT_EQ(ask("zadd z lt ch 0 a 5 b"), ":2\r\n");
  EXPECT_EQ(ask("zadd z incr 2.5 a"), "$3\r\n2.5\r\n");
  EXPECT_EQ(ask("zadd z xx incr 2.5 c"), "$-1\r\n");
  EXPECT_EQ(ask("zadd z ch 1 d 2 d 3 d"), ":3\r\n");
  EXPECT_EQ(ask("zincrby z -1 b"), "$1\r\n4\r\n");
  EXPECT_EQ(ask("zincrby z inf b"), "$3\r\ninf\r\n");
  EXPECT_EQ(ask("zincrby z -inf b"), "-ERR resulting score is not a number (NaN)\r\n");
}

TEST_F(RedisSortedSets, WriteScoresAsRedisDoes) {
  for (const char* const score : {"0", "-0", "100000", "-1234567890", "9007199254740991", "0.1",
                                  "-2.5", "1e+300", "inf", "-inf"}) {
    ask(std::string("zadd z ") + score + " a");
    const std::string text = score;
    EXPECT_EQ(ask("zscore z a"), "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n");
    ask("del z");
  }
}

TEST_F(RedisSortedSets, HaveTheSameMistakesAsRedis) {
  for (const char* const line : {"zadd z 1 a 2", "zadd z nx 1", "zrangebyscore z 0 1 limit 1",
                                 "zrangebyscore z 0 1 with", "zrange z 0 1 with"})
    EXPECT_EQ(ask(line), "-ERR syntax error\r\n") << line;
  for (const char* const line : {"zadd z one a", "zadd z nan a", "zadd z 1 a \" 2\" b",
                                 "zadd z \"\" a", "zadd z 1e999 a", "zincrby z 1x a"})
    EXPECT_EQ(ask(line), "-ERR value is not a valid float\r\n") << line;
  for (const char* const line :
       {"zrangebyscore z one 2", "zrangebyscore z 1 ((2", "zcount z nan 1"})
    EXPECT_EQ(ask(line), "-ERR min or max is not a float\r\n") << line;
  for (const char* const line : {"zrangebyscore z 0 1 limit a 2", "zrange z 0 x"})
    EXPECT_EQ(ask(line), "-ERR value is not an integer or out of range\r\n") << line;
  EXPECT_EQ(ask("zadd z nx xx 1 a"),
            "-ERR XX and NX options at the same time are not compatible\r\n");
  EXPECT_EQ(ask("zadd z gt lt 1 a"),
            "-ERR GT, LT, and/or NX options at the same time are not compatible\r\n");
  EXPECT_EQ(ask("zadd z incr 1 a 2 b"),
            "-ERR INCR option supports a single increment-element pair\r\n");
  EXPECT_EQ(ask("zadd z 1"), "-ERR wrong number of arguments for 'zadd' command\r\n");
  EXPECT_EQ(ask("exists z"), ":0\r\n");
}

TEST_F(RedisSortedSets, RefuseTheWrongType) {
  ask("set s v");
  ask("hset h a 1");
  for (const std::string key : {"s", "h"})
    for (const std::string command :
         {"zadd K 1 a", "zincrby K 1 a", "zrem K a", "zscore K a", "zcard K", "zcount K 0 1",
          "zrange K 0 1", "zrangebyscore K 0 1"}) {
      std::string line = command;
      EXPECT_EQ(ask(line.replace(line.find('K'), 1, key)), kWrongTypeReply) << line;
    }
  ask("zadd z 1 a");
  for (const char* const line : {"get z", "append z x", "incr z", "hget z a", "hset z a 1"})
    EXPECT_EQ(ask(line), kWrongTypeReply) << line;
  EXPECT_EQ(client.ask({"SET", "k", std::string(kSortedSetMark)}),
            "-ERR a string cannot begin with the mark of a hash or a sorted set\r\n");
}

TEST_F(RedisSortedSets, EndAtTheLimitOfAValue) {
  std::vector<std::string> words;
  std::size_t bytes = dunlin::app::resp::kMarkBytes;
  for (int i = 100'000; bytes + 18 <= dunlin::app::resp::kMaxArgumentBytes; ++i, bytes += 18) {
    words.push_back(std::to_string(i % 977));
    words.push_back(std::to_string(i));
  }
  // One request has no room for them all.
  for (std::size_t begin = 0; begin < words.size(); begin += 20'000) {
    const std::size_t end = std::min(words.size(), begin + 20'000);
    std::string text = "*" + std::to_string(2 + end - begin) + "\r\n$4\r\nZADD\r\n$1\r\nz\r\n";
    for (std::size_t i = begin; i < end; ++i)
      text += "$" + std::to_string(words[i].size()) + "\r\n" + words[i] + "\r\n";
    ASSERT_EQ(client.ask(text), ":" + std::to_string((end - begin) / 2) + "\r\n");
  }
  const std::string all = ":" + std::to_string(words.size() / 2) + "\r\n";
  EXPECT_EQ(ask("zcard z"), all);
  EXPECT_EQ(ask("zadd z 5 another"),
            "-ERR the sorted set would be over 1048576 bytes, which is the limit of a value\r\n");
  EXPECT_EQ(ask("zadd z 5000 " + words[1]), ":0\r\n") << "of a member that is there";
  EXPECT_EQ(ask("zrange z -1 -1"), "*1\r\n$6\r\n" + words[1] + "\r\n");
  EXPECT_EQ(ask("zcount z -inf inf"), all);
  EXPECT_EQ(ask("zrem z " + words[1]), ":1\r\n");
  EXPECT_EQ(ask("zadd z 5 anothe"), ":1\r\n") << "in the place of the other";
}

TEST_F(RedisSortedSets, ReadWhatAnybodyHasWritten) {
  const std::string mark(kSortedSetMark);
  const auto member = [](double score, const std::string& name) {
    const auto bytes = std::bit_cast<std::array<char, 8>>(score);
    return std::string(bytes.data(), 8) + static_cast<char>(name.size()) + std::string(3, '\0') +
           name;
  };
  EXPECT_EQ(ask("zadd z 1 a"), ":1\r\n");
  EXPECT_EQ(values.entries["z"].value, mark + member(1, "a"));
  for (const std::string& bytes :
       {std::string("\x01"), std::string(11, 'x'), std::string(12, '\xff')}) {
    values.entries["z"].value = mark + bytes;
    EXPECT_EQ(ask("zrange z 0 -1"), "*0\r\n");
    EXPECT_EQ(ask("zadd z 1 a"), ":1\r\n");
    EXPECT_EQ(ask("zrange z 0 -1"), "*1\r\n$1\r\na\r\n");
  }
  values.entries["z"].value = mark + member(5, "a") + member(1, "b") + member(2, "a");
  EXPECT_EQ(ask("zscore z a"), "$1\r\n5\r\n");
  EXPECT_EQ(ask("zadd z 0 c"), ":1\r\n");
  EXPECT_EQ(ask("zrem z a b"), ":2\r\n");
  values.entries["z"].value = mark + member(std::nan(""), "a");
  EXPECT_EQ(ask("zrangebyscore z -inf inf"), "*0\r\n");
  EXPECT_EQ(ask("zincrby z 1 a"), "-ERR resulting score is not a number (NaN)\r\n");
  EXPECT_EQ(ask("zadd z 1 a"), ":0\r\n");
  EXPECT_EQ(ask("zrangebyscore z -inf inf"), "*1\r\n$1\r\na\r\n");
}

// --- beside Redis --------------------------------------------------------------------------------

/// A redis-server without a port.
class RealRedis {
 public:
  explicit RealRedis(const std::string& path)
      : server_([path](dunlin::test::Parent& parent) {
          for (const int number : {STDOUT_FILENO, STDERR_FILENO}) dup2(parent.descriptor(), number);
          execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path.c_str(),
                 "--save", "", "--appendonly", "no", "--dir", "/", nullptr);
          return 127;
        }),
        socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    std::string line;
    do line = server_.receive_line();
    while (!line.empty() && !contains(line, "eady to accept connections"));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(connect(socket_.get(), raw, sizeof address), 0);
  }

  /// The replies to one request.
  std::string ask(const std::string& text) {
    constexpr std::string_view kEnd = "$15\r\nthis is the end\r\n";
    const std::string all = text + request({"ECHO", "this is the end"});
    EXPECT_EQ(send(socket_.get(), all.data(), all.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(all.size()));
    std::string replies;
    std::array<char, 4096> part;
    while (!replies.ends_with(kEnd)) {
      const ssize_t count = recv(socket_.get(), part.data(), part.size(), 0);
      if (count <= 0) return "the connection has ended";
      replies.append(part.data(), static_cast<std::size_t>(count));
    }
    return replies.substr(0, replies.size() - kEnd.size());
  }

 private:
  dunlin::test::Process server_;
  dunlin::Descriptor socket_;
};

/// Commands on three keys with few members and scores, so that they meet; the scores are such that
/// all versions of Redis write them alike.
std::vector<std::string> random_words(std::mt19937_64& random) {
  const auto one_of = [&](const std::vector<std::string>& words) {
    return words[random() % words.size()];
  };
  const auto key = [&] { return one_of({"z1", "z2", "z3", "s"}); };
  const auto score = [&] {
    return one_of({"0", "1", "-1", "2.5", "1e3", "inf", "-inf", "3", "0x10", "+4", "nan", "x", " 1",
                   "", "1 ", "123456789", "1e999"});
  };
  const auto bound = [&] { return (random() % 3 == 0 ? "(" : "") + score(); };
  const auto member = [&] { return one_of({"a", "b", "c", "aa", "", "d", "e", "f", "\xff", "B"}); };
  const auto number = [&] { return one_of({"0", "1", "2", "-1", "-2", "5", "x", "-100", "100"}); };
  std::vector<std::string> words;
  switch (random() % 10) {
    case 0:
    case 1:
    case 2:
    case 3:
      words = {one_of({"ZADD", "zadd"}), key()};
      while (random() % 3 == 0) words.push_back(one_of({"NX", "xx", "GT", "LT", "CH", "INCR"}));
      do {
        words.push_back(random() % 2 == 0 ? "1" : score());
        words.push_back(member());
      } while (random() % 2 == 0);
      if (random() % 50 == 0) words.pop_back();
      return words;
    case 4:
      words = {"ZREM", key()};
      do words.push_back(member());
      while (random() % 2 == 0);
      return words;
    case 5:
    case 6:
      words = {"ZRANGEBYSCORE", key(), bound(), bound()};
      if (random() % 2 == 0) words.push_back("WITHSCORES");
      if (random() % 2 == 0) words.insert(words.end(), {"LIMIT", number(), number()});
      if (random() % 20 == 0) words.push_back("WITHSCORES");
      return words;
    case 7:
      words = {"ZRANGE", key(), number(), number()};
      if (random() % 2 == 0) words.push_back("WITHSCORES");
      return words;
    case 8:
      return {one_of({"ZINCRBY"}), key(), score(), member()};
    default:
      switch (random() % 6) {
        case 0:
          return {"ZCOUNT", key(), bound(), bound()};
        case 1:
          return {"ZCARD", key()};
        case 2:
          return {"EXISTS", key()};
        case 3:
          return {"TYPE", key()};
        case 4:
          return {"DEL", one_of({"z1", "z2", "z3"})};
        default:
          return {"ZSCORE", key(), member()};
      }
  }
}

TEST_F(RedisSortedSets, ReplyAsRedisDoesToRandomCommands) {
  if (!dunlin::process::program_exists("redis-server"))
    GTEST_SKIP() << "redis-server is missing (Debian: redis-server)";
  const dunlin::test::OwnDirectory directory;
  RealRedis redis(directory / "redis");
  for (const char* const protocol : {"2", "3"}) {
    const std::string hello = request({"HELLO", protocol}) + request({"SET", "s", "v"});
    static_cast<void>(client.ask(hello));
    static_cast<void>(redis.ask(hello));
    std::mt19937_64 random(7);
    for (std::uint64_t i = 0; i < dunlin::test::rounds(4'000); ++i) {
      const std::vector<std::string> words = random_words(random);
      std::string text = "*" + std::to_string(words.size()) + "\r\n";
      std::string line;
      for (const std::string& word : words) {
        text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
        line += " '" + word + "'";
      }
      ASSERT_EQ(client.ask(text), redis.ask(text)) << "RESP" << protocol << ", " << i << line;
    }
  }
}

}  // namespace
