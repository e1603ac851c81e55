#include "kmers/count.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "cluster/watch.hpp"
#include "command.hpp"
#include "container/container_member.hpp"
#include "kmers/counter.hpp"
#include "kmers/reads.hpp"
#include "team/team_group.hpp"

namespace dunlin::kmers {
namespace {

using app::Member;
using std::chrono::steady_clock;

constexpr double kSlotsPerLetter = 1.5;
constexpr double kLettersPerPackedByte = 4.5;
constexpr std::uint64_t kLeastSlots = 4096;
constexpr std::uint64_t kMostSlots = std::uint64_t{1} << 28;
constexpr std::uint64_t kPiecesPerLook = 64;
constexpr std::uint32_t kUntilAllHaveComeMs = 60'000;  // somebody starts the hosts by hand
constexpr const char* kBadInput = "bad input: ";

// Series of the team, recorded by member 0.
enum : std::uint32_t { filter_s, count_s, gather_s, chosen_style };

double letters_per_byte(const std::string& path) {
  return is_packed(path) ? kLettersPerPackedByte : 1;
}

/// By the letters in the files, as there are rarely as many k-mers.
std::uint32_t slots_of(const CountOptions& options) {
  if (options.slots > 0) return static_cast<std::uint32_t>(options.slots);
  double letters = 0;
  for (const Input& file : options.files) {
    std::error_code error;  // the file may have gone: its reader says so
    const auto bytes = std::filesystem::file_size(file.path, error);
    if (!error) letters += static_cast<double>(bytes) * letters_per_byte(file.path);
  }
  return static_cast<std::uint32_t>(
      std::clamp(static_cast<std::uint64_t>(letters * kSlotsPerLetter / options.processes),
                 kLeastSlots, kMostSlots));
}

/// One process's part of the work.
class Worker {
 public:
  Worker(Member& me, const CountOptions& options, std::unique_ptr<Fabric> fabric)
      : me_(me),
        options_(options),
        here_(me, std::move(fabric)),
        counter_(here_.containers, options, slots_of(options)),
        gathered_(here_.containers, {.name = "gathered"},
                  [this](Rank, const Found& found) { all_.push_back(found); }) {
    for (const Input& file : options.files) {
      std::error_code error;
      const auto bytes = std::filesystem::file_size(file.path, error);
      if (!error) total_bytes_ += bytes;
    }
  }

  void run() {
    const Style style = choose();
    if (options_.filter) {
      timed(filter_s, "finding what occurs twice", [&] { pass(KmerCounter::Pass::filter, style); });
      timed(count_s, "counting", [&] { pass(KmerCounter::Pass::count, style); });
    } else {
      if (me_.rank() == 0) me_.record(filter_s, 0);
      timed(count_s, "counting", [&] { pass(KmerCounter::Pass::all, style); });
    }
    timed(gather_s, "gathering", [&] { gather(); });
    if (me_.rank() == 0) {
      me_.record(chosen_style, style == Style::message ? 1 : 0);
      me_.note(why_);
    }
  }

 private:
  struct Found {
    Kmer kmer;
    std::uint64_t count;
  };

