#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <dunlin/container/pooled_value.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "container/hub.hpp"

/// Long values of one map: the pool, and calls that use it.
namespace dunlin::container {

/// A member's own number in the upper bits, so that no two members write the same stamp.
inline constexpr std::uint32_t kStampCounterBits = 52;
[[nodiscard]] constexpr std::uint64_t stamp_of(Rank rank, std::uint64_t number) noexcept {
  return std::uint64_t{rank} << kStampCounterBits | number;
}
static_assert(kMaxRanks == 1U << (64 - kStampCounterBits), "a rank has the other 12 bits");
static_assert(stamp_of(2, 3) == 0x0020000000000003, "docs/formats/container.md");

/// The block of a value that does not fit into its slot.
[[nodiscard]] constexpr SlotShape block_shape(std::uint32_t bytes) noexcept {
  return shape_of(bytes);
}
static_assert(shape_of(kReferenceBytes + 1).slot_bytes == kCacheLineBytes, "whole lines");

/// The blocks of a map with a pool, and what is to be done for calls that have ended.
class ValuePool final : public remote::Part {
 public:
  /// Throws Error if the pool has no room for the longest value.
  static void check(const MapSpec& spec);
  explicit ValuePool(MapState& map);
  ~ValuePool() override;

  [[nodiscard]] MapState& map() const noexcept { return map_; }
  [[nodiscard]] remote::SlabPool& slabs() noexcept { return slabs_; }
  [[nodiscard]] const remote::SlabPool& slabs() const noexcept { return slabs_; }
  /// CON-V3.
  [[nodiscard]] std::uint64_t next_stamp() noexcept { return stamp_of(rank_, ++stamps_); }
  /// Whether a block could be there: a check of what a peer has written.
  [[nodiscard]] bool is_sound(const ValueReference& reference) const noexcept;
  /// Frees a block that no slot refers to any more (CON-V5), now or in a later poll.
  void free(Rank home, const ValueReference& reference) noexcept;
  void free(remote::SlabBlock block) noexcept;
  /// Leads a call to its end that its caller has given up.
  void adopt(std::unique_ptr<PooledCall, PooledCallDeleter> call) noexcept;
  /// Reads a block of the own part, with its stamps; whether it is the reference's.
  [[nodiscard]] bool fetch_own(const ValueReference& reference, std::byte* image) const noexcept;
  /// The value of a cell of the own part; `room` is for one that lies in a block. False if that
  /// block has been used anew since.
  [[nodiscard]] bool resolve(std::vector<std::byte>& room, std::span<const std::byte>& value) const;

  std::size_t poll_part() override;
  void members_changed() override {}

 private:
  MapState& map_;
  remote::SlabPool slabs_;
  Rank rank_;
  std::uint64_t stamps_ = 0;
  std::vector<remote::SlabBlock> to_free_;
  std::vector<std::unique_ptr<PooledCall, PooledCallDeleter>> adopted_;
};

/// Whether the image of a block is whole and the reference's (CON-V3).
[[nodiscard]] bool is_block_of(const ValueReference& reference, const std::byte* image) noexcept;

/// A call on the core of a map, with cells for values.
class CellOperation final : public MapOperation {
 public:
  explicit CellOperation(MapCore& map);
  ~CellOperation() override { abandon(); }

  [[nodiscard]] std::byte* key() noexcept { return payload_.data(); }
  [[nodiscard]] std::byte* cell() noexcept { return payload_.data() + key_bytes_; }
  /// Of an exchange or take that found the key.
  [[nodiscard]] const std::byte* former() noexcept {
    return kept_former() ? former_.data() : cell();
  }
  void run(MapCall call, Promise promise, Style style) noexcept {
    forget_former();
    begin(call, promise, style);
  }

 private:
  std::uint32_t key_bytes_;
  std::vector<std::byte> payload_;
  std::vector<std::byte> former_;
  std::vector<CacheLine> window_;
};

/// One call on a map with a pool, step by step: the block, the call on the core, the block again.
class PooledCall {
 public:
  PooledCall(MapCore& core, ValuePool& pool);
  ~PooledCall();
  PooledCall(const PooledCall&) = delete;
  PooledCall& operator=(const PooledCall&) = delete;

  void begin(MapCall call, const std::byte* key, std::span<const std::byte> value, Promise promise,
             Style style) noexcept;
  /// Takes the next steps; its result once it has ended.
  [[nodiscard]] remote::Status step() noexcept;
  /// Its caller gives it up. Whether that was possible; else it must be led to its end.
  [[nodiscard]] bool give_up() noexcept;

  [[nodiscard]] bool found() const noexcept { return found_; }
  [[nodiscard]] std::uint32_t round_trips() const noexcept { return round_trips_; }
  [[nodiscard]] std::span<const std::byte> value() const noexcept { return value_; }

 private:
  enum class Stage : std::uint8_t { allocate, store, stored, call, called, read, fetched, settle };
  /// Whether the next step can follow at once.
  [[nodiscard]] bool go_on() noexcept;
  [[nodiscard]] bool allocate() noexcept;
  [[nodiscard]] bool store() noexcept;
  void called() noexcept;
  [[nodiscard]] bool read() noexcept;
  void fetched() noexcept;
  void finish(remote::Status status) noexcept;
  void drop_block() noexcept;
  [[nodiscard]] std::byte* image(std::size_t bytes) noexcept;

  ValuePool& pool_;
  MapState& map_;
  CellOperation op_;
  MapCall call_ = MapCall::find;
  Promise promise_ = Promise::both;
  Style style_ = Style::automatic;
  Stage stage_ = Stage::settle;
  bool has_block_ = false;    // that this call has allocated
  bool is_linked_ = false;    // it counts as used
  bool is_referred_ = false;  // a slot may refer to it
  bool found_ = false;
  bool wants_value_ = true;     // the caller has not given the call up
  bool was_asked_for_ = false;  // a block, in vain
  Rank home_ = 0;
  std::uint32_t round_trips_ = 0;
  remote::Status result_ = remote::Status::ok;
  remote::SlabBlock block_;
  ValueReference own_;   // to that block
  ValueReference seen_;  // in the slot
  std::size_t posted_ = 0;
  std::vector<std::byte> cell_;   // that is written
  std::vector<CacheLine> image_;  // of the block that is written, and later of the one that is read
  std::vector<std::byte> content_;
  std::span<const std::byte> value_;
  Completion done_;
};

}  // namespace dunlin::container
