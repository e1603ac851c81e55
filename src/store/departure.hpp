#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/format.hpp"
#include "store/work.hpp"

/// A home's leave, with one copy of each key: chain by chain in the order of positions, its keys
/// move to the next home while all members use them (docs/store.md, STO-M1 to STO-M6). Or it gives
/// keys to a member that asks for some: the same, for the lower half of its positions (STO-M7,
/// STO-M8).
namespace dunlin::store {

struct State;

class Departure {
 public:
  explicit Departure(State& state) : state_(state) {}
  ~Departure();
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;

  /// Begins, or goes on where a leave has ended without success. Does nothing if it is under way.
  void begin();
  std::size_t poll();
  /// They have changed, or a store of theirs has ended.
  void look_at_members();
  /// Of the leave that was begun last.
  [[nodiscard]] remote::Status status() const noexcept { return status_; }
  /// Whether the index must stay as it is.
  [[nodiscard]] bool keeps_shape() const noexcept { return stage_ != Stage::ended; }

 private:
  enum class Stage : std::uint8_t {
    claim,   // publishes that this home leaves
    ask,     // whether another one does: one leaves at a time
    asked,   //
    lock,    // takes the lock of the next chain
    locked,  //
    copy,    // copies one key after the other
    undo,    // takes the copies back
    raise,   // raises the versions of the chains that get the keys
    cover,   // publishes at the other home how far it has the keys
    covered,
    gone,  // corrects the counters
    tell,  // tells one member after the other
    told,
    heard,
    ended
  };
  struct Key {
    std::vector<std::byte> bytes;
    std::vector<std::byte> value;
    std::uint64_t version = 0;
    std::uint64_t ttl_ns = kNoExpiry;
    bool is_there = true;  // or was copied before, and has been erased since
  };

  void look_at_ask();
  void answer(remote::Status status) noexcept;
  [[nodiscard]] bool step();
  [[nodiscard]] bool ask();
  [[nodiscard]] bool asked();
  [[nodiscard]] bool choose();
  [[nodiscard]] std::optional<Rank> next_home(bool& must_wait);
  [[nodiscard]] bool lock();
  [[nodiscard]] bool locked();
  void collect();
  [[nodiscard]] bool copy();
  [[nodiscard]] bool undo();
  [[nodiscard]] bool raise();
  [[nodiscard]] bool has_ended(bool& goes_on);
  [[nodiscard]] bool cover();
  [[nodiscard]] bool covered();
  void depart();
  [[nodiscard]] bool correct_counters();
  [[nodiscard]] bool tell();
  [[nodiscard]] bool told();
  [[nodiscard]] bool heard();
  [[nodiscard]] bool read_word(Rank rank, std::uint64_t at, Stage next);
  bool rest(Stage next);
  void unlock(std::uint64_t version) noexcept;
  void publish(std::uint64_t state) noexcept;
  bool end(remote::Status status);
  [[nodiscard]] std::byte* main() const noexcept;

  State& state_;
  Stage stage_ = Stage::ended;
  remote::Status status_ = remote::Status::not_allowed;
  remote::Status why_ = remote::Status::ok;  // it ends, once the copies are taken back
  Rank to_ = 0;                              // the home that gets the keys
  bool gives_ = false;                       // to a member that has asked: this home stays one
  bool leaves_next_ = false;                 // leave() was called meanwhile
  std::uint64_t limit_ = kAllPositions;      // the positions below move
  Rank asks_ = 0;
  std::uint64_t word_ = 0;
  std::array<std::uint64_t, 3> words_{};  // leave, told, moved
  Rest rest_;
  // the chain
  std::uint64_t position_ = 0;  // its first one
  std::uint64_t end_ = 0;
  std::uint64_t lock_word_ = 0;
  std::uint64_t before_ = 0;
  bool has_lock_ = false;
  std::vector<Key> keys_;
  std::size_t next_ = 0;
  std::vector<std::byte*> slots_;               // that become empty
  std::vector<Location> places_;                // of their entries
  std::vector<std::vector<std::byte>> copied_;  // keys, at the other home
  std::uint64_t raised_below_ = 0;
  std::unique_ptr<StoreOperation> operation_;
  bool is_under_way_ = false;
  std::vector<std::uint64_t> covers_;
  std::size_t posted_ = 0;
  std::uint64_t keys_gone_ = 0, bytes_gone_ = 0;
  Completion done_;
};

}  // namespace dunlin::store
