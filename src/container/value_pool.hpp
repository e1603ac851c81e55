#pragma once

#include <cstdint>
#include <optional>
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

struct PooledCall;

/// Waits for a call that is led to its end in any case, because its slot may be changing. Caller
/// and call know each other, in two frames of which either may go first.
struct Caller {
  Caller() = default;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller();
  PooledCall* call = nullptr;  // while it is under way
  PooledResult result = {.status = remote::Status::no_memory};
};

/// A call that is under way: what is called, and what it holds. The destructor frees the block that
/// it has allocated, unless a slot may refer to it (CON-V5).
struct PooledCall {
  PooledCall(ValuePool& its_pool, Caller* its_caller, MapCall its_call, Promise its_promise,
             Style its_style, const std::byte* key, std::span<const std::byte> value);
  PooledCall(const PooledCall&) = delete;
  PooledCall& operator=(const PooledCall&) = delete;
  ~PooledCall();

  ValuePool& pool;
  Caller* caller;
  bool is_given_up = false;
  MapCall call;
  Promise promise;
  Style style;
  Rank home;
  CallMemory payload;                      // key and cell
  ValueReference own;                      // to the value that is written, if it needs a block
  CallMemory image;                        // of that block
  std::optional<remote::SlabBlock> block;  // once it is allocated
  bool is_linked = false;                  // it counts as used
  bool may_be_referred = false;            // by a slot
};

/// The blocks of a map with a pool, and the calls that use them.
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
  /// The protocol of a call; copies key and value when it begins.
  remote::Protocol<PooledResult> run(MapCall call, Promise promise, Style style,
                                     const std::byte* key, std::span<const std::byte> value);
  /// As MapCore::at_once_pooled.
  [[nodiscard]] std::optional<PooledResult> at_once(MapCall call, Promise promise, Style style,
                                                    std::byte* payload,
                                                    std::span<const std::byte> value);
  [[nodiscard]] remote::Progress& its_progress() const noexcept;

  /// Frees a block that no slot refers to any more (CON-V5), now or in a later poll.
  void free(Rank home, const ValueReference& reference) noexcept;
  void free(remote::SlabBlock block) noexcept;
  /// Reads a block in mapped memory, with its stamps; whether it is the reference's.
  [[nodiscard]] bool fetch(Rank home, const ValueReference& reference,
                           std::byte* image) const noexcept;
  /// The value of a cell in mapped memory; `room` is for one that lies in a block. False if that
  /// block has been used anew since.
  [[nodiscard]] bool resolve(Rank home, std::vector<std::byte>& room,
                             std::span<const std::byte>& value) const;

  std::size_t poll_part() override;
  void members_changed() override {}

 private:
  friend struct PooledCall;
  remote::Protocol<remote::Status> lead(Caller& caller, MapCall call, Promise promise, Style style,
                                        const std::byte* key, std::span<const std::byte> value);
  remote::Protocol<PooledResult> execute(PooledCall& one);
  remote::Protocol<remote::Status> allocate(PooledCall& one);
  /// Reads the block of a reference; `busy`: it has another value by now.
  remote::Protocol<remote::Status> read_block(PooledResult& into, Rank home,
                                              ValueReference reference);
  /// Makes the cell of a value; false if that needs a block.
  [[nodiscard]] bool put_inline(std::span<const std::byte> value, std::byte* cell) const noexcept;
  /// Makes room for a block of each call that is under way, and one more: free() needs no memory.
  void reserve_frees() { to_free_.reserve(to_free_.size() + calls_ + 1); }

  MapState& map_;
  remote::SlabPool slabs_;
  Rank rank_;
  std::uint64_t stamps_ = 0;
  std::vector<remote::SlabBlock> to_free_;
  std::size_t calls_ = 0;  // that are under way
  remote::Runs protocols_;
};

/// Whether the image of a block is whole and the reference's (CON-V3).
[[nodiscard]] bool is_block_of(const ValueReference& reference, const std::byte* image) noexcept;

}  // namespace dunlin::container
