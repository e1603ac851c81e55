#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "command.hpp"
#include "support/errors.hpp"
#include "support/process.hpp"

/// Members of `dunlin multicast`, each a process.
namespace dunlin::test {

using Words = std::vector<std::string>;

inline app::Status run_multicast(const Words& words) {
  std::vector<const char*> all{"dunlin", "multicast"};
  for (const std::string& word : words) all.push_back(word.c_str());
  return app::run(static_cast<int>(all.size()), all.data());
}

/// What it prints, and complains of, is heard; what it is told are lines for it.
struct Member : Process {
  /// `first` is called in its process, before anything else.
  explicit Member(
      const Words& words, const std::function<void()>& first = [] {})
      : Process([=](Parent& parent) {
          first();
          for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            dup2(parent.descriptor(), number);
          return static_cast<int>(run_multicast(words));
        }) {}

  /// The next line that has these words; keeps the digests that come before it.
  std::string receive_line_of(const std::string& words) {
    std::string line, last;
    do {
      last = std::exchange(line, receive_line());
      const std::size_t at = line.find(": digest ");
      if (at != std::string::npos) keep(line.substr(at + 9));
    } while (!line.empty() && !contains(line, words));
    EXPECT_FALSE(line.empty()) << "it ended without a word of: " << words << "\nand with: " << last;
    return line;
  }
  std::map<std::uint64_t, std::string> digests;  // by count of messages

 private:
  void keep(const std::string& text) {
    digests[std::stoull(text)] = text.substr(text.find(' ') + 1);
  }
};

/// Counts at which both have a digest; fails where these differ.
inline std::size_t compare(const Member& one, const Member& other) {
  std::size_t both = 0;
  for (const auto& [count, digest] : one.digests) {
    const auto found = other.digests.find(count);
    if (found == other.digests.end()) continue;
    EXPECT_EQ(found->second, digest) << "after " << count << " messages";
    ++both;
  }
  return both;
}

/// Three members; the leader is killed, another one comes in, and all leave. Those who are left
/// agree on the order throughout. `founder` and `comer` start a member of that name.
inline void expect_equal_digests(const std::function<Member(const std::string& name)>& founder,
                                 const std::function<Member(const std::string& name)>& comer) {
  Member a = founder("a");
  Member b = founder("b");
  Member c = founder("c");
  for (Member* const member : {&a, &b, &c}) {
    member->receive_line_of("view 1: a, b, c");
    member->receive_line_of("digest 2000 ");
  }
  EXPECT_EQ(compare(a, b), 4U);
  EXPECT_EQ(compare(a, c), 4U);
  a.kill();
  for (Member* const member : {&b, &c}) member->receive_line_of("view 2: b, c; without a");
  Member d = comer("d");
  d.receive_line_of("view 3: b, c, d; with d");
  const std::string place = d.receive_line_of("comes in behind ");
  EXPECT_TRUE(contains(place, " messages, digest ")) << place;
  for (int i = 0; i < 4; ++i) d.receive_line_of("digest ");
  for (Member* const member : {&b, &c}) {
    member->receive_line_of("digest " + std::to_string(d.digests.rbegin()->first) + " ");
    EXPECT_GE(compare(*member, d), 4U);
  }
  EXPECT_GE(compare(b, c), 8U);
  for (Member* const member : {&d, &b, &c}) {
    member->signal(SIGTERM);
    member->receive_line_of("leaves behind ");
    EXPECT_EQ(member->exit_code(), 0);
  }
}

}  // namespace dunlin::test
