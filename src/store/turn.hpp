#pragma once

#include <array>
#include <cstdint>

#include <dunlin/remote.hpp>

#include "store/format.hpp"

/// The turn of a home that wants to move keys: one does at a time (docs/store.md, STO-M4). It
/// publishes its word before it begins, and reads the same word of each other home.
namespace dunlin::store {

struct State;

class Turn {
 public:
  explicit Turn(State& state) : state_(state) {}
  ~Turn() { stop(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void begin() noexcept;
  void stop() noexcept;
  /// `ok`: it is this home's turn; `conflict`: it gives way to a home of a lower rank, and begins
  /// again; `busy`: not yet, try again later; `under_way`: a read has not ended.
  [[nodiscard]] remote::Status step() noexcept;

 private:
  State& state_;
  Rank asks_ = 0;
  bool has_posted_ = false;
  std::array<std::uint64_t, (kIndexHeaderBytes - kDrainedAt) / kWordBytes> words_{};
  Completion done_;
};

}  // namespace dunlin::store
