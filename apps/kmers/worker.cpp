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

class Worker {
 public:
  Worker(Member& me, const CountOptions& options, std::unique_ptr<Fabric> fabric)
      : me_(me),
        options_(options),
        here_(me, std::move(fabric)),
        chunks_(here_.containers, {.name = "chunks", .capacity = kQueuedChunks, .host = 0}),
        readers_done_(here_.containers, {.name = "readers done"}),
        spilled_(options.folder),
        found_(options.folder, options.k) {}

  void run() {
    const Style style = choose();
    KmerCounter counter(here_.containers, options_, most_letters(), style, times_, found_);
    timed(mark_s, [&] { read_all(counter); });
    sample_memory();
    held_[2] = static_cast<double>(counter.kmers());
    const std::uint32_t slots = slots_for(counter.marks());
    timed(count_s, [&] {
      for (std::uint32_t round = 0; round < options_.rounds; ++round)
        count_round(counter, round, slots);
    });
    timed(gather_s, [&] { gather(); });
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
        const double by_batch = costs.write_ns / double{kBatchKmers} + sizeof(Kmer) * costs.byte_ns;
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

  // --- passes through the reads ------------------------------------------------------------------

  /// A member passes the chunks that `next` gives it, until it returns false, on by a queue, from
  /// which each member takes as many as it has time for. While the queue is full, it takes them
  /// itself.
  template <class Next, class Take>
  void pass(const Next& next, const Take& take) {
    ++passes_;
    for (Chunk chunk; next(chunk);) {
      if (!push(chunk)) take(chunk);
      look_around();
    }
    demand(readers_done_.add(1).wait());
    while (pop(take)) {
    }
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
  /// Takes a chunk, if there is one; false if there will be none in this pass.
  template <class Take>
  [[nodiscard]] bool pop(const Take& take) {
    Chunk chunk;
    {
      const InPart in(times_, Part::moving);
      // What a reader has pushed before it was done is in the queue now, or was taken.
      const auto done = readers_done_.read().outcome();
      demand(done.status);
      const auto popped = chunks_.pop().outcome();
      if (popped.status == Status::empty && done.value() == passes_ * me_.size()) return false;
      if (popped.status != Status::empty) demand(popped.status);
      if (popped.found()) chunk = popped.value();
    }
    if (chunk.bytes > 0) {
      take(chunk);
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
  /// Each file is read by one member.
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
    const auto next = [&](Chunk& chunk) {
      const InPart in(times_, Part::reading);
      show("reading", static_cast<double>(reader.bytes_taken()));
      return reader.next(chunk);
    };
    const auto take = [&](const Chunk& chunk) {
      {
        const InPart in(times_, Part::reading);
        const std::span<const std::uint8_t> used = chunk.used();
        const auto bytes = static_cast<std::uint32_t>(used.size());
        spilled_.write(&bytes, sizeof bytes);
        spilled_.write(used.data(), bytes);
      }
      ++chunks_kept_;
      counter.add(chunk);
    };
    pass(next, take);
    counter.finish();
  }
  /// So many slots that the map has the load kLoad. The filter has some k-mers' marks that occur
  /// once; a part has as many k-mers as others, but for chance.
  std::uint32_t slots_for(const KmerCounter::Marks& marks) {
    const std::vector<double> all = sum(std::array{marks.different, marks.again, marks.mistaken});
    const double members = me_.size();
    const double kmers = (all[1] + all[2] / members * all[0]) / members / options_.rounds;
    const double slots = (kmers * 1.01 + 5 * std::sqrt(kmers) + 64) / kLoad;
    if (options_.slots > 0) return static_cast<std::uint32_t>(options_.slots);
    return static_cast<std::uint32_t>(std::min<double>(slots, kMaxSlots));
  }
  void count_round(KmerCounter& counter, std::uint32_t round, std::uint32_t slots) {
    counter.begin_round(round, slots);
    total_ = static_cast<double>(chunks_kept_);
    spilled_.rewind();
    std::uint64_t read = 0;
    const auto next = [&](Chunk& chunk) {
      const InPart in(times_, Part::reading);
      show("counting", static_cast<double>(read));
      if (read++ == chunks_kept_) return false;
      if (spilled_.read(&chunk.bytes, sizeof chunk.bytes) < sizeof chunk.bytes ||
          spilled_.read(chunk.runs.data(), chunk.bytes) < chunk.bytes)
        throw Error("the reads cannot be read again");
      return true;
    };
    pass(next, [&](const Chunk& chunk) { counter.add(chunk); });
    counter.finish();
    meet();
    sample_memory();
    const auto use = counter.map().local_use();
    held_[0] += static_cast<double>(use.slots);
    held_[1] += static_cast<double>(use.ready);
    counter.end_round();
  }

  void gather() {
    if (options_.shows_progress && me_.rank() == 0)
      static_cast<void>(::write(STDERR_FILENO, "\r\x1b[K", 4));
    Gathering(here_.containers, options_, times_, [this] { meet(); }).run(found_, [this] {
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
  Counter readers_done_;  // in all passes
  Spill spilled_;         // the chunks that this member has marked
  Ranges found_;          // k-mers and counts of this member
  std::uint64_t chunks_kept_ = 0;
  std::uint64_t passes_ = 0;
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
