#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/chain_move.hpp"
#include "store/change.hpp"
#include "store/raises.hpp"

/// What a home that moves its keys does after a death, with two copies: keys whose first home has
/// died, and whose second copies were still here, go to the home that takes over. It serves none of
/// them before (docs/store.md, STO-M12).
namespace dunlin::store {

struct State;

class Rescue {
 public:
  explicit Rescue(State& state) : state_(state), move_(state), raises_(state) {}
  Rescue(const Rescue&) = delete;
  Rescue& operator=(const Rescue&) = delete;

  void begin();
  void stop();
  /// `ok`: nothing is left to do; `busy`: not yet, try again later; `under_way`: an operation has
  /// not ended.
  [[nodiscard]] remote::Status step();

 private:
  enum class Stage : std::uint8_t { look, lock, release, copy, raise, done };
  /// Keys of one home, of some positions, and where they go.
  struct Part {
    Rank home = 0;
    std::uint64_t from = 0;
    std::uint64_t below = 0;
    Rank to = 0;
    bool is_whole = true;
  };
  struct Key {
    std::vector<std::byte> bytes;
    std::vector<std::byte> value;
    std::uint64_t version = 0;
    std::uint64_t ttl_ns = kNoExpiry;
    std::size_t part = 0;
  };

  [[nodiscard]] remote::Status learn(std::uint64_t from);
  [[nodiscard]] remote::Status look();
  void claim_all();
  void collect();
  [[nodiscard]] remote::Status copy();

  State& state_;
  Stage stage_ = Stage::done;
  std::vector<Part> parts_;
  std::uint64_t position_ = 0;
  ChainMove move_;
  std::vector<Key> keys_;
  std::uint64_t version_ = 0;  // of the chain at hand
  std::vector<Rank> raised_at_;
  std::uint64_t raised_from_ = 0, raised_below_ = 0;
  remote::Call<ChainResult> call_;
  bool is_under_way_ = false;
  Raises raises_;
};

}  // namespace dunlin::store
