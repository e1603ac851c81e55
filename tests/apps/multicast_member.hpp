#pragma once

#include <map>
#include <string>
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
  explicit Member(const Words& words)
      : Process([words](Parent& parent) {
          for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            dup2(parent.descriptor(), number);
          return static_cast<int>(run_multicast(words));
        }) {}

  /// The next line that has these words; keeps the digests that come before it.
  std::string hear_of(const std::string& words) {
    std::string line;
    do {
      line = hear();
      const std::size_t at = line.find(": digest ");
      if (at != std::string::npos) keep(line.substr(at + 9));
    } while (!line.empty() && !contains(line, words));
    EXPECT_FALSE(line.empty()) << "it ended without a word of: " << words;
    return line;
  }
  std::map<std::string, std::string> digests;  // by count

 private:
  void keep(const std::string& text) {
    digests[text.substr(0, text.find(' '))] = text.substr(text.find(' ') + 1);
  }
};

}  // namespace dunlin::test
