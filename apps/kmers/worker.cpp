#include "kmers/worker.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include "container/container_member.hpp"
#include "kmers/chunk.hpp"
#include "kmers/counter.hpp"
#include "kmers/gather.hpp"
#include "kmers/resident.hpp"
#include "kmers/spill.hpp"

namespace dunlin::kmers {
namespace {

using app::Member;
using remote::Status;
using std::chrono::steady_clock;

constexpr std::uint32_t kQueuedChunks = 64;
constexpr double kLoad = 0.8;  // of the map
constexpr double kBatchKmers = 2048;

class Worker {
 public:
  Worker(Member& me, const CountOptions& options, std::unique_ptr<Fabric> fabric)
      : me_(me),
        options_(options),
        here_(me, std::move(fabric)),
        chunks_(here_.containers, {.name = "chunks", .capacity = kQueuedChunks, .host = 0}),
        readers_done_(here_.containers, {.name = "readers done"}),
        spilled_(options.folder),
        singles_(options.folder) {}

  void run() {
    const Style style = choose();
    KmerCounter counter(here_.containers, options_, most_letters(), style, times_, singles_);
    timed(mark_s, [&] { read_all(counter); });
    sample_memory();
    counter.begin_count(slots_for(counter.marks()));
    timed(count_s, [&] { count_spilled(counter); });
    sample_memory();
    counter.end_count();
    timed(gather_s, [&] { gather(counter); });
    report(style);
  }

