#include "kmers/jellyfish.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "process/program.hpp"

namespace dunlin::kmers {
namespace {

using Line = std::pair<std::string, std::uint64_t>;

std::vector<Line> lines_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error("'" + file + "' cannot be read");
  std::vector<Line> lines;
  std::string word;
  while (in.peek() == '#') std::getline(in, word);
  for (std::uint64_t count = 0; in >> word >> count;) lines.emplace_back(word, count);
  if (!in.eof()) throw Error("'" + file + "' is no dump of k-mers and counts");
  std::ranges::sort(lines);
  return lines;
}

void run(std::vector<std::string> command, std::uint64_t timeout_s) {
  const std::string name = command.at(0) + " " + command.at(1);
  const process::Outcome outcome =
      process::run({.command = std::move(command), .timeout = std::chrono::seconds(timeout_s)});
  if (!outcome.status.well())
    throw Error(name + " " + outcome.status.text() + ": " + outcome.output);
}

std::string in_shell_quotes(const std::string& path) {
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void compare(const std::vector<Line>& ours, const std::vector<Line>& theirs, Comparison& result) {
  const auto differ = [&](const std::string& kmer, std::uint64_t here, std::uint64_t there) {
    if (result.differences++ == 0)
      result.first =
          fmt::format("{} occurs {} times here, and {} times for Jellyfish", kmer, here, there);
  };
  std::size_t i = 0, j = 0;
  while (i < ours.size() || j < theirs.size()) {
    if (j == theirs.size() || (i < ours.size() && ours[i].first < theirs[j].first)) {
      differ(ours[i].first, ours[i].second, 0);
      ++i;
    } else if (i == ours.size() || theirs[j].first < ours[i].first) {
      differ(theirs[j].first, 0, theirs[j].second);
      ++j;
    } else {
      if (ours[i].second == theirs[j].second) {
        ++result.kmers;
      } else {
        differ(ours[i].first, ours[i].second, theirs[j].second);
      }
      ++i, ++j;
    }
  }
}

}  // namespace

Comparison compare_with_jellyfish(const CountOptions& options, const std::string& folder) {
  if (!process::program_exists("jellyfish"))
    throw app::BadInput(
        "--jellyfish: there is no jellyfish; Debian has it in a package of that name");
  // It reads no compressed files, but what commands write.
  const std::string generators = folder + "/generators", table = folder + "/table.jf",
                    dump = folder + "/jellyfish";
  {
    std::ofstream out(generators);
    for (const Input& file : options.files)
      out << "gzip -cdf " << in_shell_quotes(std::filesystem::absolute(file.path)) << '\n';
    out.flush();
    if (!out) throw Error("'" + generators + "' cannot be written");
  }
  std::uint64_t hash_size = 100'000;
  for (const Input& file : options.files) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file.path, error);
    if (!error) hash_size += bytes * (is_packed(file.path) ? 5 : 1);
  }
  Comparison result;
  const auto start = std::chrono::steady_clock::now();
  run({"jellyfish", "count", "-C", "-m", fmt::format("{}", options.k), "-s",
       fmt::format("{}", hash_size), "-t", fmt::format("{}", options.processes), "-g", generators,
       "-o", table},
      options.timeout_s);
  result.count_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run({"jellyfish", "dump", "-c", "-L", options.filter ? "2" : "1", "-o", dump, table},
      options.timeout_s);
  compare(lines_of(options.dump_file), lines_of(dump), result);
  return result;
}

}  // namespace dunlin::kmers