  void poll() { here_.containers.poll(); }
  void meet() {
    me_.meet([this] { poll(); });
  }
  template <class Work>
  void timed(std::uint32_t series, const char* what, const Work& work) {
    doing_ = what;
    const auto start = steady_clock::now();
    work();
    meet();
    const std::chrono::duration<double> seconds = steady_clock::now() - start;
    if (me_.rank() == 0) me_.record(series, seconds.count());
  }
  /// Member 0 measures, if there is a choice, and all do the same.
  Style choose() {
    Style style = options_.style;
    if (style != Style::automatic) why_ = "as --style says";
    meet();
    if (me_.rank() == 0 && style == Style::automatic) {
      style = Style::message;
      why_ = "there is one process";
      if (me_.size() > 1) {
        const ComponentCosts costs = here_.calibration.measure(1, 20);
        const double one_sided = predict_ns(costs, Call::assign, Style::one_sided, {});
        const double by_batch =
            (costs.write_ns + 8 * 1024 * costs.byte_ns + costs.message_ns) / 1024;
        if (one_sided < by_batch) style = Style::one_sided;
        why_ = fmt::format(
            "the fabric's part of a count is {:.0f} ns one-sided, and {:.1f} ns in a batch",
            one_sided, by_batch);
      }
    }
    const auto said =
        me_.exchange(style == Style::message ? "message" : "one_sided", [this] { poll(); });
    return said.front() == "message" ? Style::message : Style::one_sided;
  }
  void pass(KmerCounter::Pass which, Style style) {
    counter_.begin(which, style);
    read_ = 0;
    bytes_before_ = 0;
    std::uint64_t pieces = 0;
    std::string piece;
    for (const Input& input : options_.files) {
      ReadFile file(input, options_.k);
      while (file.next(piece)) {
        if (pieces++ % me_.size() == me_.rank()) {
          for_each_kmer(piece, options_.k, [this](Kmer kmer) {
            counter_.add(kmer);
            ++read_;
          });
        }
        if (pieces % kPiecesPerLook == 0) look_up(file);
      }
      bytes_before_ += file.bytes_taken();
    }
    counter_.finish();
  }
  /// Now and then: others' batches come even to a member that has no reads for a while.
  void look_up(const ReadFile& file) {
    poll();
    if (!options_.shows_progress || me_.rank() != 0 || total_bytes_ == 0) return;
    const double part = std::min(1.0, static_cast<double>(bytes_before_ + file.bytes_taken()) /
                                          static_cast<double>(total_bytes_));
    const auto percent = static_cast<std::uint32_t>(part * 100);
    if (percent == shown_percent_) return;
    shown_percent_ = percent;
    const std::string bar(percent / 4, '#');
    const std::string text = fmt::format("\r[{:<25}] {:>3} % {}\x1b[K", bar, percent, doing_);
    static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
  }
  void gather() {
    if (options_.shows_progress && me_.rank() == 0)
      static_cast<void>(::write(STDERR_FILENO, "\r\x1b[K", 4));
    const std::uint32_t least = options_.filter ? 2 : 1;
    counter_.map().for_each_local([&](Kmer kmer, std::uint32_t count) {
      if (count < least) return;
      if (gathered_.add(0, {kmer, count}) != remote::Status::ok) throw Error("member 0 is lost");
    });
    if (gathered_.flush() != remote::Status::ok) throw Error("member 0 is lost");
    const auto use = counter_.map().local_use();
    const auto said =
        me_.exchange(fmt::format("{} {} {}", use.slots, use.ready, read_), [this] { poll(); });
    if (me_.rank() == 0) write_all(said);
  }
  void write_all(const std::vector<std::string>& uses) {
    std::ranges::sort(all_, {}, &Found::kmer);
    std::ofstream out(options_.dump_file);
    for (const std::string& use : uses) out << "# " << use << '\n';
    for (const Found& found : all_)
      out << text_of(found.kmer, options_.k) << ' ' << found.count << '\n';
    out.flush();
    if (!out) throw Error("'" + options_.dump_file + "' cannot be written");
  }

  Member& me_;
  const CountOptions& options_;
  app::ContainerMember here_;
  KmerCounter counter_;
  std::vector<Found> all_;
  Aggregator<Found> gathered_;
  std::string why_;
  const char* doing_ = "";
  std::uint64_t read_ = 0;
  std::uint64_t bytes_before_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::uint32_t shown_percent_ = UINT32_MAX;
};

/// The members' lines at the beginning of member 0's file, and the counts behind them.
void read_result(const std::string& file, Counted& counted) {
  std::ifstream in(file);
  std::string word;
  while (in.peek() == '#') {
    MemberUse use;
    in >> word >> use.slots >> use.kmers >> use.read;
    std::getline(in, word);
    counted.members.push_back(use);
  }
  std::uint64_t count = 0;
  while (in >> word >> count) ++counted.histogram[count];
}

double first_of(std::span<const double> series) { return series.empty() ? 0 : series.front(); }

}  // namespace

Counted count(const CountOptions& options) {
  app::check(options.fabric);
  const app::Cluster cluster(options.fabric);
  const std::string text = fmt::format(
      "{}-mers of {} files by {} processes{}, style {}", options.k, options.files.size(),
      options.processes, options.filter ? "" : ", without filter", name_of(options.style));
  app::Watch watch(cluster, {.what = "kmers", .text = text, .hash = std::hash<std::string>()(text)},
                   kUntilAllHaveComeMs);
  watch.await_others();
  const app::TeamGroup group(cluster, {.name = "kmers",
                                       .members = options.processes,
                                       .timeout = std::chrono::seconds(options.timeout_s),
                                       .watch = &watch});
  app::Team team(group.team(options.processes));
  try {
    watch.guard([&] {
      team.run([&](Member& me) {
        try {
          Worker(me, options, group.join(me.rank())).run();
        } catch (const app::BadInput& error) {
          me.note(std::string(kBadInput) + error.what());
          throw;
        }
      });
    });
  } catch (const Error&) {
    const std::string note = team.note();
    if (note.starts_with(kBadInput))
      throw app::BadInput(note.substr(std::string(kBadInput).size()));
    throw;
  }
  Counted counted;
  counted.filter_s = first_of(team.series(filter_s));
  counted.count_s = first_of(team.series(count_s));
  counted.gather_s = first_of(team.series(gather_s));
  counted.style = first_of(team.series(chosen_style)) > 0 ? Style::message : Style::one_sided;
  counted.why = team.note();
  read_result(options.dump_file, counted);
  return counted;
}

}  // namespace dunlin::kmers
