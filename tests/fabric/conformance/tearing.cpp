#include <array>
#include <atomic>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/stamped_line.hpp"
#include "support/rounds.hpp"

/// FAB-F2: no aligned entry is torn, nor any line whose first and last word carry its stamp.
namespace dunlin::conformance {

namespace {

constexpr std::size_t kLines = 8;
constexpr std::size_t kLinesBytes = kLines * sizeof(StampedLine);
using Lines = std::array<StampedLine, kLines>;

void stamp_all(Lines& lines, std::uint64_t stamp) {
  for (StampedLine& line : lines) line.stamp(stamp);
}

/// All bytes of an entry are alike; so any mixture of two values shows.
template <class T>
T uniform(std::uint64_t round) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(round & 0xff) << (8 * i)));
  }
  return value;
}

template <class T>
bool is_uniform(T value) {
  return value == uniform<T>(static_cast<std::uint64_t>(value));
}

/// What the writer has in flight must not change: it takes its sources in turn.
constexpr std::size_t kSources = 16;

/// Counts what a reader accepts, and what of it is torn.
struct Tally {
  std::uint64_t fetched = 0;
  std::uint64_t accepted = 0;
  std::uint64_t torn = 0;
  std::uint64_t last = 0;  // the highest stamp seen in the last line

  void judge(const Lines& lines) {
    for (const StampedLine& line : lines) {
      ++fetched;
      if (!line.accepted()) continue;
      ++accepted;
      if (line.torn()) ++torn;
    }
    const StampedLine& end = lines.back();
    if (end.accepted() && end.words[0] > last) last = end.words[0];
  }
};

template <class T>
class Entries {
 public:
  /// A writer on node 0 and a reader on node 1, that polls its memory or reads node 0's.
  static constexpr std::size_t kOffset = 64 - sizeof(T);
  static inline const std::uint64_t kRounds = test::rounds(2'500);

  Program writer(Fabric& fabric, const Shared& box) {
    return [this, &fabric, &box] {
      if (round_ == kRounds) {
        written_ = true;
        return true;
      }
      Slot& slot = slots_[round_ % kSources];
      if (!slot.done.finished()) return false;
      T& source = *reinterpret_cast<T*>(slot.bytes.data() + kOffset);
      source = uniform<T>(round_);
      if (fabric.post(write(1, box.id(0), kOffset, &source, sizeof(T)).notify(slot.done)).all()) {
        ++round_;
      }
      return false;
    };
  }
  Program reader(const Shared& box) {
    return [this, &box] {
      const bool last = written_;
      const T now = memory::load(*reinterpret_cast<T*>(box.memory(1) + kOffset));
      if (!is_uniform(now)) ++torn;
      return last && now == uniform<T>(kRounds - 1);
    };
  }
  std::uint64_t torn = 0;

 private:
  struct Slot {
    alignas(64) std::array<std::byte, 64> bytes;
    Completion done;
  };
  std::atomic<bool> written_{false};
  std::uint64_t round_ = 0;
  std::array<Slot, kSources> slots_;
};

}  // namespace

TEST_P(Tearing, EntriesOfAllSizesArriveWhole) {
  start(2);
  const Shared one = share("one", 64);
  const Shared two = share("two", 64);
  const Shared four = share("four", 64);
  const Shared eight = share("eight", 64);
  Entries<std::uint8_t> bytes;
  Entries<std::uint16_t> halves;
  Entries<std::uint32_t> words;
  Entries<std::uint64_t> longs;
  run("all bytes have arrived", {bytes.writer(node(0), one), bytes.reader(one)});
  run("all halves have arrived", {halves.writer(node(0), two), halves.reader(two)});
  run("all words have arrived", {words.writer(node(0), four), words.reader(four)});
  run("all longs have arrived", {longs.writer(node(0), eight), longs.reader(eight)});
  EXPECT_EQ(bytes.torn + halves.torn + words.torn + longs.torn, 0U);
}

