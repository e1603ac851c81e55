#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/container/containers.hpp>

#include "container/hub.hpp"

/// Checks of promises: each home of a checked container has a record for each member, which counts
/// that member's calls under way on the home's part, by call and promise.
///
///  CON-C1  A call touches the part between its announcement there and its retraction.
///  CON-C2  Of two calls of different members that contradict each other and touch the part at
///          once, the one that was announced later ends `broken_promise` and touches nothing.
///  CON-C3  A call has ended once its retraction is placed, unless it was abandoned or `stopped`.
namespace dunlin::container {

/// A record: a word for each promise, with a field of 10 bits for each call.
namespace record {
inline constexpr std::uint32_t kPromises = 4;
inline constexpr std::uint32_t kCalls = 6;
inline constexpr std::uint32_t kScanCall = 5;  // of a map; the others as MapCall counts them
inline constexpr std::uint32_t kFieldBits = 10;
inline constexpr std::uint64_t kMost = (std::uint64_t{1} << kFieldBits) - 1;
inline constexpr std::uint64_t kBytes = std::uint64_t{kPromises} * 8;

[[nodiscard]] constexpr std::uint64_t one(std::uint32_t call) noexcept {
  return std::uint64_t{1} << call * kFieldBits;
}
[[nodiscard]] constexpr std::uint64_t count_of(std::uint64_t word, std::uint32_t call) noexcept {
  return word >> call * kFieldBits & kMost;
}
static_assert(kCalls * kFieldBits <= 64);
static_assert(3 * one(2) + one(0) == 0x0000000000300001, "docs/formats/container.md");
}  // namespace record

/// The names of a container's calls, and which of them write; a name is empty where it has none.
struct CheckedCalls {
  std::string_view kind;  // "map", "queue"
  std::array<std::string_view, record::kCalls> names;
  std::array<bool, record::kCalls> writes;
};

/// Whether a call with that promise may be under way beside another member's that writes or reads.
[[nodiscard]] constexpr bool allows(Promise promise, bool writes) noexcept {
  switch (promise) {
    case Promise::both:
      return true;
    case Promise::writes:
      return writes;
    case Promise::reads:
      return !writes;
    case Promise::local:
      return false;
  }
  return true;
}

struct CheckedCall {
  std::uint32_t call = 0;
  Promise promise = Promise::both;
};

class Checker {
 public:
  /// `part` is the container's own region.
  Checker(Hub& hub, const CheckedCalls& calls, const std::string& name, const Site& part);
  ~Checker() = default;
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  /// The sentence about the first member whose calls, in these records, contradict this one; empty
  /// if there is none.
  [[nodiscard]] std::string contradiction(std::span<const std::uint64_t> records, Rank home,
                                          CheckedCall mine) const;
  /// Of a call on the own part that ends at once, and is therefore not announced (CON-C1). Keeps
  /// the sentence.
  [[nodiscard]] bool allows_here(CheckedCall mine);
  /// Posts retractions of calls that were given up.
  std::size_t poll();
  [[nodiscard]] remote::Progress& progress() const noexcept { return hub_.progress; }

 private:
  friend class Announcement;
  struct Owed {
    Rank home;
    CheckedCall call;
  };
  [[nodiscard]] Operation change(Rank home, CheckedCall call, bool up) const noexcept;
  [[nodiscard]] std::uint64_t& count_of(Rank home, CheckedCall call) noexcept {
    return under_way_[(std::size_t{home} * record::kPromises +
                       static_cast<std::size_t>(call.promise)) *
                          record::kCalls +
                      call.call];
  }

  /// Counts a call that will be announced, for which owe() must not fail.
  void expect_owed();
  void owe(Rank home, CheckedCall call) noexcept;

  Hub& hub_;
  const Site& part_;
  const CheckedCalls& calls_;
  std::string name_;
  Site site_;
  std::vector<std::uint64_t> under_way_;  // this member's calls, by home, promise and call
  std::size_t announced_ = 0;             // calls that may come to owe a retraction
  std::vector<Owed> owed_;
};

}  // namespace dunlin::container
