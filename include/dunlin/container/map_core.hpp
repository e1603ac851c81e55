#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/container/call_memory.hpp>
#include <dunlin/container/containers.hpp>
#include <dunlin/container/slot.hpp>

/// A MapCore is a hash map of plain bytes, spread over the members; HashMap and Set are typed views
/// of it. One thread uses it, the one that polls.
///
/// Invariants (docs/container.md explains and proves them):
///  CON-M1  A slot that is not empty never becomes empty. The slot of a key stays that key's until
///          its home has offered it to another one (CON-M5), or it becomes void.
///  CON-M2  No key has two slots.
///  CON-M3  A word that is reserved or changing is changed only by its owner; after the owner's
///          agreed death only by the member that holds it.
///  CON-M5  A home offers a slot without an element to a key only if the key has no slot, and no
///          slot of its open windows is empty; and one slot at a time.
///  CON-K2  A call that changes what the map has for a key with a packed slot does so by one
///          compare-and-swap.
///  CON-K3  A packed slot whose word has been ready once stays its key's for ever.
///  CON-G1  A key's sequence is its windows, one after the other. The key's slot is in an open
///          window, and no slot before it is empty.
///  CON-G2  A call ends without its key only after it has passed all windows that were open at some
///          moment of the call, or seen an empty slot.
///  CON-G5  No offer can be taken any more when a window is opened. An insert that learns of a new
///          window begins with the first one again.
namespace dunlin::container {

struct MapSpec {
  std::string name;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t slots = 0;  // in each member's part
  Style style = Style::automatic;
  bool checked = false;       // whether promises are checked
  std::uint32_t grow_to = 0;  // slots of a part once all its tables are made; 0: it has one table
  bool packed = false;        // 16 bytes for a key of 8 bytes and a value of up to 4
  // With a pool (pooled_value.hpp), value_bytes is the number of bytes of a value that a slot
  // holds.
  std::uint32_t longest_value = 0;  // 0: the map has no pool
  std::size_t pool_bytes = 0;       // each member's pool
};

/// `exchange` and `take` are an assign and an erase that return the former value; only maps with a
/// pool have them.
enum class MapCall : std::uint8_t { insert, assign, find, erase, add, exchange, take };

/// Whether the call writes a key that the map does not have.
[[nodiscard]] constexpr bool takes_slot(MapCall call) noexcept {
  return call == MapCall::insert || call == MapCall::assign || call == MapCall::add ||
         call == MapCall::exchange;
}

[[nodiscard]] constexpr bool needs_pool(MapCall call) noexcept {
  return call == MapCall::exchange || call == MapCall::take;
}
/// Whether the call needs the former value of a key that the map has.
[[nodiscard]] constexpr bool needs_former(MapCall call) noexcept {
  return call == MapCall::add || needs_pool(call);
}

/// How a call in mapped memory has ended; or `again`: another call is in its way, or it needs a
/// protocol, and nothing is done. One word, which stays in a register.
class MapApplied {
 public:
  constexpr MapApplied(
      remote::Status status,
      bool found = false) noexcept  // NOLINT(google-explicit-constructor): a status says it
      : word_(static_cast<std::uint32_t>(status) << 1 | (found ? 1 : 0)) {}
  [[nodiscard]] static constexpr MapApplied again() noexcept { return remote::Status::under_way; }
  [[nodiscard]] constexpr bool is_again() const noexcept {
    return status() == remote::Status::under_way;
  }
  [[nodiscard]] constexpr remote::Status status() const noexcept {
    return static_cast<remote::Status>(word_ >> 1);
  }
  [[nodiscard]] constexpr bool found() const noexcept { return (word_ & 1) != 0; }

