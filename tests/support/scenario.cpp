#include "support/scenario.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <gtest/gtest.h>

namespace dunlin::test {
namespace {

constexpr const char* kSeparator = "----";

/// Lines from one place to the next empty line, and where that is.
struct Block {
  std::vector<std::string> commands;  // comments, too
  std::string output;
  std::size_t line;  // the number of the first line
};

std::vector<Block> read_blocks(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<Block> blocks;
  bool inside = false;
  bool in_output = false;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) {
      inside = in_output = false;
      continue;
    }
    if (!inside) blocks.push_back({.commands = {}, .output = {}, .line = number});
    inside = true;
    if (line == kSeparator)
      in_output = true;
    else if (in_output)
      blocks.back().output += line + "\n";
    else
      blocks.back().commands.push_back(line);
  }
  return blocks;
}

Command words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string execute_all(const Block& block, const Execute& execute) {
  std::string output;
  for (const std::string& line : block.commands) {
    if (line.starts_with('#')) continue;
    try {
      output += execute(words_of(line));
    } catch (const std::exception& error) {
      output += "cannot do '" + line + "': " + error.what() + "\n";
    }
  }
  return output;
}

void write(const std::filesystem::path& file, const std::vector<Block>& blocks) {
  std::ofstream out(file);
  for (const Block& block : blocks) {
    if (&block != &blocks.front()) out << "\n";
    for (const std::string& line : block.commands) out << line << "\n";
    if (!block.output.empty()) out << kSeparator << "\n" << block.output;
  }
}

}  // namespace

void run_scenarios(const std::string& folder, const std::function<Execute()>& make) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::ranges::sort(files);
  ASSERT_FALSE(files.empty()) << "there are no scenarios in " << folder;
  for (const std::filesystem::path& file : files) {
    std::vector<Block> blocks = read_blocks(file);
    const Execute execute = make();
    for (Block& block : blocks) {
      const std::string output = execute_all(block, execute);
      if (std::getenv("DUNLIN_REWRITE_SCENARIOS") == nullptr) {
        EXPECT_EQ(output, block.output)
            << file.string() << ":" << block.line
            << ": the output differs; if it is right, set DUNLIN_REWRITE_SCENARIOS=1";
      }
      block.output = output;
    }
    if (std::getenv("DUNLIN_REWRITE_SCENARIOS") != nullptr) write(file, blocks);
  }
}

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace dunlin::test
