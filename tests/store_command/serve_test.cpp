#include <cerrno>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "store_command/conversation.hpp"
#include "store_command/server_process.hpp"
#include "store_command/socket.hpp"
#include "support/own_directory.hpp"
#include "support/rounds.hpp"

/// `dunlin store serve` with the real clients of Redis.
namespace {

using dunlin::app::Status;
using dunlin::process::program_exists;
using dunlin::test::contains;
using dunlin::test::kSanitized;
using dunlin::test::redis_cli;
using dunlin::test::request;
using dunlin::test::run_store;
using dunlin::test::ServerProcess;
using dunlin::test::Socket;
using dunlin::test::Words;

struct StoreServe : testing::Test {
  const std::string group = dunlin::test::fresh_group();
};

#define SKIP_WITHOUT(program) \
  if (!program_exists(program)) GTEST_SKIP() << program << " is missing (Debian: redis-tools)"

TEST_F(StoreServe, AnswersRedisCli) {
  SKIP_WITHOUT("redis-cli");
  ServerProcess server(group);
  EXPECT_EQ(redis_cli(server, {"ping"}), "PONG\n");
  EXPECT_EQ(redis_cli(server, {"set", "greeting", "hello world"}), "OK\n");
  EXPECT_EQ(redis_cli(server, {"get", "greeting"}), "hello world\n");
  EXPECT_EQ(redis_cli(server, {"--no-raw", "get", "none"}), "(nil)\n");
  EXPECT_EQ(redis_cli(server, {"--no-raw", "incr", "n"}), "(integer) 1\n");
  EXPECT_EQ(redis_cli(server, {"-3", "hset", "h", "a", "1"}), "1\n");
  EXPECT_EQ(redis_cli(server, {"-3", "--no-raw", "hgetall", "h"}), "1# \"a\" => \"1\"\n");
  EXPECT_EQ(redis_cli(server, {"dbsize"}), "3\n");
  EXPECT_TRUE(contains(redis_cli(server, {"info"}), "redis_version:7"));
  EXPECT_TRUE(contains(redis_cli(server, {"lpush", "l", "a"}), "ERR unknown command 'lpush'"));
  const std::string keys = redis_cli(server, {"--scan"});
  for (const char* const key : {"greeting", "n", "h"}) EXPECT_TRUE(contains(keys, key));
  server.end();
}

TEST_F(StoreServe, LoadsByThePipeOfRedisCli) {
  SKIP_WITHOUT("redis-cli");
  ServerProcess server(group);
  std::string requests;
  const int count = kSanitized ? 1'000 : 10'000;
  for (int i = 0; i < count; ++i)
    requests += request({"SET", "key" + std::to_string(i), std::string(100, 'v')});
  EXPECT_TRUE(contains(redis_cli(server, {"--pipe"}, requests),
                       "errors: 0, replies: " + std::to_string(count)));
  EXPECT_EQ(redis_cli(server, {"dbsize"}), std::to_string(count) + "\n");
  server.end();
}

TEST_F(StoreServe, AnswersRedisBenchmark) {
  SKIP_WITHOUT("redis-benchmark");
  ServerProcess server(group);
  const std::string count = kSanitized ? "500" : "5000";
  for (const char* const pipeline : {"1", "16"}) {
    const auto outcome =
        dunlin::process::run({.command = {"redis-benchmark", "-p", server.port(), "-n", count, "-P",
                                          pipeline, "-q", "-r", "1000", "--csv", "-t",
                                          "ping_inline,ping_mbulk,set,get,incr,mset,hset"}});
    EXPECT_TRUE(outcome.status.well()) << outcome.output;
    for (const char* const test :
         {"\"PING_INLINE\"", "\"SET\"", "\"GET\"", "\"INCR\"", "\"HSET\"", "\"MSET (10 keys)\""})
      EXPECT_TRUE(contains(outcome.output, test));
    EXPECT_FALSE(contains(outcome.output, "rror")) << outcome.output;
  }
  server.end();
}

TEST_F(StoreServe, AnswersRedisPy) {
  const std::string python = DUNLIN_VENV_PYTHON;
  if (!dunlin::process::run({.command = {python, "-c", "import redis"}}).status.well())
    GTEST_SKIP() << "redis-py is missing (build/venv: redis)";
  ServerProcess server(group);
  const auto outcome =
      dunlin::process::run({.command = {python, DUNLIN_REDIS_PY_TEST, server.port()}});
  EXPECT_TRUE(outcome.status.well()) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "all as expected"));
  server.end();
}