 private:
  std::uint32_t word_;
};

/// Whether the value that belongs to the call's key is in the payload behind such a call.
[[nodiscard]] constexpr bool has_value(MapCall call, bool found) noexcept {
  return call == MapCall::add || (found && call != MapCall::erase && call != MapCall::assign);
}

/// The contents of a member's part.
struct MapUse {
  std::uint64_t slots = 0;
  std::uint64_t ready = 0;
  std::uint64_t erased = 0;
  std::uint64_t other = 0;  // slots that are reserved, changing, void or half-written
  std::uint32_t tables = 1;
  std::uint32_t windows = 1;  // where a key may be: 16 slots each, or 32 packed ones
};

struct MapState;
class ValuePool;

/// How a call on a map has ended.
struct MapResult {
  remote::Status status = remote::Status::ok;
  bool found = false;  // whether the key was there when the call took effect
  std::uint32_t round_trips = 0;
  std::span<const std::byte> value = {};  // as a slot has it; of an exchange or take the former one
  CallMemory memory = {};                 // that has the value
};

/// How a call on a map with a pool has ended; the value comes without its length.
struct PooledResult {
  remote::Status status = remote::Status::ok;
  bool found = false;
  std::uint32_t round_trips = 0;
  std::vector<std::byte> value = {};
};

class MapCore {
 public:
  /// Throws Error.
  MapCore(Containers& containers, const MapSpec& spec);
  ~MapCore();
  MapCore(const MapCore&) = delete;
  MapCore& operator=(const MapCore&) = delete;

  [[nodiscard]] Containers& containers() const noexcept;
  [[nodiscard]] remote::Progress& progress() const noexcept { return progress_; }
  [[nodiscard]] const MapSpec& spec() const noexcept;
  /// The member that holds a key.
  [[nodiscard]] Rank home_of(const void* key) const noexcept;
  [[nodiscard]] MapUse local_use() const noexcept;
  /// A sentence that says why this member's part grows no more although it may; empty otherwise.
  [[nodiscard]] const std::string& why_not_grown() const noexcept;
  /// Whether apply() is possible although calls of others on this part may be under way, as
  /// `promise` says.
  [[nodiscard]] bool applies(Promise promise) const noexcept;
  /// Executes a call in mapped memory that meets nothing unusual; else `again`: the protocol does
  /// it. `payload` is the key and, behind it, the value that is written or found.
  [[nodiscard]] MapApplied at_once(MapCall call, Promise promise, Style style,
                                   std::byte* payload) noexcept;
  /// The protocol of any call; copies the payload when it begins.
  [[nodiscard]] remote::Protocol<MapResult> run(MapCall call, Promise promise, Style style,
                                                const std::byte* payload);
  // These two are for maps with a pool; the payload is the key, and has room for a slot's value.
  [[nodiscard]] std::optional<PooledResult> at_once_pooled(MapCall call, Promise promise,
                                                           Style style, std::byte* payload,
                                                           std::span<const std::byte> value);
  [[nodiscard]] remote::Protocol<PooledResult> run_pooled(MapCall call, Promise promise,
                                                          Style style, const std::byte* key,
                                                          std::span<const std::byte> value);

  /// Executes a whole call on the own part, at once; `payload` is the key and, behind it, the
  /// value. `again`: it has met another call, or the part has opened a window for it; call anew.
  /// Requires that this member is the key's home, and applies(promise).
  [[nodiscard]] MapApplied apply(MapCall call, Promise promise, std::byte* payload) noexcept;
  /// Gives the key of the payload the value that `change` makes of its former one, on the own part.
  /// `change(found, value)` is called at least once: with the former value, which it replaces, or
  /// with room for one. Another status than `ok` of it ends the update; `busy`: another call is in
  /// the way. Throws what `change` throws.
  using Change = std::function<remote::Status(bool found, std::byte* value)>;
  [[nodiscard]] remote::Status update(std::byte* payload, const Change& change);
  /// Hints that the key will be used soon: prefetches the memory where its search begins, if it is
  /// mapped here.
  void prefetch(const void* key) const noexcept;
  /// Calls the function with the key and value of each element of the own part; under
  /// Promise::both, each element was there at some moment of the call. With a pool, the value comes
  /// without its length.
  void for_each_local(
      const std::function<void(const std::byte* key, std::span<const std::byte> value)>& see) const;
  /// The pool of long values; null if the map has none.
  [[nodiscard]] ValuePool* values() const noexcept;

 private:
  friend class MapScan;
  remote::Progress& progress_;
  std::unique_ptr<MapState> state_;
};

/// Throws Error unless batches of that call can be applied to the map.
void check_buffer(const MapCore& map, MapCall call, Promise promise);

}  // namespace dunlin::container
