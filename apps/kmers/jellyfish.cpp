#include "kmers/jellyfish.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "kmers/found.hpp"
#include "process/program.hpp"

namespace dunlin::kmers {
namespace {

/// The k-mers of a dump, in the order of the alphabet.
std::vector<FoundKmer> kmers_of(const std::string& file, std::uint32_t k) {
  std::ifstream in(file);
  if (!in) throw Error("'" + file + "' cannot be read");
  std::vector<FoundKmer> all;
  std::string word;
  for (FoundKmer found{}; in >> word >> found.count; all.push_back(found)) {
    found.kmer = 0;
    for (const char c : word) found.kmer = found.kmer << 2 | base_of(c);
    if (text_of(found.kmer, k) != word) throw Error("'" + word + "' of Jellyfish is no k-mer");
  }
  if (!in.eof()) throw Error("'" + file + "' is no dump of k-mers and counts");
  std::ranges::sort(all, {}, &FoundKmer::kmer);
  return all;
}

process::Outcome run(std::vector<std::string> command, std::uint64_t timeout_s) {
  const std::string name = command.at(0) + " " + command.at(1);
  process::Outcome outcome =
      process::run({.command = std::move(command), .timeout = std::chrono::seconds(timeout_s)});
  if (!outcome.status.well())
    throw Error(name + " " + outcome.status.text() + ": " + outcome.output);
  return outcome;
}

std::string in_shell_quotes(const std::string& path) {
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void compare(const CountOptions& options, const std::vector<FoundKmer>& theirs,
             Comparison& result) {
  const auto differ = [&](Kmer kmer, std::uint64_t here, std::uint64_t there) {
    if (result.differences++ == 0)
      result.first = fmt::format("{} occurs {} times here, and {} times for Jellyfish",
                                 text_of(kmer, options.k), here, there);
  };
  FoundFile ours(options.counts_file);
  auto there = theirs.begin();
  for (FoundKmer here{}; ours.next(here);) {
    for (; there != theirs.end() && there->kmer < here.kmer; ++there)
      differ(there->kmer, 0, there->count);
    const bool has = there != theirs.end() && there->kmer == here.kmer;
    const std::uint64_t count = has ? there++->count : 0;
    count == here.count ? void(++result.kmers) : differ(here.kmer, here.count, count);
  }
  for (; there != theirs.end(); ++there) differ(there->kmer, 0, there->count);
}

}  // namespace

Comparison compare_with_jellyfish(const CountOptions& options, const Counted& counted) {
  if (!process::program_exists("jellyfish"))
    throw app::BadInput(
        "--jellyfish: there is no jellyfish; Debian has it in a package of that name");
  // It reads no compressed files, but what commands write.
  const std::string generators = options.folder + "/generators",
                    filter = options.folder + "/filter.bc", table = options.folder + "/table.jf",
                    dump = options.folder + "/jellyfish";
  {
    std::ofstream out(generators);
    for (const Input& file : options.files)
      out << "gzip -cdf " << in_shell_quotes(std::filesystem::absolute(file.path)) << '\n';
    out.flush();
    if (!out) throw Error("'" + generators + "' cannot be written");
  }
  Comparison result;
  const auto timed = [&](std::vector<std::string> command, const std::vector<std::string>& more) {
    for (const std::string& word :
         {std::string("-C"), std::string("-m"), fmt::format("{}", options.k), std::string("-t"),
          fmt::format("{}", options.processes), std::string("-g"), generators})
      command.push_back(word);
    command.insert(command.end(), more.begin(), more.end());
    const auto start = std::chrono::steady_clock::now();
    const process::Outcome outcome = run(std::move(command), options.timeout_s);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result.count_s += seconds.count();
    result.peak_bytes = std::max(result.peak_bytes, outcome.peak_bytes);
  };
  // It is told how large its table and its filter have to be, which it cannot know before.
  const std::string kmers = fmt::format("{}", std::max<std::uint64_t>(counted.kmers(), 1)),
                    distinct = fmt::format("{}", counted.different() * 5 / 4 + 1);
  if (options.filter) timed({"jellyfish", "bc"}, {"-s", kmers, "-o", filter});
  std::vector<std::string> more{"-s", distinct, "-o", table};
  if (options.filter) more.insert(more.end(), {"--bc", filter});
  timed({"jellyfish", "count"}, more);
  run({"jellyfish", "dump", "-c", "-L", options.filter ? "2" : "1", "-o", dump, table},
      options.timeout_s);
  compare(options, kmers_of(dump, options.k), result);
  return result;
}

}  // namespace dunlin::kmers
