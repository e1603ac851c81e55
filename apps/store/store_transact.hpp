#pragma once

#include <cstdint>
#include <vector>

#include <dunlin/store.hpp>

#include "fabric/backoff.hpp"
#include "store/key_values.hpp"

namespace dunlin::app::resp {

/// An order of the kind transact under way: reads the keys, lets the caller decide, and commits;
/// all of it anew if other calls have changed the keys meanwhile.
class StoreTransact {
 public:
  explicit StoreTransact(Store& store) : store_(store), transaction_(store) {}

  void start(const Order& order);
  /// Does what can be done now; returns whether it has ended. While it rests between two attempts,
  /// only its caller's next poll goes on.
  bool advance();
  [[nodiscard]] bool rests() const noexcept { return stage_ == Stage::resting; }
  [[nodiscard]] Ending ending() const noexcept { return ending_; }

 private:
  enum class Stage : std::uint8_t { reading, committing, resting, ended };

  void read();
  void decide();
  void settle_commit();
  void end(remote::Status status);

  Store& store_;
  StoreTransaction transaction_;
  Order order_;
  std::vector<StoreOperation*> reads_;
  Stage stage_ = Stage::ended;
  Ending ending_ = Ending::ok;
  std::uint32_t attempts_ = 0;
  /// Together, the rests of all attempts are longer than members take to agree on the death of one
  /// that holds a lock.
  Backoff rests_{2'000, 8'000'000};
  std::uint64_t rests_until_ns_ = 0;
};

/// How a call on the store that has ended so is seen by commands.
[[nodiscard]] Ending ending_of(remote::Status status) noexcept;
/// A time to live as the store has it.
[[nodiscard]] std::uint64_t expiry_of(std::uint64_t ttl_ns) noexcept;

}  // namespace dunlin::app::resp
