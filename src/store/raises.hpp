#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dunlin/remote.hpp>

/// Words at other members that say up to which position these have keys: they only rise, and only
/// if all below is said already, by whatever member is the first home there (docs/store.md,
/// STO-M9).
namespace dunlin::store {

struct State;

class Raises {
 public:
  struct One {
    Rank at = 0;
    std::uint64_t offset = 0;  // in that member's region of records
    std::uint64_t from = 0;    // the word must be at least this,
    std::uint64_t below = 0;   // and becomes this
    bool is_interval = false;  // or: a covered_word that is to have all of these
  };
  explicit Raises(State& state) : state_(state) {}
  ~Raises() { begin(); }
  Raises(const Raises&) = delete;
  Raises& operator=(const Raises&) = delete;

  /// Begins an empty list.
  void begin() noexcept;
  void add(const One& one) { all_.push_back(one); }
  /// What cannot be raised yet is left out.
  void stop_waiting() noexcept { waits_ = false; }
  /// `ok`: all are raised, but for those at members that are gone; `busy`: not yet, try again
  /// later; `under_way`: an operation has not ended.
  [[nodiscard]] remote::Status step() noexcept;

 private:
  /// What the word becomes; the same: it has all; none: it cannot be raised yet.
  [[nodiscard]] static std::optional<std::uint64_t> raised(const One& one,
                                                           std::uint64_t word) noexcept;

  State& state_;
  std::vector<One> all_;
  std::size_t next_ = 0;
  std::uint64_t seen_ = 0;   // in the word
  std::uint64_t known_ = 0;  // likewise, before
  bool has_posted_ = false;
  bool waits_ = true;
  Completion done_;
};

}  // namespace dunlin::store