TEST_F(StoreServe, ShowsTheSameKeysAtAllMembers) {
  SKIP_WITHOUT("redis-cli");
  ServerProcess a(group, {"--members", "a,b", "--name", "a"});
  ServerProcess b(group, {"--members", "a,b", "--name", "b"});
  std::string requests;
  std::string words = "get";
  for (int i = 0; i < 200; ++i)
    requests += request({"SET", "key" + std::to_string(i), std::to_string(i)});
  EXPECT_TRUE(contains(redis_cli(a, {"--pipe"}, requests), "errors: 0, replies: 200"));
  for (int i = 0; i < 200; i += 40)
    EXPECT_EQ(redis_cli(b, {"get", "key" + std::to_string(i)}), std::to_string(i) + "\n");
  EXPECT_EQ(redis_cli(b, {"dbsize"}), "200\n");
  Socket both(b.port());
  std::string pipeline;
  std::string replies;
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    pipeline += request({"GET", "key" + number});
    replies += "$" + std::to_string(number.size()) + "\r\n" + number + "\r\n";
  }
  both.send(pipeline);
  EXPECT_EQ(both.receive(replies.size()), replies);
  b.end();
  a.end();
}

TEST_F(StoreServe, ScansAndDumpsTheKeysOfMembersThatAreLeft) {
  SKIP_WITHOUT("redis-cli");
  constexpr int kScanned = 200;
  ServerProcess a(group, {"--members", "a,b,c", "--name", "a"});
  ServerProcess b(group, {"--members", "a,b,c", "--name", "b"});
  ServerProcess c(group, {"--members", "a,b,c", "--name", "c"});
  std::string requests;
  for (int i = 0; i < kScanned; ++i) requests += request({"SET", "key" + std::to_string(i), "v"});
  EXPECT_TRUE(contains(redis_cli(a, {"--pipe"}, requests), "errors: 0, replies: 200"));
  b.kill();
  const auto count = [](const std::string& text, const std::string& what) {
    std::size_t times = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++times;
    return times;
  };
  const std::string scanned = redis_cli(c, {"--scan"});
  const std::size_t left = count(scanned, "key");
  EXPECT_GT(left, 0U) << scanned;
  EXPECT_LT(left, std::size_t{kScanned});
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_store({"dump", "--resp", c.endpoint()}), Status::ok);
  EXPECT_EQ(count(testing::internal::GetCapturedStdout(), "SET"), left);
  c.end();
  a.end();
}

