#include "command.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/container/limits.hpp>

#include "kmers/count.hpp"
#include "kmers/found.hpp"
#include "kmers/jellyfish.hpp"
#include "kmers/report.hpp"
#include "output_file.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kDescription =
    "Count the k-mers of sequencing reads by several processes, in a map that is spread over them.";

constexpr const char* kFooter = R"(
Reads are FASTA or FASTQ, compressed by gzip or not, in files or pipes. A pipe is first copied to a
file in the folder that TMPDIR names, or in /tmp. A k-mer and its reverse complement are counted
as one. While the files are read, Bloom filters keep apart most k-mers that occur once; then the
others are counted exactly, and those that occur twice or more are reported. --all also reports
those that occur once.

Styles: one_sided works on the memory of other members; message brings k-mers to the members that
hold them, in batches; automatic measures the fabric and takes what is cheaper.

Several hosts: the same command on each, with --host from 0 on; each has the files, of which it reads
some, and host 0 prints, writes and compares.

Exit status: 0 counted, and --jellyfish has the same; 1 it differs; 2 wrong input, or reads that are
none; 3 it could not run.

Examples:
  dunlin kmers reads.fq.gz
  xzcat reads.fq.xz | dunlin kmers /dev/stdin
  dunlin kmers -k 31 --processes 4 --all --dump counts.txt genome.fa
  dunlin kmers reads.fa.gz --jellyfish --report run.html)";

constexpr std::uint64_t kMostRounds = 1024;

struct Options {
  kmers::CountOptions count;
  std::vector<std::string> files;
  std::uint64_t k = 21;
  std::uint64_t processes = 2;
  std::uint64_t rounds = kmers::CountOptions().rounds;
  bool all = false;
  bool jellyfish = false;
  std::string style = "automatic";
  std::string dump_file;
  std::string histogram_file;
  std::string report_file;
};

/// A folder that is not there any more once this is gone.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dunlin-kmers-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error("no folder can be made in '" + std::filesystem::temp_directory_path().string() +
                  "'");
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;  // the system clears the folder of temporary files
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

Style style_of(const std::string& name) {
  for (const Style style : {Style::automatic, Style::one_sided, Style::message})
    if (name_of(style) == name) return style;
  throw BadInput(fmt::format("--style {}: automatic, one_sided or message", in_quotes(name)));
}

kmers::CountOptions checked(const Options& options) {
  kmers::CountOptions count = options.count;
  if (options.k < 1 || options.k > kmers::kMaxK)
    throw BadInput(fmt::format("-k {}: 1 to {}", options.k, kmers::kMaxK));
  if (options.processes < 1 || options.processes > 64)
    throw BadInput(fmt::format("--processes {}: 1 to 64", options.processes));
  if (options.rounds < 1 || options.rounds > kMostRounds)
    throw BadInput(fmt::format("--rounds {}: 1 to {}", options.rounds, kMostRounds));
  if (count.slots > kMaxSlots)
    throw BadInput(fmt::format("--slots {}: at most {} (kMaxSlots)", count.slots, kMaxSlots));
  if (count.fabric.network == "sim")
    throw BadInput("--fabric sim: reads are counted by real processes");
  std::vector<NamedFile> read, written;
  for (const std::string& file : options.files) read.push_back({"FILE", file});
  if (!options.dump_file.empty()) written.push_back({"--dump", options.dump_file});
  if (!options.histogram_file.empty()) written.push_back({"--histogram", options.histogram_file});
  if (!options.report_file.empty()) written.push_back({"--report", options.report_file});
  demand_distinct(written, read);
  for (const NamedFile& file : written) demand_writable(file);
  count.k = static_cast<std::uint32_t>(options.k);
  count.processes = static_cast<std::uint32_t>(options.processes);
  count.rounds = static_cast<std::uint32_t>(options.rounds);
  count.filter = !options.all;
  count.style = style_of(options.style);
  count.shows_progress = isatty(STDERR_FILENO) == 1;
  return count;
}

std::string histogram_text(const kmers::Counted& counted) {
  std::string text;
  for (const auto& [count, kmers] : counted.histogram) text += fmt::format("{} {}\n", count, kmers);
  return text;
}

void write_dump(const kmers::CountOptions& count, const std::string& to) {
  std::ofstream out(to);
  kmers::FoundFile file(count.counts_file);
  for (kmers::FoundKmer found{}; file.next(found);)
    out << kmers::text_of(found.kmer, count.k) << ' ' << found.count << '\n';
  out.flush();
  if (!out) throw Error("'" + to + "' cannot be written");
}

void run_kmers(const Options& options) {
  kmers::CountOptions count = checked(options);
  const ScratchFolder scratch;
  count.files = kmers::inputs_of(options.files, scratch.path());
  count.folder = scratch.path();
  count.counts_file = scratch.path() + "/counts";
  const kmers::Counted counted = kmers::count(count);
  if (counted.members.empty()) return say("This host has done its part; host 0 has the counts.\n");
  std::optional<kmers::Comparison> comparison;
  if (options.jellyfish) comparison = kmers::compare_with_jellyfish(count, counted);
  say(kmers::text_report(count, counted, comparison));
  if (!options.dump_file.empty()) write_dump(count, options.dump_file);
  if (!options.histogram_file.empty()) write_file(options.histogram_file, histogram_text(counted));
  if (!options.report_file.empty())
    write_file(options.report_file, kmers::html_report(count, counted, comparison));
  if (comparison && comparison->differences > 0)
    throw VerificationFailed("the counts are not those of Jellyfish");
}

}  // namespace

void add_kmers(CLI::App& program) {
  CLI::App* command = program.add_subcommand("kmers", kDescription);
  command->footer(kFooter);
  const auto options = std::make_shared<Options>();
  add_text(*command, "FILE", options->files, "", "Reads")->required();
  add_number(*command, "-k", options->k, "K", "Letters of a k-mer, up to 31")
      ->capture_default_str();
  add_number(*command, "--processes", options->processes, "N", "How many, of all hosts together")
      ->capture_default_str();
  command->add_flag("--all", options->all, "Report what occurs once, too");
  add_text(*command, "--style", options->style, "STYLE", "automatic, one_sided or message")
      ->capture_default_str();
  add_number(*command, "--rounds", options->rounds, "N",
             "Passes that count, each an equal share of the k-mers")
      ->capture_default_str();
  add_number(*command, "--slots", options->count.slots, "N",
             "Of each member's part of the map (default: by what the filter has seen)");
  add_number(*command, "--timeout", options->count.timeout_s, "S", "Give up after so many seconds")
      ->capture_default_str();
  add_text(*command, "--dump", options->dump_file, "FILE", "Write k-mers and counts to FILE");
  add_text(*command, "--histogram", options->histogram_file, "FILE",
           "Write to FILE how many k-mers occur so often");
  add_text(*command, "--report", options->report_file, "FILE.html",
           "Write one self-contained page to FILE");
  command->add_flag("--jellyfish", options->jellyfish,
                    "Compare each k-mer and its count with those of Jellyfish");
  add_fabric_options(*command, options->count.fabric,
                     "shm: processes of this host; tcp: between hosts; ofi: over libfabric's\n"
                     "networks; verbs: over RDMA devices",
                     {.join = "10; 60 for hosts", .silence = "none"});
  command->callback([options] { run_kmers(*options); });
}

}  // namespace dunlin::app
