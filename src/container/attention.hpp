#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include <dunlin/fabric.hpp>

namespace dunlin::container {

struct Hub;
class Site;

/// How long a request waits on average until its target polls: the mean residual of the target's
/// poll intervals, E[g^2] / 2 E[g]. Of the intervals without sleep, since a message ends a sleep.
class PollIntervals {
 public:
  /// A poll at that time; it is awake since then, at least.
  void note(std::uint64_t now_ns, std::uint64_t awake_since_ns) noexcept;
  /// Whether the next poll is to be noted: after long intervals each, else two of sixteen.
  [[nodiscard]] bool wants_next() noexcept {
    ++polls_;
    return last_gap_ns_ >= kLongGapNs || polls_ % kPollsOfASample <= 1;
  }
  [[nodiscard]] double wait_ns() const noexcept { return wait_ns_; }

 private:
  static constexpr std::uint64_t kLongGapNs = 4'000;
  static constexpr std::uint64_t kPollsOfASample = 16;
  /// Enough of either for a new average, to which all earlier ones contribute half.
  static constexpr double kWindowNs = 200'000;
  static constexpr std::uint32_t kMostGaps = 64;

  std::uint64_t polls_ = 0;
  std::uint64_t last_ns_ = 0;  // of the poll before, if that was noted, too
  std::uint64_t last_polls_ = 0;
  std::uint64_t last_gap_ns_ = 0;
  double sum_ = 0, sum_of_squares_ = 0;  // of gaps
  std::uint32_t gaps_ = 0;
  double wait_ns_ = 0;
};

/// Each member publishes its wait in a word, and reads those of the members that it asks
/// (docs/formats/container.md). One thread.
class Attention {
 public:
  explicit Attention(Hub& hub);
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  /// In each poll of this member.
  void poll() noexcept;
  /// Unless it is nearly what was published before: readers have that line in their caches.
  void publish(std::uint64_t wait_ns) noexcept;
  /// Of that member, as it was a moment ago; 0 as long as it is not known.
  [[nodiscard]] double wait_ns_of(Rank rank) noexcept;

 private:
  struct Known {
    double wait_ns = 0;
    std::uint64_t look_ns = 0;  // this is used until then
    bool asked = false;
    std::uint64_t word = 0;  // that is being read
    Completion done;
  };
  void look(Known& known, Rank rank, std::uint64_t now_ns) noexcept;

  Hub& hub_;
  std::unique_ptr<Site> site_;
  PollIntervals intervals_;
  std::uint64_t published_ns_ = 0;
  std::deque<Known> known_;  // by rank
};

}  // namespace dunlin::container
