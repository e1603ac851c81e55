#pragma once

#include <cstdint>

#include <dunlin/remote.hpp>

/// The announcement of a home that leaves, or gives keys: it writes a word to each member in turn,
/// and waits until the member has published that it knows (docs/store.md, STO-M6).
namespace dunlin::store {

struct State;

class Announcement {
 public:
  explicit Announcement(State& state) : state_(state) {}
  ~Announcement() { stop(); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  void begin(std::uint64_t word) noexcept;
  void stop() noexcept;
  /// `ok`: all know, or are gone; `busy`: not yet, try again later; `under_way`: an operation has
  /// not ended.
  [[nodiscard]] remote::Status step() noexcept;

 private:
  enum class Stage : std::uint8_t { write, written, read };

  State& state_;
  Stage stage_ = Stage::write;
  std::uint64_t word_ = 0;  // that is written
  std::uint64_t seen_ = 0;
  Rank to_ = 0;
  Completion done_;
};

}  // namespace dunlin::store