TEST_F(StoreServe, KeepsAllKeysWithTwoCopiesWhenOneFounderAfterTheOtherIsKilled) {
  SKIP_WITHOUT("redis-cli");
  const auto options = [](const std::string& name) {
    return Words{"--members", "a,b,c,d", "--name", name, "--copies", "2"};
  };
  ServerProcess a(group, options("a")), b(group, options("b"));
  ServerProcess c(group, options("c")), d(group, options("d"));
  std::string sets, gets, values;
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    sets += request({"SET", "key" + number, number});
    gets += request({"GET", "key" + number});
    values += "$" + std::to_string(number.size()) + "\r\n" + number + "\r\n";
  }
  EXPECT_TRUE(contains(redis_cli(a, {"--pipe"}, sets), "errors: 0, replies: 200"));
  std::vector<ServerProcess*> left{&a, &d, &c, &b};
  for (int deaths = 1; deaths <= 2; ++deaths) {
    left.back()->kill();
    left.pop_back();
    for (ServerProcess* const one : left) {
      const Socket client(one->port());
      client.send(gets);
      EXPECT_EQ(client.receive(values.size()), values) << "STO-C1: after " << deaths << " deaths";
    }
    // Each knows of the death now, since it has found the keys of the dead one.
    for (ServerProcess* const one : left)
      while (!contains(redis_cli(*one, {"info"}), "copies_complete:1")) ASSERT_FALSE(HasFailure());
  }
  EXPECT_TRUE(contains(redis_cli(d, {"dbsize"}), "200"));
  d.end();
  a.end();
}

TEST_F(StoreServe, AnswersAClientThatSendsNothingMore) {
  ServerProcess server(group);
  const Socket client(server.port());
  std::string requests;
  std::string replies;
  for (int i = 0; i < 1'000; ++i) {
    requests += request({"ECHO", "hello"});
    replies += "$5\r\nhello\r\n";
  }
  client.send(requests);
  client.end();
  EXPECT_EQ(client.receive(), replies);
  server.end();
}

TEST_F(StoreServe, KeepsServingOthersWhileOneTakesNoReplies) {
  ServerProcess server(group);
  const Socket other(server.port());
  other.send(request({"SET", "k", std::string(1'000'000, 'v')}));
  EXPECT_EQ(other.receive(5), "+OK\r\n");
  const Socket deaf(server.port());
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += request({"GET", "k"});
  deaf.send(requests);
  for (int i = 0; i < 10; ++i) {
    other.send(request({"PING"}));
    EXPECT_EQ(other.receive(7), "+PONG\r\n");
  }
  EXPECT_EQ(deaf.receive(100 * (std::size_t{1'000'000} + 12)).size(),
            100 * (std::size_t{1'000'000} + 12));
  server.end();
}

/// What INFO says of `name`; nothing unless the reply has it.
std::string figure_of(const Socket& client, const std::string& name) {
  client.send("INFO\r\n");
  const std::string head = client.receive_line();  // "$" and how many bytes
  const std::string text = client.receive(std::stoul(head.substr(1)) + 2);
  const std::size_t at = text.find("\r\n" + name + ":");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + 3 + name.size();
  return text.substr(begin, text.find('\r', begin) - begin);
}

TEST_F(StoreServe, SleepsWhileNobodyAsks) {
  ServerProcess server(group);
  const Socket client(server.port());
  // Duties wake it every 10 ms. A server that never sleeps again would keep us here for ever.
  const std::string before = figure_of(client, "sleeps");
  ASSERT_NE(before, "");
  while (std::stoull(figure_of(client, "sleeps")) < std::stoull(before) + 10) {
  }
  server.end();
}

TEST_F(StoreServe, OutlivesWhatNoClientWouldSend) {
  ServerProcess server(group);
  for (const std::string bytes : {"*1\r\n:1\r\n", "\xff\xfe\r\n", "*99999999\r\n"}) {
    const Socket client(server.port());
    client.send(bytes);
    EXPECT_TRUE(contains(client.receive(5), "-ERR ")) << bytes;
  }
  {
    const Socket gone(server.port());
    gone.send("*2\r\n$3\r\nGET\r\n$1000\r\nabc");
  }
  const Socket client(server.port());
  client.send("PING\r\n");
  EXPECT_EQ(client.receive(7), "+PONG\r\n");
  server.end();
}

