#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/remote.hpp>

#include "store/announcement.hpp"
#include "store/departure.hpp"
#include "store/format.hpp"
#include "store/turn.hpp"
#include "store/work.hpp"

/// A home's leave, with two copies of each key: all members make their changes at a further home,
/// the homes make the copies that are missing without this one, and then its chains depart, one
/// after the other (docs/store.md, STO-M9 to STO-M12).
namespace dunlin::store {

struct State;

class Drain {
 public:
  explicit Drain(State& state) : state_(state), turn_(state), telling_(state) {}
  ~Drain();
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  /// Begins. Does nothing if it is under way, but for the status.
  void begin();
  std::size_t poll();
  /// Of the leave that was begun last. With `no_room` it goes on.
  [[nodiscard]] remote::Status status() const noexcept { return status_; }
  /// Whether the index must stay as it is.
  [[nodiscard]] bool keeps_shape() const noexcept {
    return stage_ >= Stage::settle && stage_ < Stage::ended;
  }

 private:
  enum class Stage : std::uint8_t {
    claim,        // publishes that this home moves keys
    turn,         // one leaves at a time
    tell_leaves,  // all members make changes at a further home from then on
    tell_moved,   // the members have changed: how far the chains have departed
    tell_round,   // the homes make copies
    look,         // whether one home after the other has made them
    looked,
    settle,  // the index ends what it has begun
    lock,    // takes the lock of the next chain
    locked,
    gone,       // corrects the counters
    tell_left,  // all chains have departed
    ended
  };

  [[nodiscard]] bool step();
  [[nodiscard]] bool claim();
  [[nodiscard]] bool take_turn();
  [[nodiscard]] bool tell_leaves();
  bool begin_round();
  [[nodiscard]] bool begin_anew();
  [[nodiscard]] bool look();
  [[nodiscard]] bool looked();
  [[nodiscard]] bool next_home(std::uint64_t ready_word);
  [[nodiscard]] bool lock();
  [[nodiscard]] bool locked();
  void depart();
  [[nodiscard]] bool tell(std::uint64_t below, Stage next);
  [[nodiscard]] bool has_told();
  [[nodiscard]] bool have_changed() const noexcept;
  bool rest(Stage next);
  void unlock(std::uint64_t version) noexcept;
  void publish(std::uint64_t state) noexcept;
  bool end(remote::Status status);
  [[nodiscard]] std::byte* main() const noexcept;

  State& state_;
  Stage stage_ = Stage::ended;
  remote::Status status_ = remote::Status::not_allowed;
  Turn turn_;
  Announcement telling_;
  Rest rest_;
  std::uint64_t round_ = 0;
  std::uint64_t generation_ = 0;  // of the members, in which the copies are made
  Rank asks_ = 0;
  bool has_covered_ = false;  // in this round
  std::uint64_t word_ = 0;
  Rank to_ = 0;                 // the home behind this one
  std::uint64_t position_ = 0;  // the first one of the chain
  std::uint64_t lock_word_ = 0;
  std::uint64_t before_ = 0;
  Departed gone_;  // of which the counters do not know yet
  Completion done_;
};

}  // namespace dunlin::store
