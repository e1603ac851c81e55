#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/announcement.hpp"
#include "store/call.hpp"
#include "store/chain_move.hpp"
#include "store/format.hpp"
#include "store/raises.hpp"
#include "store/turn.hpp"

/// A home's leave: chain by chain in the order of positions, its keys move to the next home while
/// all members use them (docs/store.md, STO-M1 to STO-M6). Or it gives keys to a member that asks
/// for some: the same, for the lower half of its positions (STO-M7, STO-M8). With two copies, the
/// other homes then make elsewhere what is second here (STO-M10).
namespace dunlin::store {

struct State;

class Departure {
 public:
  explicit Departure(State& state)
      : state_(state), turn_(state), move_(state), raises_(state), telling_(state) {}
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
  /// The stage, for people.
  [[nodiscard]] std::string_view describe() const noexcept;
  /// Whether a chain is on its way to where the members were before they changed.
  [[nodiscard]] bool is_amid_chain() const noexcept {
    return stage_ == Stage::move || stage_ == Stage::raise || stage_ == Stage::release;
  }
  /// Whether the index must stay as it is.
  [[nodiscard]] bool keeps_shape() const noexcept { return stage_ != Stage::ended; }

 private:
  enum class Stage : std::uint8_t {
    claim,    // publishes that this home moves keys
    turn,     // one home does at a time
    ready,    // with two copies: all homes have made theirs
    readied,  //
    move,     // copies the keys of the next chain
    raise,    // publishes at the other homes how far they have the keys
    release,  // the chain has departed
    gone,     // until the counters are right
    tell,     // all members: the positions have moved
    ask,      // with two copies: each home makes elsewhere what is second here
    asked,    //
    await,    //
    awaited,  //
    drained,  // all members: nothing is second here any more
    sweep,    // takes away what was
    sweeping,
    swept,
    ended
  };

  void look_at_ask();
  void answer(remote::Status status) noexcept;
  [[nodiscard]] bool step();
  [[nodiscard]] bool step_of_chain();
  [[nodiscard]] bool step_of_copies();
  [[nodiscard]] bool claim();
  [[nodiscard]] bool take_turn();
  [[nodiscard]] bool choose();
  [[nodiscard]] std::optional<Rank> next_home(bool& must_wait);
  [[nodiscard]] bool may_go() const;
  [[nodiscard]] bool keep_both() const;
  [[nodiscard]] bool ready();
  [[nodiscard]] bool readied();
  [[nodiscard]] bool is_complete();
  [[nodiscard]] bool is_client(Rank rank, bool& must_wait);
  [[nodiscard]] bool give_up(remote::Status why);
  void find_groups();
  [[nodiscard]] bool move();
  void raise_all();
  [[nodiscard]] bool raise();
  void depart();
  [[nodiscard]] bool is_counted();
  [[nodiscard]] bool tell(std::uint64_t flags, Stage next);
  [[nodiscard]] bool told();
  [[nodiscard]] bool ask();
  [[nodiscard]] bool await();
  [[nodiscard]] bool awaited();
  [[nodiscard]] bool sweeping();
  [[nodiscard]] bool look_for_home();
  [[nodiscard]] bool post(const Operation& operation, Stage next);
  bool rest(Stage next);
  void publish(std::uint64_t state) noexcept;
  bool end(remote::Status status);
  [[nodiscard]] bool is_done() const noexcept;

  State& state_;
  Stage stage_ = Stage::ended;
  remote::Status status_ = remote::Status::not_allowed;
  Rank to_ = 0;                              // the home that gets the keys
  bool gives_ = false;                       // to a member that has asked: this home stays one
  bool leaves_next_ = false;                 // leave() was called meanwhile
  bool is_over_ = false;                     // the home that gets the keys is gone
  remote::Status why_ = remote::Status::ok;  // it ends so, when the others have taken their part
  std::uint64_t limit_ = kAllPositions;      // the positions below move
  Turn turn_;
  ChainMove move_;
  Raises raises_;
  Announcement telling_;
  Rank asks_ = 0;
  std::uint64_t word_ = 0;
  std::uint64_t round_ = 0;                 // of what the other homes are asked
  std::uint64_t generation_ = 0;            // likewise
  std::uint64_t complete_in_ = UINT64_MAX;  // a generation: all homes have made their copies
  std::vector<KeyGroup> groups_;            // of that generation
  std::uint64_t position_ = 0;              // of the next chain
  Rest rest_;
  Completion done_;
};

}  // namespace dunlin::store
