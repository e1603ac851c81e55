#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/change.hpp"
#include "store/key_homes.hpp"

/// Copies of one chain's keys, made at the homes that are to have them, while nobody can change the
/// keys: this home holds the lock of the chain, and those of the chains there that have its
/// positions. It takes them in the order of ranks and positions, as transactions do, so it never
/// has to give one back for others, and no copy becomes old (docs/store.md, STO-M11).
namespace dunlin::store {

struct State;

class ChainMove {
 public:
  explicit ChainMove(State& state) : state_(state) {}
  ~ChainMove() { stop(); }
  ChainMove(const ChainMove&) = delete;
  ChainMove& operator=(const ChainMove&) = delete;

  /// Of the own chain that begins at that position. A key is copied to the homes that its group has
  /// then and not now, and to the one that is first then. They keep none of these positions that is
  /// not here: a change that was cut off (STO-C1), or a move, has left it.
  void begin(std::uint64_t position, std::vector<KeyGroup> groups);
  /// Of the chain at hand: behind its last position, once it is locked.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] std::byte* main() const noexcept { return main_; }
  [[nodiscard]] std::size_t keys() const noexcept { return keys_.size(); }
  /// Whether the key is one of those that move.
  [[nodiscard]] bool moves(std::uint64_t hash) const noexcept;
  /// Whether the members have changed since it began.
  [[nodiscard]] bool is_outdated() const noexcept;

  /// `under_way`: an operation has not ended; `ok`: the copies are made, and the locks held. Else
  /// they are given back, and the copies taken back: `busy`: a home has failed, or the members have
  /// changed; or why there can be no copy.
  [[nodiscard]] remote::Status step();
  /// After step() has said `ok`: gives the locks back, here with that version, and there with one
  /// that is not lower than this chain's.
  void release(std::uint64_t version);
  /// `ok`: all are given back.
  [[nodiscard]] remote::Status released();
  /// Gives all back as soon as possible.
  void stop();

 private:
  enum class Stage : std::uint8_t { lock, clean, copy, held, undo, release, ended };
  struct Key {
    std::vector<std::byte> bytes;
    std::vector<std::byte> value;
    std::uint64_t version = 0;
    std::uint64_t ttl_ns = kNoExpiry;
    std::vector<Rank> to;
    std::uint64_t hash = 0;
  };
  struct Held {
    Rank home = 0;
    std::uint64_t position = 0;
  };

  [[nodiscard]] bool step_once();
  [[nodiscard]] bool lock();
  [[nodiscard]] bool locked();
  void collect();
  [[nodiscard]] const KeyGroup* group_of(std::uint64_t hash) const noexcept;
  [[nodiscard]] bool clean();
  [[nodiscard]] bool copy();
  [[nodiscard]] bool copied();
  [[nodiscard]] bool undo();
  [[nodiscard]] bool give_back();
  void fail(remote::Status status);
  void begin_call(remote::Protocol<ChainResult> protocol);
  void unlock(std::uint64_t version) noexcept;

  State& state_;
  Stage stage_ = Stage::ended;
  remote::Status status_ = remote::Status::ok;
  std::vector<KeyGroup> groups_;
  std::vector<Rank> homes_;  // whose chains are locked, and the own one: ascending
  std::size_t next_home_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t next_position_ = 0;  // at that home
  std::uint64_t generation_ = 0;
  std::uint64_t lock_word_ = 0;
  std::byte* main_ = nullptr;
  bool has_own_lock_ = false;
  std::vector<Held> held_;
  std::vector<Held> unclean_;
  std::function<bool(std::uint64_t hash)> is_stray_;
  std::vector<Key> keys_;
  std::size_t next_key_ = 0;
  std::size_t next_copy_ = 0;  // of that key
  std::uint64_t version_ = 0;
  remote::Call<ChainResult> call_;
  bool is_under_way_ = false;
};

}  // namespace dunlin::store
