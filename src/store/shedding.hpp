#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/call.hpp"
#include "store/chain_move.hpp"
#include "store/key_homes.hpp"
#include "store/raises.hpp"

/// A home's part in the move of another one, with two copies: chain by chain, it makes elsewhere
/// the second copies that it had made there, and says so in the chain (docs/store.md, STO-M10).
namespace dunlin::store {

struct State;

class Shedding {
 public:
  explicit Shedding(State& state) : state_(state), move_(state), raises_(state) {}
  Shedding(const Shedding&) = delete;
  Shedding& operator=(const Shedding&) = delete;

  std::size_t poll();
  [[nodiscard]] bool is_amid_chain() const noexcept { return stage_ > Stage::wait; }
  /// The stage, for people.
  [[nodiscard]] std::string_view describe() const noexcept;

 private:
  enum class Stage : std::uint8_t { idle, look, ready, wait, move, raise, release };

  void look_at_request();
  [[nodiscard]] bool step();
  [[nodiscard]] bool look();
  [[nodiscard]] bool ready();
  [[nodiscard]] bool begins(const KeyGroup& group) const noexcept;
  [[nodiscard]] bool wait();
  [[nodiscard]] bool move();
  [[nodiscard]] bool raise();
  void answer(std::uint64_t generation) noexcept;
  bool rest(Stage next);

  State& state_;
  Stage stage_ = Stage::idle;
  std::uint64_t request_ = 0;
  Rank mover_ = 0;
  std::uint64_t position_ = 0;  // of the next chain
  std::uint64_t below_ = 0;     // the positions that the mover has moved
  std::uint64_t groups_in_ = UINT64_MAX;
  std::vector<KeyGroup> groups_;  // of that generation
  ChainMove move_;
  Raises raises_;
  Rest rest_;
};

}  // namespace dunlin::store
