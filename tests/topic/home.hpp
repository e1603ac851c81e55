#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dunlin/join.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/run.hpp>

#include "command.hpp"
#include "support/fresh_group.hpp"
#include "support/process.hpp"

namespace dunlin::test {

using Words = std::vector<std::string>;

inline app::Status run_command(const Words& words) {
  std::vector<const char*> all{"dunlin"};
  for (const std::string& word : words) all.push_back(word.c_str());
  return app::run(static_cast<int>(all.size()), all.data());
}

/// The command in a process whose output is its parent's line.
inline Process start(const Words& words) {
  return Process([words](Parent& parent) {
    for (const int number : {STDOUT_FILENO, STDERR_FILENO}) dup2(parent.descriptor(), number);
    return static_cast<int>(run_command(words));
  });
}

inline std::string output_of(const Words& words) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_command(words), app::Status::ok);
  return testing::internal::GetCapturedStdout();
}

/// A member of a group that others can join.
struct Home {
  explicit Home(pubsub::ParticipantOptions options = {}) : participant(group, std::move(options)) {}

  std::string name = fresh_group();
  std::unique_ptr<Fabric> fabric = join({.group = name, .names = {"a"}, .name = "a"});
  Group group = Group(*fabric, {.rendezvous = make_rendezvous({.group = name})});
  pubsub::DomainParticipant participant;

  bool until(const std::function<bool()>& condition) {
    return run_until(participant, condition, 60'000);
  }
  /// A word of the command, then its place in this group.
  [[nodiscard]] Words words(Words first, const std::string& member = "tool") const {
    const Words place{"--group", name, "--join", "--name", member};
    first.insert(first.end(), place.begin(), place.end());
    return first;
  }
  /// Polls until the command has printed this, or has ended; returns what it has printed.
  std::string& hear(Process& process, const std::string& awaited) {
    std::string& heard = heard_[process.pid()];
    EXPECT_TRUE(until([&] {
      std::array<char, 512> part;
      const ssize_t got = recv(process.descriptor(), part.data(), part.size(), MSG_DONTWAIT);
      if (got > 0) heard.append(part.data(), static_cast<std::size_t>(got));
      return got == 0 || (!awaited.empty() && heard.find(awaited) != std::string::npos);
    })) << heard;
    return heard;
  }
  /// Polls until it has ended; returns its exit code.
  int await(Process& process) {
    hear(process, "");
    return process.exit_code();
  }

 private:
  std::map<pid_t, std::string> heard_;
};

}  // namespace dunlin::test
