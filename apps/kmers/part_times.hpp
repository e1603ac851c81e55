#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

/// PartTimes divides the time of a process between the parts of its work: it is in one part at a
/// time.
///
///     PartTimes times;                        // waits
///     const InPart in(times, Part::reading);  // reads, until the end of the scope
namespace dunlin::kmers {

enum class Part : std::uint8_t { waiting, reading, hashing, moving, memory, sorting };
inline constexpr std::array kPartNames = {"waiting", "reading", "hashing",
                                          "moving",  "memory",  "sorting"};
inline constexpr std::size_t kParts = kPartNames.size();

class PartTimes {
 public:
  /// Returns the part that the process was in.
  Part enter(Part next) noexcept {
    const auto now = std::chrono::steady_clock::now();
    seconds_[static_cast<std::size_t>(part_)] +=
        std::chrono::duration<double>(now - std::exchange(since_, now)).count();
    return std::exchange(part_, next);
  }
  /// The seconds of each part up to now.
  [[nodiscard]] const std::array<double, kParts>& seconds() noexcept {
    enter(part_);
    return seconds_;
  }

 private:
  std::array<double, kParts> seconds_{};
  Part part_ = Part::waiting;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

class InPart {
 public:
  InPart(PartTimes& times, Part part) noexcept : times_(times), before_(times.enter(part)) {}
  InPart(const InPart&) = delete;
  InPart& operator=(const InPart&) = delete;
  ~InPart() { times_.enter(before_); }

 private:
  PartTimes& times_;
  Part before_;
};

}  // namespace dunlin::kmers
