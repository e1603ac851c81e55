#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/limits.hpp"
#include "store_command/conversation.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"

/// Order, pipelines, back-pressure and passwords, with calls that end late and in any order.
namespace {

using dunlin::app::resp::kMaxBacklog;
using dunlin::app::resp::kMaxCalls;
using dunlin::app::resp::kMaxJobs;
using dunlin::app::resp::Service;
using dunlin::test::contains;
using dunlin::test::Conversation;
using dunlin::test::FakeValues;
using dunlin::test::request;

struct RedisSession : testing::Test {
  FakeValues values;
  Service service{values, {}};
};

/// RSP-C1.
TEST_F(RedisSession, RepliesInTheOrderOfTheRequests) {
  values.delay(1);
  Conversation client(service);
  std::string requests;
  std::string replies;
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    values.entries["k" + number].value = number;
    requests += request({"GET", "k" + number});
    replies += "$" + std::to_string(number.size()) + "\r\n" + number + "\r\n";
  }
  EXPECT_EQ(client.ask(requests), replies);
  EXPECT_EQ(values.most_under_way, std::size_t{kMaxJobs});
}

/// RSP-C2.
TEST_F(RedisSession, DoesTheCommandsOnOneKeyInOrder) {
  values.delay(2);
  Conversation client(service);
  std::string requests;
  std::string replies;
  for (int i = 1; i <= 100; ++i) {
    requests += request({"INCR", "a"}) + request({"INCR", "b"}) + request({"GET", "a"});
    const std::string n = std::to_string(i);
    const std::string length = std::to_string(n.size());
    for (const std::string_view part :
         {":", n.c_str(), "\r\n:", n.c_str(), "\r\n$", length.c_str(), "\r\n", n.c_str(), "\r\n"})
      replies += part;
  }
  EXPECT_EQ(client.ask(requests), replies);
}

TEST_F(RedisSession, WaitsWithCommandsOnAllKeys) {
  values.delay(3);
  Conversation client(service);
  EXPECT_EQ(client.ask(request({"SET", "a", "1"}) + request({"SET", "b", "1"}) +
                       request({"DBSIZE"}) + request({"DEL", "a", "b", "c"}) + request({"PING"})),
            "+OK\r\n+OK\r\n:2\r\n:2\r\n+PONG\r\n");
}

/// The same requests, whole and with calls at once, or cut and with calls that end late.
/// By RSP-S1 the arguments stay in the input until a late call has ended.
TEST_F(RedisSession, RepliesTheSameHoweverTheRequestsComeAndTheCallsEnd) {
  const std::vector<std::vector<std::string>> commands{{"SET", "K", "V"},
                                                       {"GET", "K"},
                                                       {"INCR", "N"},
                                                       {"DEL", "K", "N"},
                                                       {"APPEND", "K", "x"},
                                                       {"MGET", "K", "N", "K"},
                                                       {"MSET", "K", "1", "N", "2"},
                                                       {"PING"},
                                                       {"EXPIRE", "K", "100", "NX"},
                                                       {"TTL", "K"},
                                                       {"PERSIST", "K"},
                                                       {"HSET", "H", "f", "1"},
                                                       {"HGETALL", "H"},
                                                       {"NONE"}};
  for (std::uint64_t seed = 0; seed < dunlin::test::rounds(200); ++seed) {
    std::mt19937_64 random(seed);
    std::string requests;
    for (int i = 0; i < 60; ++i) {
      const auto& words = commands[random() % commands.size()];
      const std::string which(1, static_cast<char>('0' + random() % 3));
      std::string text = "*" + std::to_string(words.size()) + "\r\n";
      for (std::string word : words) {
        if (word == "K" || word == "N" || word == "H") word += which;
        text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
      }
      requests += text;
    }
    FakeValues at_once;
    Service first(at_once, {});
    const std::string expected = Conversation(first).ask(requests);
    FakeValues late;
    late.delay(seed);
    Service second(late, {});
    Conversation client(second);
    ASSERT_EQ(client.ask(requests, 1 + random() % 40), expected) << "seed " << seed;
    ASSERT_GT(late.most_under_way, 1U) << "seed " << seed;
  }
}