TEST_F(StoreServe, ServesThousandsOfClients) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t wanted = kSanitized ? 1'000 : 10'000;
  if (limit.rlim_max < wanted + 100) GTEST_SKIP() << "the hard limit of descriptors is too low";
  ServerProcess server(group);
  std::vector<std::unique_ptr<Socket>> clients;
  for (std::size_t i = 0; i < wanted; ++i) {
    clients.push_back(std::make_unique<Socket>(server.port()));
    ASSERT_TRUE(clients.back()->connected()) << i;
  }
  for (const auto& client : clients) client->send("INCR n\r\n");
  std::set<std::string> replies;
  for (const auto& client : clients) replies.insert(client->receive_line());
  EXPECT_EQ(replies.size(), wanted);
  for (std::size_t i = 1; i <= wanted; ++i)
    EXPECT_TRUE(replies.contains(":" + std::to_string(i) + "\r\n")) << i;
  server.end();
}

/// From now on the kernel refuses to watch some of this process's descriptors, those from kWatched,
/// and to change how it watches any.
constexpr std::uint32_t kWatched = 64;
void limit_watches() {
  constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | ENOSPC;
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_epoll_ctl, 0, 6),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EPOLL_CTL_MOD, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EPOLL_CTL_ADD, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kWatched, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefused),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    throw dunlin::Error("system calls cannot be refused here");
}

