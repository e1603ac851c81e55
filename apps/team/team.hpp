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
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/watch.hpp"
#include "process/children.hpp"
#include "team/team_exchange.hpp"

/// A Team is a handful of processes that work together: forked, pinned to a core each where there
/// are enough, and never left behind, whether they finish, throw, crash or hang. On one host they
/// share a page of memory that belongs to the team alone; between hosts each host forks its share
/// and has such a page, and the members meet over the network.
///
///     Team team({.processes = 2});
///     team.run([](Member& me) {
///       const double seconds = work(me);
///       if (me.rank() == 0) me.record(0, seconds);
///     });
///     const double seconds = team.series(0).front();
namespace dunlin::app {

inline constexpr std::uint32_t kMaxTeam = 64;
inline constexpr std::uint32_t kMaxSeries = 16;
inline constexpr std::uint32_t kMaxRounds = 1024;
inline constexpr std::size_t kTextBytes = 512;
inline constexpr std::size_t kArenaBytes = std::size_t{1} << 22;

/// The memory that the processes of a host share. Padded to two lines: neighbours are prefetched in
/// pairs.
struct TeamMemory {
  struct alignas(128) Line {
    std::atomic<std::uint64_t> word{0};
  };
  Line arrived;
  Line generation;
  std::array<std::uint32_t, kMaxSeries> rounds{};
  std::array<std::array<double, kMaxRounds>, kMaxSeries> samples{};
  std::array<std::array<char, kTextBytes>, kMaxTeam> errors{};
  std::array<std::array<char, kExchangedBytes>, kMaxTeam> words{};  // told at the meeting
  std::array<char, kTextBytes> note{};
  alignas(4096) std::array<std::byte, kArenaBytes> arena{};  // for the bare limits
};

/// One process of the team.
class Member {
 public:
  Member(TeamMemory& memory, std::unique_ptr<TeamExchange> exchange, std::uint32_t rank,
         std::uint32_t size)
      : memory_(memory), exchange_(std::move(exchange)), rank_(rank), size_(size) {}

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  /// Wait until every member is here. Not part of the measurement.
  void meet();
  /// Meets, and calls `progress` while it waits, for peers that need us in order to arrive.
  void meet(const std::function<void()>& progress);
  /// Tell all members a word of at most kExchangedBytes - 1 bytes, and hear theirs, by rank.
  [[nodiscard]] std::vector<std::string> exchange(
      std::string_view word, const std::function<void()>& progress = [] {});
  /// Add a round to a series; one member of host 0 does.
  void record(std::uint32_t series, double value);
  /// Sets Team::note(); called by one member of host 0.
  void note(std::string_view text);
  /// A member is gone: ends this process, which can only wait in vain, unless it needs nobody.
  void lost(std::uint32_t rank, std::string_view why);
  /// Whether this member waits for the others, as it does at first. Once all have said that they
  /// do not, and have met, they may go one after the other.
  void need_others(bool needs) noexcept { needs_others_ = needs; }
  /// Memory that all members of this host share, zeroed at the start.
  [[nodiscard]] std::span<std::byte> arena() const noexcept { return memory_.arena; }

 private:
  TeamMemory& memory_;
  std::unique_ptr<TeamExchange> exchange_;
  std::uint32_t rank_;
  std::uint32_t size_;
  bool needs_others_ = true;
};

struct TeamOptions {
  std::uint32_t processes = 1;
  bool pin = true;  // where there are enough cores
  std::chrono::milliseconds timeout{120'000};
  /// A process that may be ended by SIGKILL; the last one.
  std::optional<std::uint32_t> doomed = {};
  /// Process r belongs to host r % hosts, and is started by that host's Team.
  std::uint32_t hosts = 1;
  std::uint32_t host = 0;
  Watch* watch = nullptr;  // of the other hosts
  /// Between hosts: called in each process.
  std::function<std::unique_ptr<TeamExchange>(std::uint32_t rank)> exchange = {};
};

class Team {
 public:
  explicit Team(TeamOptions options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Runs `body` once in each process of this host, and waits. Throws Error that names the member
  /// that threw, crashed or did not finish in time; no process is left then.
  void run(const std::function<void(Member&)>& body);

  /// What was recorded: at host 0, something; at others nothing.
  [[nodiscard]] std::span<const double> series(std::uint32_t index) const;
  /// The series, or nothing if nobody has recorded it.
  [[nodiscard]] std::span<const double> recorded(std::uint32_t index) const;
  [[nodiscard]] std::string note() const { return memory_->note.data(); }
  /// Whether each process has a core of its own.
  [[nodiscard]] bool pinned() const noexcept { return !cores_.empty(); }

 private:
  [[nodiscard]] int become_member(std::uint32_t rank, const std::function<void(Member&)>& body);
  void await(process::Children& members);
  /// What is wrong with an end like that; empty if nothing is.
  [[nodiscard]] std::string complaint(std::uint32_t rank, process::Status status) const;

  TeamOptions options_;
  std::vector<int> cores_;  // empty: not pinned
  TeamMemory* memory_;
};

}  // namespace dunlin::app
