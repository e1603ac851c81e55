#pragma once

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dunlin/join.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/run.hpp>

#include "command.hpp"
#include "support/fresh_group.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"

namespace dunlin::test {

using Words = std::vector<std::string>;

struct Ship {
  std::string name = {};
  std::int32_t x = 0;
  std::int32_t y = 0;
  using TopicKey = pubsub::KeyOf<&Ship::name>;
};

inline app::Status run_command(const Words& words) {
  std::vector<const char*> all{"dunlin"};
  for (const std::string& word : words) all.push_back(word.c_str());
  return app::run(static_cast<int>(all.size()), all.data());
}

/// A member of a group, a DDS domain of its own on loopback, gateways between them, and programs
/// that know DDS alone.
class GatewayHouse : public testing::Test {
 protected:
  static constexpr std::uint32_t kSliceMs = 2;
  static constexpr std::uint64_t kPatienceNs = 60'000'000'000;

  GatewayHouse() {
    // No other test's participants have the tag; each takes a free port.
    const std::string uri =
        "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"lo\"/>"
        "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><Tag>" +
        group_name +
        "</Tag><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>40"
        "</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>"
        "</Domain></CycloneDDS>";
    setenv("CYCLONEDDS_URI", uri.c_str(), 1);
  }

  static bool has_python_peer() {
    std::error_code none;
    for (const auto& one : std::filesystem::directory_iterator(DUNLIN_VENV "/lib", none))
      if (std::filesystem::exists(one.path() / "site-packages/cyclonedds/__init__.py")) return true;
    return false;
  }

  bool until(const std::function<bool()>& condition) {
    // In slices, as what other processes print wakes no member.
    const std::uint64_t begin_ns = fabric->now_ns();
    while (!run_until(participant, condition, kSliceMs))
      if (fabric->now_ns() - begin_ns > kPatienceNs) return false;
    return true;
  }
  template <class T>
  void write(pubsub::DataWriter<T>& writer, const T& sample) {
    ASSERT_TRUE(until([&] { return writer.write(sample) == pubsub::WriteResult::written; }));
  }

  /// The command, as a member of the group that others know by that name; ready to carry so many
  /// topics.
  Process start_gateway(const std::string& name, Words more, std::size_t topics = 1) {
    Words words{"gateway", "--group",  group_name, "--join",    "--name",
                name,      "--domain", domain,     "--network", "dds"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.begin(), DUNLIN_PROGRAM);
    Process gateway = start_program(words);
    for (std::size_t i = 0; i < topics; ++i) hear(gateway, "carries topic");
    return gateway;
  }
  Process start_program(Words words) {
    return Process([words = std::move(words)](Parent& parent) {
      for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        dup2(parent.descriptor(), number);
      std::vector<char*> all;
      for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
      all.push_back(nullptr);
      execv(all[0], all.data());
      return 127;
    });
  }
  /// dds_peer.py with these arguments behind the domain, when it listens.
  Process start_peer(const Words& arguments) {
    Words words{DUNLIN_VENV "/bin/python3", DUNLIN_DDS_PEER, domain};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Process peer = start_program(words);
    hear(peer, "ready");
    return peer;
  }
  /// Tells it to read or to write, and returns when it has found the equal of each gateway.
  void begin(Process& peer, const Words& commands, int gateways = 1) {
    for (const std::string& command : commands) peer.send_line(command);
    peer.send_line("matched " + std::to_string(gateways));
    hear(peer, "matched");
  }

  /// The next line it prints; empty if it has ended.
  std::string next_line(Process& process) {
    std::string& heard = heard_[process.pid()];
    std::size_t end = heard.find('\n');
    EXPECT_TRUE(until([&] {
      if ((end = heard.find('\n')) != std::string::npos) return true;
      std::array<char, 4'096> part;
      const ssize_t got = recv(process.descriptor(), part.data(), part.size(), MSG_DONTWAIT);
      if (got > 0) heard.append(part.data(), static_cast<std::size_t>(got));
      return got == 0;
    })) << "it has printed "
        << heard;
    if (end == std::string::npos) return std::exchange(heard, {});
    std::string line = heard.substr(0, end);
    heard.erase(0, end + 1);
    return line;
  }
  /// The first of its next lines that has this; fails if it ends before.
  std::string hear(Process& process, const std::string& awaited) {
    std::string all;
    for (std::string line = next_line(process); !line.empty(); line = next_line(process)) {
      if (line.find(awaited) != std::string::npos) return line;
      all += line + "\n";
    }
    ADD_FAILURE() << "'" << awaited << "' was not heard, but\n" << all;
    return {};
  }
  /// A signal ends it well.
  void end(Process& gateway) {
    gateway.signal(SIGTERM);
    hear(gateway, "ends because of SIGTERM");
    ASSERT_TRUE(until([&] {
      std::array<char, 512> part;
      const ssize_t got = recv(gateway.descriptor(), part.data(), part.size(), MSG_DONTWAIT);
      if (got > 0) heard_[gateway.pid()].append(part.data(), static_cast<std::size_t>(got));
      return got == 0;
    }));
    EXPECT_EQ(gateway.exit_code(), 0) << heard_[gateway.pid()];
  }
  /// Topic "ships", with the policies that the group has.
  Words ships() {
    return {"--config", write_config(R"({"topics": [{"topic": "ships", "dds_type": "Ship"}]})")};
  }
  std::string write_config(const std::string& json) {
    std::ofstream(directory / "topics.json") << json;
    return directory / "topics.json";
  }

  std::string group_name = fresh_group();
  std::string domain = std::to_string(getpid() % 200 + 20);
  OwnDirectory directory;
  std::unique_ptr<Fabric> fabric = join({.group = group_name, .names = {"a"}, .name = "a"});
  Group group = Group(*fabric, {.rendezvous = make_rendezvous({.group = group_name})});
  pubsub::DomainParticipant participant = pubsub::DomainParticipant(group);

 private:
  std::map<pid_t, std::string> heard_;
};

/// With dds_peer.py.
class Gateway : public GatewayHouse {
 protected:
  void SetUp() override {
    if (!has_python_peer()) GTEST_SKIP() << "cyclonedds is missing (build/venv: cyclonedds)";
  }
};

inline pubsub::DataReaderQos everything() {
  pubsub::DataReaderQos qos;
  qos << pubsub::Reliability::reliable() << pubsub::History::keep_all();
  return qos;
}

}  // namespace dunlin::test
