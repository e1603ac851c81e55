#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fabric/system.hpp"
#include "store/request_parser.hpp"
#include "store_command/conversation.hpp"
#include "store_command/server_process.hpp"

/// `dunlin store dump` of keys that change while it reads them.
namespace {

using dunlin::app::Status;
using dunlin::app::resp::RequestParser;
using dunlin::test::contains;
using dunlin::test::request;
using dunlin::test::run_store;

/// A server that has all its replies ready, whatever its one client asks for.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::string replies) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), raw, bytes), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), raw, &bytes), 0);
    endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::jthread([this, replies = std::move(replies)] { reply(replies); });
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() { shutdown(listener_.get(), SHUT_RDWR); }  // if nobody came

  [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }

 private:
  void reply(const std::string& replies) const {
    const dunlin::Descriptor client(accept(listener_.get(), nullptr, nullptr));
    std::size_t sent = 0;
    while (sent < replies.size()) {
      const ssize_t count =
          send(client.get(), replies.data() + sent, replies.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
    char byte = 0;
    while (recv(client.get(), &byte, 1, 0) > 0) {
    }
  }

  dunlin::Descriptor listener_;
  std::string endpoint_;
  std::jthread thread_;
};

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

/// What DBSIZE and SCAN say of these keys.
std::string keys_reply(const std::vector<std::string>& keys) {
  const std::string count = std::to_string(keys.size());
  std::string text = ":" + count + "\r\n*2\r\n$1\r\n0\r\n*" + count + "\r\n";
  for (const std::string& key : keys) text += bulk(key);
  return text;
}

struct Dumped {
  std::string requests;
  std::string complaint;
};

Dumped dump(const std::string& replies) {
  const ScriptedServer server(replies);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_store({"dump", "--resp", server.endpoint()}), Status::ok);
  Dumped dumped;
  dumped.requests = testing::internal::GetCapturedStdout();
  dumped.complaint = testing::internal::GetCapturedStderr();
  return dumped;
}

TEST(StoreDump, LeavesOutKeysThatExpireWhileItReadsThem) {
  const Dumped dumped =
      dump(keys_reply({"gone", "stays", "hash"}) + "+string\r\n+string\r\n+hash\r\n" + bulk("v") +
           ":-2\r\n" + bulk("v") + ":5\r\n" + "*2\r\n" + bulk("f") + bulk("v") + ":-2\r\n");
  EXPECT_EQ(dumped.requests, request({"SET", "stays", "v", "PX", "5"}));
  EXPECT_EQ(dumped.complaint, "");
}

TEST(StoreDump, WritesSortedSets) {
  const Dumped dumped = dump(keys_reply({"z"}) + "+zset\r\n*4\r\n" + bulk("low") + bulk("-0.5") +
                             bulk("high") + bulk("inf") + ":-1\r\n");
  EXPECT_EQ(dumped.requests,
            request({"DEL", "z"}) + request({"ZADD", "z", "-0.5", "low", "inf", "high"}));
}

TEST(StoreDump, PassesOverKeysThatChangeTheirTypeWhileItReadsThem) {
  const Dumped dumped = dump(keys_reply({"a", "b", "c", "d"}) +
                             "+string\r\n+hash\r\n+string\r\n-CLUSTERDOWN failed\r\n" +
                             "-WRONGTYPE a hash\r\n:-1\r\n-WRONGTYPE a string\r\n:-1\r\n" +
                             bulk("v") + ":-1\r\n-CLUSTERDOWN failed\r\n-CLUSTERDOWN failed\r\n");
  EXPECT_EQ(dumped.requests, request({"SET", "c", "v"}));
  EXPECT_TRUE(contains(dumped.complaint, "or changed their type meanwhile: 2\n"));
  EXPECT_TRUE(contains(dumped.complaint, "as their members have failed: 1\n"));
}

TEST(StoreDump, EndsWithAnyOtherError) {
  const ScriptedServer server(keys_reply({"a"}) + "+string\r\n-ERR no member\r\n:-1\r\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_store({"dump", "--resp", server.endpoint()}), Status::could_not_run);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "the server says: ERR no member"));
}

TEST(StoreDump, WritesHashesThatLoadTakesWhateverTheirSize) {
  constexpr std::size_t kFields = 40'000;
  std::string fields = "*" + std::to_string(2 * kFields) + "\r\n";
  for (std::size_t i = 0; i < kFields; ++i) fields += bulk(std::to_string(i)) + bulk("v");
  const Dumped dumped = dump(keys_reply({"h"}) + "+hash\r\n" + fields + ":1000\r\n");
  RequestParser parser;
  std::string_view rest = dumped.requests;
  std::size_t fields_set = 0;
  std::vector<std::string> names;
  for (; !rest.empty(); rest.remove_prefix(parser.bytes()), parser.next()) {
    ASSERT_EQ(parser.parse(rest), RequestParser::Parsed::request) << parser.mistake();
    names.emplace_back(parser.arguments()[0]);
    if (names.back() == "HSET") fields_set += (parser.arguments().size() - 2) / 2;
  }
  EXPECT_EQ(fields_set, kFields);
  EXPECT_EQ(names.front(), "DEL") << "of what the key held before";
  EXPECT_EQ(std::ranges::count(names, "HSET"), 40);
  EXPECT_EQ(names.back(), "PEXPIRE");
}

}  // namespace
