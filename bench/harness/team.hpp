#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// A Team is a handful of processes that measure together: forked, pinned to a core each where
/// there are enough, joined by a page of shared memory that belongs to the benchmark alone, and
/// never left behind, whether they finish, throw, crash or hang.
///
///     Team team({.processes = 2});
///     team.run([](Member& me) {
///       alternate(me, 11, {[&] { return bare(me); }, [&] { return dunlin(me); }});
///     });
///     Summary bare = summarize(team.series(0));
namespace dunlin::bench {

inline constexpr std::uint32_t kMaxTeam = 64;
inline constexpr std::uint32_t kMaxSeries = 8;
inline constexpr std::uint32_t kMaxRounds = 1024;
inline constexpr std::size_t kErrorBytes = 512;
inline constexpr std::size_t kArenaBytes = std::size_t{1} << 22;

/// What the processes share. Padded to two lines: neighbours are prefetched in pairs.
struct Board {
  struct alignas(128) Line {
    std::atomic<std::uint64_t> word{0};
  };
  Line arrived;
  Line generation;
  std::array<std::uint32_t, kMaxSeries> rounds{};
  std::array<std::array<double, kMaxRounds>, kMaxSeries> samples{};
  std::array<std::array<char, kErrorBytes>, kMaxTeam> errors{};
  alignas(4096) std::array<std::byte, kArenaBytes> arena{};  // for the bare limits
};

/// One process's seat in the team.
class Member {
 public:
  Member(Board& board, std::uint32_t rank, std::uint32_t size) noexcept
      : board_(board), rank_(rank), size_(size) {}

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  /// Wait until every member is here. Not part of what is measured.
  void meet() noexcept;
  /// The same, calling `progress` while waiting: for peers that need us in order to arrive.
  void meet(const std::function<void()>& progress);
  /// Add a round to a series; one member does.
  void record(std::uint32_t series, double value);
  /// Memory that all members share, zeroed at the start.
  [[nodiscard]] std::span<std::byte> arena() const noexcept { return board_.arena; }

 private:
  /// True for the last one, who lets the others go.
  bool arrive(std::uint64_t& generation) noexcept;
  [[nodiscard]] bool all_arrived(std::uint64_t generation) const noexcept;

  Board& board_;
  std::uint32_t rank_;
  std::uint32_t size_;
};

/// A contender runs one round and returns what it measured, or nothing where another member does.
using Contender = std::function<std::optional<double>()>;

/// Let the contenders take turns, after one round each that does not count. Who begins changes
/// from round to round. Contender i is series i; all members must call this alike.
void alternate(Member& me, std::uint32_t rounds, const std::vector<Contender>& contenders);

struct TeamOptions {
  std::uint32_t processes = 1;
  bool pin = true;  // where there are enough cores
  std::chrono::milliseconds timeout{120'000};
};

class Team {
 public:
  explicit Team(TeamOptions options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Run `body` once in each process, and wait. Throws Error that names the member which threw,
  /// crashed or did not finish in time; no process is left then.
  void run(const std::function<void(Member&)>& body);

  [[nodiscard]] std::span<const double> series(std::uint32_t index) const;
  /// Whether each process has a core of its own.
  [[nodiscard]] bool pinned() const noexcept { return !cores_.empty(); }

 private:
  struct Process;
  [[noreturn]] void become_member(std::uint32_t rank, int parent,
                                  const std::function<void(Member&)>& body);
  void await(std::vector<Process>& processes);

  TeamOptions options_;
  std::vector<int> cores_;  // empty: not pinned
  Board* board_;
};

}  // namespace dunlin::bench