TEST_F(StoreServe, LosesOnlyTheClientsThatTheKernelCannotWatch) {
  dunlin::test::Process attempt([](dunlin::test::Parent&) {
    limit_watches();
    return 0;
  });
  if (attempt.exit_code() != 0) GTEST_SKIP() << "system calls cannot be refused here";
  ServerProcess server(group, {}, limit_watches);
  const Socket first(server.port());
  const Socket deaf(server.port());
  for (const Socket* const client : {&first, &deaf}) {
    client->send("PING\r\n");
    EXPECT_EQ(client->receive(7), "+PONG\r\n");
  }
  std::vector<std::unique_ptr<Socket>> clients;
  std::size_t rejected = 0;
  for (std::uint32_t i = 0; i < kWatched; ++i) {
    clients.push_back(std::make_unique<Socket>(server.port()));
    clients.back()->send("PING\r\n");
    rejected += clients.back()->receive(7) == "+PONG\r\n" ? 0 : 1;
  }
  EXPECT_GT(rejected, 0U);
  EXPECT_LT(rejected, clients.size());
  EXPECT_EQ(figure_of(first, "rejected_connections"), std::to_string(rejected));
  // The kernel would have to say when it can take more.
  for (int i = 0; i < 100; ++i)
    if (!deaf.send(request({"ECHO", std::string(500'000, 'v')}))) break;
  EXPECT_LT(deaf.receive().size(), std::size_t{100} * 500'000);
  first.send("PING\r\n");
  EXPECT_EQ(first.receive(7), "+PONG\r\n");
  server.end();
}

TEST_F(StoreServe, AsksForThePasswordOfItsFile) {
  SKIP_WITHOUT("redis-cli");
  const dunlin::test::OwnDirectory directory;
  const std::string file = directory / "password";
  (void)dunlin::process::run(
      {.command = {"sh", "-c", "umask 077; echo correct-horse-battery > " + file}});
  ServerProcess server(group, {"--password-file", file});
  EXPECT_TRUE(contains(redis_cli(server, {"get", "k"}), "NOAUTH"));
  EXPECT_EQ(
      redis_cli(server, {"--no-auth-warning", "-a", "correct-horse-battery", "set", "k", "v"}),
      "OK\n");
  server.end();
}

TEST_F(StoreServe, IsUsedByTheOtherCommands) {
  const dunlin::test::OwnDirectory directory;
  ServerProcess server(group);
  const std::string resp = server.endpoint();
  EXPECT_EQ(run_store({"put", "--resp", resp, "k", "value"}), Status::ok);
  const Socket client(server.port());
  client.send("HSET h a 1 b 2\r\nSET t soon PX 10000000\r\n");
  EXPECT_EQ(client.receive(9), ":2\r\n+OK\r\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_store({"get", "--resp", resp, "k"}), Status::ok);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "value\n");
  EXPECT_EQ(run_store({"get", "--resp", resp, "none"}), Status::failed);
  const std::string file = directory / "dump";
  EXPECT_EQ(run_store({"dump", "--resp", resp, file}), Status::ok);
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_store({"stats", "--resp", resp}), Status::ok);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStdout(), "keys:3\n"));
  server.end();

  ServerProcess second(dunlin::test::fresh_group());
  EXPECT_EQ(run_store({"load", "--resp", second.endpoint(), file}), Status::ok);
  const Socket again(second.port());
  again.send("GET k\r\nHGET h b\r\nGET t\r\nTTL k\r\n");
  const std::string replies = "$5\r\nvalue\r\n$1\r\n2\r\n$4\r\nsoon\r\n:-1\r\n";
  EXPECT_EQ(again.receive(replies.size()), replies);
  again.send("TTL t\r\n");
  const std::string time_to_live = again.receive_line();
  EXPECT_EQ(time_to_live.front(), ':');
  EXPECT_NE(time_to_live, ":-1\r\n");
  second.end();
}

struct Refusal {
  Words words;
  const char* complaint;
};

TEST_F(StoreServe, IsJoinedByMembersThatComeLater) {
  SKIP_WITHOUT("redis-cli");
  ServerProcess a(group, {"--members", "a,b", "--name", "a", "--most-members", "4"});
  ServerProcess b(group, {"--members", "a,b", "--name", "b", "--most-members", "4"});
  for (const char* const key : {"1", "2", "3", "4"})
    EXPECT_EQ(redis_cli(a, {"set", key, "before"}), "OK\n");
  for (const char* const name : {"c", "d"}) {
    ServerProcess late(group, {"--join", "--name", name, "--most-members", "4"});
    for (const char* const key : {"1", "2", "3", "4"}) {
      EXPECT_EQ(redis_cli(late, {"append", key, name}), *name == 'c' ? "7\n" : "8\n");
      EXPECT_EQ(redis_cli(b, {"get", key}), *name == 'c' ? "beforec\n" : "beforecd\n");
    }
    // The next one to come may be given a higher rank if it meets the death of this one.
    if (*name == 'd')
      late.kill();
    else
      late.end();
  }
  ServerProcess one_too_many(group, {"--join", "--name", "e", "--most-members", "4"});
  one_too_many.receive_line_of("at most 4 are expected");
  EXPECT_EQ(one_too_many.exit_code(), 3);
  EXPECT_EQ(redis_cli(a, {"get", "1"}), "beforecd\n");
  a.end();
  b.end();
}

TEST(StoreCommandLine, RefusesWhatCannotWork) {
  const Refusal refusals[] = {
      {{"serve", "--resp", "127.0.0.1"}, "--resp \"127.0.0.1\": there is no port"},
      {{"serve", "--resp", "127.0.0.1:http"}, "the port is none"},
      {{"serve", "--resp", "store:6390"}, "the address is none"},
      {{"serve", "--resp", "0.0.0.0:0"}, "give --password-file"},
      {{"serve", "--resp", "[::]:0"}, "give --password-file"},
      {{"serve", "--password-file", "/none"}, "--password-file"},
      {{"serve", "--members", "a,b"}, "--name"},
      {{"serve", "--join"}, "--name"},
      {{"serve", "--join", "--members", "a,b", "--name", "a"}, "a joiner is no founder"},
      {{"serve", "--most-members", "0"}, "must be a number of members"},
      {{"serve", "--memory", "0"}, "must be a number of megabytes"},
      {{"serve", "--fabric", "sim"}, "--fabric sim"},
      {{"load", "/none"}, "\"/none\": "},
      {{"get"}, "KEY is required"},
  };
  for (const Refusal& refusal : refusals) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_store(refusal.words), Status::bad_input) << refusal.complaint;
    EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), refusal.complaint));
  }
}

}  // namespace
