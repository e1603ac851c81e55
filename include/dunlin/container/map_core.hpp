#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <dunlin/container/containers.hpp>
#include <dunlin/container/slot.hpp>

/// A MapCore is a hash map of plain bytes, spread over the members; HashMap and Set are typed views
/// of it. One thread uses it, the one that polls.
///
/// Invariants (docs/container.md explains and proves them):
///  CON-M1  A slot that is not empty never becomes empty, and the slot of a key stays that key's
///          until its home has offered it to another one (CON-M5).
///  CON-M2  No key has two slots.
///  CON-M3  A word that is reserved or changing is changed only by its owner; after the owner's
///          agreed death only by the member that holds it.
///  CON-M5  A home offers a slot without an element to a key only if the key has no slot, no slot
///          of its sequence is empty, and none ever will be; and one slot at a time.
///  CON-G1  A key's sequence is the windows of its part's tables, table by table. The key's slot
///          is in the first window that had a vacant slot.
///  CON-G2  A call ends without its key only after it has looked at the windows of all tables that
///          the home had at some moment of the call, or up to a vacant slot.
namespace dunlin::container {

struct MapSpec {
  std::string name;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t slots = 0;  // in each member's part
  Style style = Style::automatic;
  bool checked = false;       // whether promises are checked
  std::uint32_t grow_to = 0;  // slots of a part once all its tables are made; 0: it has one table
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

/// The result of a call on this member's own part; `again`: a call of another member is in its way.
struct MapApplied {
  bool again = false;
  remote::Status status = remote::Status::ok;
  bool found = false;
};

/// The contents of a member's part.
struct MapUse {
  std::uint64_t slots = 0;
  std::uint64_t ready = 0;
  std::uint64_t erased = 0;
  std::uint64_t other = 0;  // slots that are reserved, changing, void or half-written
  std::uint32_t tables = 1;
};

struct MapState;
struct MapTable;
class MapCore;
class ValuePool;

class MapOperation : public ContainerOperation {
 public:
  /// Whether the key was there when the call took effect.
  [[nodiscard]] bool found() const noexcept { return found_; }
  /// How many round trips the call has taken so far, of any kind.
  [[nodiscard]] std::uint32_t round_trips() const noexcept { return round_trips_; }

 protected:
  explicit MapOperation(MapCore& map) noexcept;
  /// Sets the memory of the operation. `payload` is the key and, behind it, the value. `window`
  /// begins on a cache line, and is at least kProbeBytes and one slot long. Both belong to the
  /// derived class.
  void use(std::byte* payload, std::span<std::byte> window) noexcept {
    payload_ = payload;
    window_ = window;
  }
  void begin(MapCall call, Promise promise, Style style) noexcept;
  /// Ends the call at once with that status. Requires that it is not under way.
  void refuse(remote::Status status) noexcept;

  // The next three are for maps with a pool.
  /// Sets memory for the former value, which an exchange or a take may use.
  void use_former(std::byte* former) noexcept { former_ = former; }
  void forget_former() noexcept { kept_ = false; }
  /// Whether the former value is in the memory of use_former(); otherwise it is in the payload.
  [[nodiscard]] bool kept_former() const noexcept { return kept_; }
  void set_result(bool found, std::uint32_t round_trips) noexcept {
    found_ = found;
    round_trips_ = round_trips;
  }

  void advance() noexcept override;
  void clean_up() noexcept override;

 private:
  friend struct MapState;
  enum class Stage : std::uint8_t {
    choose,
    ask,
    asked,
    claim,
    claimed,
    look,
    looked,
    publish,
    next_table,
    count,
    counted,
    ask_room,
    room_asked,
    offered,
    done
  };
  void replied(remote::Status status, bool flag,
               std::span<const std::byte> content) noexcept override;

  MapState& map_;
  std::byte* payload_ = nullptr;
  std::span<std::byte> window_;
  MapCall call_kind_ = MapCall::find;
  Promise promise_ = Promise::both;
  Style style_ = Style::automatic;
  Stage stage_ = Stage::done;
  bool found_ = false;
  bool kept_ = false;  // whether the former value is in former_
  bool claims_offer_ = false;
  std::uint8_t serial_ = 0;
  std::uint16_t fingerprint_ = 0;
  std::uint8_t level_ = 0;  // the table's number
  Rank home_ = 0;
  std::uint32_t round_trips_ = 0;
  std::uint32_t slot_ = 0;     // the slot that is looked at, or claimed
  std::uint32_t probed_ = 0;   // slots that belong to other keys
  std::uint32_t looking_ = 0;  // slots in the window
  std::uint32_t restarts_ = 0;
  std::uint64_t expected_ = 0;  // the word that the claim expects
  std::uint64_t desired_ = 0;
  std::uint64_t before_ = 0;
  std::uint64_t ready_ = 0;    // the word that publishes the slot
  std::uint64_t operand_ = 0;  // the addend
  MapTable* table_ = nullptr;  // the table that is searched
  std::byte* former_ = nullptr;
};

class MapCore {
 public:
  /// Throws Error.
  MapCore(Containers& containers, const MapSpec& spec);
  ~MapCore();
  MapCore(const MapCore&) = delete;
  MapCore& operator=(const MapCore&) = delete;

  [[nodiscard]] Containers& containers() const noexcept;
  [[nodiscard]] const MapSpec& spec() const noexcept;
  /// The member that holds a key.
  [[nodiscard]] Rank home_of(const void* key) const noexcept;
  [[nodiscard]] MapUse local_use() const noexcept;
  /// A sentence that says why this member's part grows no more although it may; empty otherwise.
  [[nodiscard]] const std::string& why_not_grown() const noexcept;
  /// Whether apply() is possible although calls of others on this part may be under way, as
  /// `promise` says.
  [[nodiscard]] bool applies(Promise promise) const noexcept;
  /// Executes a whole call on the own part, at once; `payload` is the key and, behind it, the
  /// value. Requires that this member is the key's home, and applies(promise).
  [[nodiscard]] MapApplied apply(MapCall call, Promise promise, std::byte* payload) noexcept;
  /// Hints that apply() will be called for that key soon: prefetches the memory where its search
  /// begins. Requires that this member is the key's home.
  void prefetch(const void* key) const noexcept;
  /// Calls the function with the key and value of each element of the own part; under
  /// Promise::both, each element was there at some moment of the call. With a pool, the value comes
  /// without its length.
  void for_each_local(
      const std::function<void(const std::byte* key, std::span<const std::byte> value)>& see) const;
  /// The pool of long values; null if the map has none.
  [[nodiscard]] ValuePool* values() const noexcept;

 private:
  friend class MapOperation;
  friend class MapScan;
  std::unique_ptr<MapState> state_;
};

/// Throws Error unless batches of that call can be applied to the map.
void check_buffer(const MapCore& map, MapCall call, Promise promise);

}  // namespace dunlin::container