TEST_P(Tearing, EntriesBesideEachOtherInOneWriteArriveWhole) {
  // Five entries of eight bytes in a write that begins and ends inside a line.
  const std::uint64_t kRounds = test::rounds(2'500);
  constexpr std::size_t kOffset = 40;
  constexpr std::size_t kEntries = 5;
  start(2);
  const Shared box = share("box", 128);
  std::array<std::array<std::uint64_t, kEntries>, kSources> sources{};
  std::array<Completion, kSources> done;
  std::uint64_t round = 0;
  std::uint64_t torn = 0;
  std::atomic<bool> written{false};
  run("the last round has arrived",
      {[&] {
         if (round == kRounds) {
           written = true;
           return true;
         }
         const std::size_t slot = round % kSources;
         if (!done[slot].finished()) return false;
         sources[slot].fill(uniform<std::uint64_t>(round));
         const Operation op = write(1, box.id(0), kOffset, sources[slot].data(), 8 * kEntries);
         if (node(0).post(op.notify(done[slot])).all()) ++round;
         return false;
       },
       [&] {
         bool last = written;
         for (std::size_t i = 0; i < kEntries; ++i) {
           const std::uint64_t now = box.load(1, kOffset + 8 * i);
           if (!is_uniform(now)) ++torn;
           last = last && now == uniform<std::uint64_t>(kRounds - 1);
         }
         return last;
       }});
  EXPECT_EQ(torn, 0U);
}

/// By STR-S2 a stream places words as shared memory does, so no line is torn.
TEST_P(Tearing, StampedLinesOfAWriteAreNeverSeenTorn) {
  constexpr std::uint64_t kRounds = 2'000;
  start(2);
  const Shared box = share("box", kLinesBytes);
  std::array<Lines, kSources> sources;
  std::array<Completion, kSources> done;
  std::uint64_t stamp = 1;
  Tally tally;
  Lines seen;
  run("the last stamp has arrived", {[&] {
                                       if (stamp > kRounds) return true;
                                       const std::size_t slot = stamp % kSources;
                                       if (!done[slot].finished()) return false;
                                       stamp_all(sources[slot], stamp);
                                       const Operation op =
                                           write(1, box.id(0), 0, &sources[slot], kLinesBytes);
                                       if (node(0).post(op.notify(done[slot])).all()) ++stamp;
                                       return false;
                                     },
                                     [&] {
                                       memory::fetch(&seen, box.memory(1), kLinesBytes);
                                       tally.judge(seen);
                                       return tally.last == kRounds;
                                     }});
  EXPECT_EQ(tally.torn, 0U);
  EXPECT_GT(tally.accepted, 0U);
}

TEST_P(Tearing, StampedLinesFetchedByAReadAreNeverTorn) {
  constexpr std::uint64_t kRounds = 2'000;
  constexpr std::uint64_t kReads = 500;
  start(2);
  const Shared box = share("box", kLinesBytes);
  Lines source;
  std::uint64_t stamp = 0;
  bool enough = false;
  bool reading = false;
  std::uint64_t reads = 0;
  Tally tally;
  Lines target;
  Completion done;
  std::uint64_t told = 1;
  const Shared flag = share("flag", 64);
  run("all reads are done",
      {[&] {  // the owner changes its own lines for as long as somebody reads them
         stamp_all(source, ++stamp);
         memory::place(box.memory(0), &source, kLinesBytes);
         return flag.load(0, 0) == 1 && stamp > kRounds;
       },
       [&] {
         if (enough) return done.finished();
         if (reading && done.finished()) {
           reading = false;
           ++reads;
           tally.judge(target);
         }
         if (reads == kReads) {
           enough = node(1).post(write(0, flag.id(1), 0, &told, 8).notify(done)).all();
         } else if (!reading) {
           reading = node(1).post(read(0, box.id(1), 0, &target, kLinesBytes).notify(done)).all();
         }
         return false;
       }});
  EXPECT_EQ(tally.torn, 0U);
  EXPECT_EQ(tally.fetched, kReads * kLines);
}

TEST_P(Tearing, EntriesFetchedByAReadAreWhole) {
  constexpr std::uint64_t kReads = 1'000;
  constexpr std::size_t kOffset = 24;
  constexpr std::size_t kEntries = 9;
  start(2);
  const Shared box = share("box", 128);
  const Shared flag = share("flag", 64);
  std::uint64_t round = 0;
  std::uint64_t reads = 0;
  std::uint64_t torn = 0;
  std::uint64_t told = 1;
  bool reading = false;
  bool enough = false;
  std::array<std::uint64_t, kEntries> target{};
  Completion done;
  run("all reads are done",
      {[&] {
         ++round;
         for (std::size_t i = 0; i < kEntries; ++i) {
           memory::store(box.word(0, kOffset + 8 * i), uniform<std::uint64_t>(round));
         }
         return flag.load(0, 0) == 1;
       },
       [&] {
         if (enough) return done.finished();
         if (reading && done.finished()) {
           reading = false;
           ++reads;
           for (const std::uint64_t entry : target) torn += is_uniform(entry) ? 0 : 1;
         }
         if (reads == kReads) {
           enough = node(1).post(write(0, flag.id(1), 0, &told, 8).notify(done)).all();
         } else if (!reading) {
           const Operation op = read(0, box.id(1), kOffset, target.data(), 8 * kEntries);
           reading = node(1).post(op.notify(done)).all();
         }
         return false;
       }});
  EXPECT_EQ(torn, 0U);
}

TEST_P(Tearing, ARowThatItsOwnerChangesMayBeTheSourceOfAWrite) {
  // The table pushes rows from where readers watch them: the source is lines of our own region.
  start(2);
  const Shared mine = share("mine", kLinesBytes);
  const Shared theirs = share("theirs", kLinesBytes);
  Lines lines;
  Lines seen;
  Tally tally;
  for (std::uint64_t stamp = 1; stamp <= 200; ++stamp) {
    stamp_all(lines, stamp);
    memory::place(mine.memory(0), &lines, kLinesBytes);
    post_and_finish(0, write(1, theirs.id(0), 0, mine.memory(0), kLinesBytes));
    memory::fetch(&seen, theirs.memory(1), kLinesBytes);
    tally.judge(seen);
    ASSERT_EQ(tally.last, stamp);
  }
  EXPECT_EQ(tally.torn, 0U);
}

}  // namespace dunlin::conformance
