#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/call.hpp"
#include "store/format.hpp"

/// The arrival of keys at a member to which none are hashed: it asks one home for them, by a word
/// in the header of that home's index. The home moves them (Departure; docs/store.md, STO-M7).
namespace dunlin::store {

struct State;

class Arrival {
 public:
  explicit Arrival(State& state) : state_(state) {}
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  /// Does nothing if it is under way.
  void begin();
  std::size_t poll();
  /// They have changed, or a store of theirs has ended.
  void look_at_members();
  /// Of the call that was begun last.
  [[nodiscard]] remote::Status status() const noexcept { return status_; }
  /// The stage, for people.
  [[nodiscard]] std::string_view describe() const noexcept;

 private:
  enum class Stage : std::uint8_t {
    look,  // reads the header of each home in turn, and chooses the one with the most keys
    looked,
    ask,  // puts its word there, if no other member asks
    asked,
    wait,  // reads the word until the home has answered
    waited,
    thank,  // takes the word away
    thanked,
    ended
  };

  [[nodiscard]] bool step();
  [[nodiscard]] bool look();
  [[nodiscard]] bool look_anew();
  [[nodiscard]] bool looked();
  [[nodiscard]] bool asked();
  [[nodiscard]] bool waited();
  [[nodiscard]] bool thanked();
  [[nodiscard]] bool swap(std::uint64_t from, std::uint64_t to, Stage next);
  [[nodiscard]] bool post(const Operation& operation, Stage next);
  bool rest(Stage next);
  bool end(remote::Status status);

  State& state_;
  Stage stage_ = Stage::ended;
  remote::Status status_ = remote::Status::not_allowed;
  Rank looks_at_ = 0;
  bool has_looked_ = false;  // at any home
  bool has_found_ = false;
  bool has_refused_ = false;  // a home has another layout
  std::uint64_t began_ns_ = 0;
  Rank home_ = 0;               // that is asked
  std::vector<Rank> refusals_;  // have none for this member
  std::int64_t most_keys_ = 0;
  std::array<std::uint64_t, kIndexHeaderBytes / kWordBytes> header_{};
  std::uint64_t word_ = 0;
  Rest rest_;
  Completion done_;
};

}  // namespace dunlin::store
