#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "command.hpp"
#include "process/program.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/process.hpp"

namespace dunlin::test {

using Words = std::vector<std::string>;

inline app::Status run_store(const Words& words) {
  std::vector<const char*> all{"dunlin", "store"};
  for (const std::string& word : words) all.push_back(word.c_str());
  return app::run(static_cast<int>(all.size()), all.data());
}

/// A process of `dunlin store serve`, at a port that the kernel has chosen.
struct ServerProcess : Process {
  /// `first` is done in the process before it serves.
  explicit ServerProcess(
      const std::string& group, const Words& more = {}, const std::function<void()>& first = [] {})
      : Process([=](Parent& parent) {
          first();
          for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            dup2(parent.descriptor(), number);
          Words words{"serve", "--group", group, "--resp", "127.0.0.1:0", "--silence-timeout", "0"};
          words.insert(words.end(), more.begin(), more.end());
          return static_cast<int>(run_store(words));
        }) {}

  /// Waits until it serves.
  const std::string& port() {
    if (!port_.empty()) return port_;
    const std::string line = receive_line_of("serves Redis clients at ");
    const std::size_t colon = line.find(':', line.find(" at "));
    port_ = line.substr(colon + 1, line.find(',') - colon - 1);
    return port_;
  }
  std::string endpoint() { return "127.0.0.1:" + port(); }

  std::string receive_line_of(const std::string& words) {
    std::string line;
    do line = receive_line();
    while (!line.empty() && !contains(line, words));
    EXPECT_FALSE(line.empty()) << "it ended without a word of: " << words;
    return line;
  }
  /// Expects that it ends well.
  void end() {
    signal(SIGTERM);
    EXPECT_TRUE(contains(receive_line_of("ends because of "), "SIGTERM"));
    EXPECT_EQ(exit_code(), 0);
  }

 private:
  std::string port_;
};

/// What redis-cli prints.
inline std::string redis_cli(ServerProcess& server, const Words& more,
                             const std::string& input = {}) {
  Words words{"redis-cli", "-p", server.port()};
  words.insert(words.end(), more.begin(), more.end());
  return process::run({.command = words, .input = input}).output;
}

}  // namespace dunlin::test