TEST_F(RedisSession, StopsReadingWhileItsClientTakesNoReplies) {
  Conversation client(service);
  values.entries["k"].value = std::string(100'000, 'v');
  std::string requests;
  for (int i = 0; i < 10'000; ++i) requests += request({"GET", "k"});
  const std::size_t sent = client.send(requests);
  EXPECT_LT(sent, requests.size());
  EXPECT_FALSE(client.session.wants_input());
  EXPECT_LT(client.session.output().size(), kMaxBacklog + 110'000);
  const std::string first = client.take();
  EXPECT_TRUE(client.session.can_proceed());
  client.session.proceed();
  EXPECT_FALSE(client.session.output().empty());
}

/// The elements of MGET are replies of their own, which wait for the client to take them.
TEST_F(RedisSession, HoldsBackTheElementsOfOneReply) {
  Conversation client(service);
  values.entries["k"].value = std::string(100'000, 'v');
  std::string line = "MGET";
  for (int i = 0; i < 1'000; ++i) line += " k";
  client.send(line + "\r\n");
  std::size_t bytes = 0;
  while (!client.session.output().empty()) {
    ASSERT_LT(client.session.output().size(), kMaxBacklog + 110'000);
    bytes += client.take().size();
    if (client.session.can_proceed()) client.session.proceed();
  }
  EXPECT_EQ(bytes, std::string("*1000\r\n").size() + 1'000 * std::string("$100000\r\n\r\n").size() +
                       100'000'000);
}

TEST_F(RedisSession, KeepsNoRepliesThatItsClientHasTaken) {
  Conversation client(service);
  values.entries["k"].value = std::string(100'000, 'v');
  std::string requests;
  for (int i = 0; i < 1'000; ++i) requests += request({"GET", "k"});
  std::string_view left = requests;
  do {  // it takes all but one byte each time
    left.remove_prefix(client.send(left));
    client.session.output_sent(client.session.output().size() - 1);
    if (client.session.can_proceed()) client.session.proceed();
    ASSERT_LT(client.session.output_capacity(), 4 * (kMaxBacklog + 110'000));
  } while (!left.empty() || client.session.output().size() > 1);
  EXPECT_EQ(client.take(), "\n");
}

/// RSP-S2, with calls that take 10 ms each.
TEST_F(RedisSession, WaitsForAPollOfTheStoreWithWorkThatTakesLong) {
  values.call_ns = 10'000'000;
  std::string gets;
  std::string mget = "MGET";
  for (int i = 0; i < 300; ++i) {
    values.entries["k" + std::to_string(i)].value = "v";
    gets += request({"GET", "k" + std::to_string(i)});
    mget += " k" + std::to_string(i);
  }
  for (const std::string& work : {gets, mget + "\r\n", request({"KEYS", "none"}),
                                  request({"RANDOMKEY"}), request({"FLUSHALL"})}) {
    Conversation client(service);
    const std::uint64_t started = values.started;
    client.send(work + "PING\r\n");
    EXPECT_LT(values.started - started, 40U) << work;
    EXPECT_TRUE(service.has_runnable());
    EXPECT_FALSE(client.session.idle());
    EXPECT_TRUE(client.ask("").ends_with("+PONG\r\n")) << work;
    EXPECT_GT(values.started - started, 90U) << work;
  }
}

TEST_F(RedisSession, WaitsForAPollOfTheStoreAfterAScriptThatTakesLong) {
  values.call_ns = 100'000'000;
  Conversation client(service);
  const std::string script = request({"EVAL", "return 1", "0"});
  client.send(script + script + script);
  EXPECT_EQ(values.started, 1U);
  EXPECT_EQ(client.ask(""), ":1\r\n:1\r\n:1\r\n");
}

/// RSP-S2.
TEST_F(RedisSession, WaitsForACallWhileOthersHaveThemAll) {
  values.delay(4);
  std::vector<std::unique_ptr<Conversation>> clients;
  std::string requests;
  std::string replies;
  for (std::uint32_t i = 0; i < kMaxJobs; ++i) {
    requests += request({"GET", "k" + std::to_string(i)});
    replies += "$-1\r\n";
  }
  const std::size_t count = kMaxCalls / kMaxJobs * 2;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Conversation>(service, i));
    clients.back()->send(requests);
  }
  EXPECT_EQ(values.under_way(), std::size_t{kMaxCalls});
  EXPECT_GT(service.counters().waits_for_calls, 0U);
  clients[0].reset();          // with calls under way
  clients[count - 1].reset();  // while it waits
  clients[1]->go_on();
  for (std::size_t i = 1; i + 1 < count; ++i) EXPECT_EQ(clients[i]->take(), replies) << i;
}

TEST_F(RedisSession, EndsWithAMistake) {
  Conversation client(service);
  EXPECT_EQ(client.ask("PING\r\n*1\r\n:5\r\nPING\r\n"),
            "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n");
  EXPECT_TRUE(client.session.closing());
  Conversation browser(service, 2);
  EXPECT_EQ(browser.ask("POST / HTTP/1.1\r\nHost: a\r\n\r\n"),
            "-ERR this is a store, and no web server\r\n");
  EXPECT_TRUE(browser.session.closing());
}

TEST_F(RedisSession, EndsWithQuit) {
  Conversation client(service);
  EXPECT_EQ(client.ask("SET a 1\r\nQUIT\r\nSET a 2\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_EQ(values.entries["a"].value, "1");
}

TEST_F(RedisSession, TakesValuesOfTheLargestSize) {
  Conversation client(service);
  const std::string value(1 << 20, 'v');
  EXPECT_EQ(client.ask(request({"SET", "k", value}) + request({"STRLEN", "k"}), 10'000),
            "+OK\r\n:1048576\r\n");
  EXPECT_EQ(client.ask({"GET", "k"}), "$1048576\r\n" + value + "\r\n");
}

TEST(RedisPassword, IsAskedForFirst) {
  FakeValues values;
  Service service(values, {.password = "correct horse battery"});
  Conversation client(service);
  EXPECT_EQ(client.ask("GET k\r\n"), "-NOAUTH Authentication required.\r\n");
  EXPECT_TRUE(contains(client.ask("HELLO 3\r\n"), "-NOAUTH "));
  EXPECT_TRUE(contains(client.ask("AUTH wrong\r\n"), "-WRONGPASS "));
  EXPECT_TRUE(contains(client.ask("AUTH \"\"\r\n"), "-WRONGPASS "));
  EXPECT_TRUE(contains(client.ask("AUTH other \"correct horse battery\"\r\n"), "-WRONGPASS "));
  EXPECT_EQ(values.started, 0U);
  EXPECT_EQ(client.ask("AUTH \"correct horse battery\"\r\nGET k\r\n"), "+OK\r\n$-1\r\n");
  Conversation other(service, 2);
  EXPECT_TRUE(contains(other.ask("HELLO 3 AUTH default \"correct horse battery\"\r\n"), "%7\r\n"));
  Conversation large(service, 3);
  EXPECT_TRUE(contains(large.ask("*1\r\n$20000\r\n"), "unauthenticated bulk length"));
}

TEST(RedisPassword, IsNotAskedForUnlessThereIsOne) {
  FakeValues values;
  Service service(values, {});
  Conversation client(service);
  EXPECT_TRUE(contains(client.ask("AUTH x\r\n"), "-ERR AUTH <password> called without any"));
  EXPECT_EQ(client.ask("AUTH default x\r\n"), "+OK\r\n");
}

}  // namespace
