#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/scan.hpp>

#include "store/call.hpp"
#include "store/format.hpp"

namespace dunlin::store {

struct State;

/// The steps of a scan, and the entries that the last one has seen. A scan goes position by
/// position, at all members: a key has its position for ever, and its place in a chain as long as
/// that has it, and no slot changes its owner while a range of positions is looked at. So a key is
/// seen exactly once.
class Scan {
 public:
  Scan(State& state, ScanOptions options) noexcept : state_(state), options_(options) {}
  [[nodiscard]] remote::Progress& its_progress() const noexcept;

  /// Goes on from that cursor, until it has seen as many chains that are not empty as the options
  /// say, or the last chain of a member.
  [[nodiscard]] remote::Protocol<remote::Status> step(StoreCursor from);
  /// Sees all that a member has of these positions, of whichever slots.
  [[nodiscard]] remote::Protocol<remote::Status> see_member(Rank rank, std::uint64_t from,
                                                            std::uint64_t below);
  [[nodiscard]] StoreCursor next() const noexcept { return next_; }
  [[nodiscard]] std::size_t size() const noexcept { return found_.size(); }
  [[nodiscard]] StoreEntry entry(std::size_t i) const;

 private:
  static constexpr std::size_t kRun = 64;
  struct Found {
    std::size_t at = 0;  // in bytes_: the key, and the value behind it
    std::size_t key_bytes = 0;
    std::size_t value_bytes = 0;
    std::uint64_t version = 0;
    std::uint64_t ttl_ns = kNoExpiry;
  };
  /// A chain that is looked at together with others.
  struct Chain {
    std::uint64_t position = 0;
    std::uint64_t number = 0;  // of its main header
    Place main;
    Bucket bucket;
    std::uint64_t depth = 0;
  };

  void begin(StoreCursor from);
  [[nodiscard]] HomeGate gate() noexcept { return {&state_, at_, &round_trips_}; }
  [[nodiscard]] remote::Protocol<remote::Status> see_range();
  [[nodiscard]] remote::Status look_at_owners();
  [[nodiscard]] remote::Protocol<remote::Status> see_chains(bool may_run);
  [[nodiscard]] remote::Protocol<remote::Status> see_chain();
  [[nodiscard]] remote::Protocol<remote::Status> see_bucket(Place bucket);
  void note_slots();
  void take_entries();
  [[nodiscard]] remote::Status take_depth();
  [[nodiscard]] std::uint64_t hash_of_found(const Found& found) const noexcept;
  [[nodiscard]] std::uint64_t position_of(const Found& found) const noexcept;

  [[nodiscard]] remote::Protocol<remote::Status> pass_over_empty_chains();
  void plan_run();
  [[nodiscard]] std::uint64_t end_of_empty_chains(std::size_t empty) noexcept;

  State& state_;
  ScanOptions options_;
  StoreCursor next_ = 0;
  std::vector<Found> found_;
  std::vector<std::byte> bytes_;

  // where the step is
  std::uint64_t position_ = 0;  // of the chains: the first that they have
  bool knows_of_lost_ = false;
  bool sees_owned_ = true;                // only: keys of slots that the member owns
  std::vector<Rank> owners_;              // of all slots, in
  std::uint64_t owners_in_ = UINT64_MAX;  // these routes
  Rank at_ = 0;                           // of these, the one whose chain is looked at
  std::uint64_t end_ = 0;                 // behind its chain, or chains
  std::uint64_t number_ = 0;              // of the chain's main header
  Place main_;
  std::size_t found_before_ = 0;     // in found_, of other ranges
  std::size_t found_of_member_ = 0;  // in found_, of other members
  std::uint32_t left_ = 0;           // chains of this step that are not empty
  bool is_empty_ = false;            // the chain, or chains
  bool more_are_empty_ = false;      // perhaps, behind them
  bool was_empty_ = false;           // all of the range before: those that follow may be, too
  /// How often this step read a bucket again, because an entry was being written. From kTriesAtOnce
  /// on, the scan rests before it reads.
  std::uint32_t tries_ = 0;
  std::uint32_t round_trips_ = 0;
  Rest rest_;

  // what it reads into
  std::vector<Chain> run_;
  std::optional<remote::Batch<kRun, HomeGate>> reading_run_;  // here, as frames are smaller
  std::uint32_t pending_ = 0;  // of the bucket: a bit for each slot that is not done with
  std::array<std::size_t, kSlots> read_bytes_{};
  std::array<Image, kSlots> entries_;
  std::uint64_t depth_ = 0;
  alignas(kCacheLineBytes) Bucket bucket_;
};

}  // namespace dunlin::store