 private:
  void poll() { here_.containers.poll(); }
  void meet() {
    const InPart in(times_, Part::waiting);
    me_.meet([this] { poll(); });
  }
  /// Tells numbers to all members; returns theirs, by rank.
  std::vector<std::vector<double>> exchange(std::span<const double> numbers) {
    const InPart in(times_, Part::waiting);
    std::vector<std::vector<double>> all;
    for (const std::string& said :
         me_.exchange(fmt::format("{}", fmt::join(numbers, " ")), [this] { poll(); })) {
      std::istringstream in_word(said);
      std::vector<double>& heard = all.emplace_back();
      for (double number = 0; in_word >> number;) heard.push_back(number);
      heard.resize(numbers.size());
    }
    return all;
  }
  /// The sum of each number over all members.
  std::vector<double> sum(std::span<const double> numbers) {
    std::vector<double> sums(numbers.size());
    for (const std::vector<double>& heard : exchange(numbers))
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += heard[i];
    return sums;
  }
  template <class Work>
  void timed(Series series, const Work& work) {
    const auto start = steady_clock::now();
    work();
    meet();
    const std::chrono::duration<double> seconds = steady_clock::now() - start;
    if (me_.rank() == 0) me_.record(series, seconds.count());
  }
  void sample_memory() {
    const std::array bytes{static_cast<double>(resident_bytes())};
    peak_bytes_ = std::max(peak_bytes_, sum(bytes)[0]);
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
        // Members work while a batch is under way, so that its time counts once.
        const double by_batch = costs.write_ns / kBatchKmers + sizeof(Kmer) * costs.byte_ns;
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
  /// The copies of the files on several hosts may differ.
  double most_letters() {
    double most = 0;
    for (const auto& heard : exchange(std::array{options_.letters}))
      most = std::max(most, heard[0]);
    return most;
  }

  // --- the first pass: reading -------------------------------------------------------------------

  /// Each file is read by one member. Chunks go through a queue, so that each member takes as many
  /// as it has time for; a reader that finds the queue full takes its chunk itself.
  void read_all(KmerCounter& counter) {
    std::vector<Input> files;
    for (std::size_t i = me_.rank(); i < options_.files.size(); i += me_.size())
      files.push_back(options_.files[i]);
    total_ = 0;
    for (const Input& file : files) {
      std::error_code error;  // its reader says so
      const auto bytes = std::filesystem::file_size(file.path, error);
      if (!error) total_ += static_cast<double>(bytes);
    }
    ChunkReader reader(std::move(files), options_.k);
    Chunk chunk;
    for (bool is_last = false; !is_last;) {
      {
        const InPart in(times_, Part::reading);
        is_last = !reader.next(chunk);
      }
      show("reading", static_cast<double>(reader.bytes_taken()));
      if (!push(chunk)) take(counter, chunk);
      look_around();
    }
    demand(readers_done_.add(1).wait());
    while (pop(counter)) {
    }
    counter.finish();
  }
  void look_around() {
    const InPart in(times_, Part::moving);
    poll();
  }
  [[nodiscard]] bool push(const Chunk& chunk) {
    const InPart in(times_, Part::moving);
    const Status status = chunks_.push(chunk).wait();
    if (status != Status::full) demand(status);
    return status == Status::ok;
  }
  /// Takes a chunk, if there is one; false if there will be none.
  [[nodiscard]] bool pop(KmerCounter& counter) {
    Chunk chunk;
    {
      const InPart in(times_, Part::moving);
      // What a reader has pushed before it was done is in the queue now, or was taken.
      const auto done = readers_done_.read().outcome();
      demand(done.status);
      const auto popped = chunks_.pop().outcome();
      if (popped.status == Status::empty && done.value() == me_.size()) return false;
      if (popped.status != Status::empty) demand(popped.status);
      if (popped.found()) chunk = popped.value();
    }
    if (chunk.bytes > 0) {
      take(counter, chunk);
      return true;
    }
    const InPart in(times_, Part::waiting);
    poll();
    sched_yield();
    return true;
  }
  static void demand(Status status) {
    if (status != Status::ok)
      throw Error("reads cannot be passed on: " + remote::describe(status, "queue"));
  }
  void take(KmerCounter& counter, const Chunk& chunk) {
    {
      const InPart in(times_, Part::reading);
      spilled_.write(&chunk.bytes, sizeof chunk.bytes);
      spilled_.write(chunk.runs.data(), chunk.bytes);
    }
    ++chunks_taken_;
    counter.add(chunk);
  }

  // --- the second pass ---------------------------------------------------------------------------

  /// So many slots that the map has the load kLoad. The filter has some k-mers' marks that occur
  /// once; a part has as many k-mers as others, but for chance.
  std::uint32_t slots_for(const KmerCounter::Marks& marks) {
    const std::vector<double> all = sum(std::array{marks.different, marks.again, marks.mistaken});
    const double members = me_.size();
    const double expected = (all[1] + all[2] / members * all[0]) / members;
    const double slots = (expected * 1.01 + 5 * std::sqrt(expected) + 64) / kLoad;
    if (options_.slots > 0) return static_cast<std::uint32_t>(options_.slots);
    return static_cast<std::uint32_t>(std::min<double>(slots, kMaxSlots));
  }
  void count_spilled(KmerCounter& counter) {
    spilled_.rewind();
    total_ = static_cast<double>(chunks_taken_);
    Chunk chunk;
    for (std::uint64_t i = 0; i < chunks_taken_; ++i) {
      {
        const InPart in(times_, Part::reading);
        if (spilled_.read(&chunk.bytes, sizeof chunk.bytes) < sizeof chunk.bytes ||
            spilled_.read(chunk.runs.data(), chunk.bytes) < chunk.bytes)
          throw Error("the reads cannot be read again");
      }
      counter.add(chunk);
      look_around();
      show("counting", static_cast<double>(i));
    }
    counter.finish();
  }

  void gather(KmerCounter& counter) {
    if (options_.shows_progress && me_.rank() == 0)
      static_cast<void>(::write(STDERR_FILENO, "\r\x1b[K", 4));
    const auto use = counter.map().local_use();
    held_ = {static_cast<double>(use.slots), static_cast<double>(use.ready),
             static_cast<double>(counter.kmers())};
    const std::array kmers{held_[1] + static_cast<double>(counter.singles())};
    Gathering(here_.containers, options_, times_, [this] {
      meet();
    }).run(counter, singles_, static_cast<std::uint64_t>(sum(kmers)[0]), [this] {
      sample_memory();
    });
  }
  void report(Style style) {
    const auto members = exchange(held_);
    const auto parts = exchange(times_.seconds());
    if (me_.rank() != 0) return;
    for (Rank rank = 0; rank < me_.size(); ++rank) {
      for (std::size_t i = 0; i < held_.size(); ++i)
        me_.record(of_member_slots + static_cast<std::uint32_t>(i), members[rank][i]);
      for (std::size_t i = 0; i < kParts; ++i)
        me_.record(first_part + static_cast<std::uint32_t>(i), parts[rank][i]);
    }
    me_.record(peak_bytes, peak_bytes_);
    me_.record(chosen_style, style == Style::message ? 1 : 0);
    me_.note(why_);
  }

  /// The part of the work that is done, on a terminal.
  void show(const char* what, double done) {
    if (!options_.shows_progress || me_.rank() != 0 || total_ == 0) return;
    const auto percent = static_cast<std::uint32_t>(std::min(1.0, done / total_) * 100);
    if (percent == shown_percent_) return;
    shown_percent_ = percent;
    const std::string bar(percent / 4, '#');
    const std::string text = fmt::format("\r[{:<25}] {:>3} % {}\x1b[K", bar, percent, what);
    static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
  }

  Member& me_;
  const CountOptions& options_;
  app::ContainerMember here_;
  PartTimes times_;
  Queue<Chunk> chunks_;
  Counter readers_done_;
  Spill spilled_;  // the chunks that this member has taken
  Spill singles_;  // what occurs once
  std::uint64_t chunks_taken_ = 0;
  std::string why_;
  std::array<double, 3> held_{};  // slots, k-mers, k-mers read
  double peak_bytes_ = 0;
  double total_ = 0;  // of the work at hand
  std::uint32_t shown_percent_ = UINT32_MAX;
};

}  // namespace

void work(Member& me, const CountOptions& options, std::unique_ptr<Fabric> fabric) {
  Worker(me, options, std::move(fabric)).run();
}

}  // namespace dunlin::kmers
