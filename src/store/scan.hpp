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
/// position, chain by chain, slot by slot. A key keeps its slot as long as its chain has it, and
/// its position for ever, so it is seen exactly once.
class Scan {
 public:
  Scan(State& state, ScanOptions options) noexcept : state_(state), options_(options) {}
  [[nodiscard]] remote::Progress& its_progress() const noexcept;

  /// Goes on from that cursor, until it has seen as many chains that are not empty as the options
  /// say, or the last chain of a member.
  [[nodiscard]] remote::Protocol<remote::Status> step(StoreCursor from);
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
  [[nodiscard]] remote::Protocol<remote::Status> find_home();
  [[nodiscard]] remote::Protocol<remote::Status> see_chain();
  [[nodiscard]] remote::Protocol<remote::Status> see_bucket(Place bucket);
  void note_slots();
  void take_entries();
  [[nodiscard]] remote::Status take_depth();
  [[nodiscard]] std::uint64_t scanned_below() const noexcept;
  void go_on(std::uint64_t position) noexcept;
  [[nodiscard]] StoreCursor behind_what_is_lost() const noexcept;

  [[nodiscard]] remote::Protocol<remote::Status> pass_over_empty_chains();
  void plan_run();
  [[nodiscard]] std::uint64_t end_of_empty_chains(std::size_t empty) noexcept;

  State& state_;
  ScanOptions options_;
  StoreCursor next_ = 0;
  std::vector<Found> found_;
  std::vector<std::byte> bytes_;

  // where the step is
  Rank home_ = 0;               // whose keys are returned
  std::uint64_t position_ = 0;  // of the chain: the first that it has
  Rank at_ = 0;                 // where the keys are: the same, or the one that has taken over
  std::uint64_t below_ = 0;     // what was known to be there when the chain was begun
  std::uint64_t number_ = 0;    // of the chain's main header
  Place main_;
  std::size_t found_before_ = 0;  // in found_, of other chains
  std::uint32_t left_ = 0;        // chains of this step that are not empty
  bool is_empty_ = false;         // the chain
  bool was_empty_ = false;        // the one before it: those that follow may be, too
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
