#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dunlin/container/map_core.hpp>

#include "container/check.hpp"
#include "container/hub.hpp"
#include "container/load_estimate.hpp"
#include "container/map_slot.hpp"
#include "container/steps.hpp"
#include "container/value_pool.hpp"

namespace dunlin::container {

using remote::Protocol;
using remote::Status;

/// Slots of each member's part, in a region of their own: the first ones, or some that were added.
struct MapTable {
  /// Further tables have the generation of the first one: members add unequal numbers of them.
  MapTable(Hub& hub, const MapSpec& spec, const SlotShape& shape, std::uint32_t level,
           std::uint64_t generation);

  [[nodiscard]] std::uint32_t first_slot(std::uint64_t hash) const noexcept {
    return scale(static_cast<std::uint32_t>(hash), slots);
  }
  std::uint32_t slots;
  Site site;
};

/// Slots where a key may be. Its sequence is one window after the other (CON-G1).
struct KeyWindow {
  std::uint32_t level;  // the table's number
  std::uint32_t first;
  std::uint32_t slots;
};

/// How many slots each table has that a part may come to; together `grow_to`.
[[nodiscard]] std::vector<std::uint32_t> table_sizes(const MapSpec& spec);

[[nodiscard]] SlotShape shape_of(const MapSpec& spec) noexcept;
/// How the cost model takes a call on such a map.
[[nodiscard]] Call modelled_call(const MapSpec& spec, MapCall call) noexcept;
/// What a process knows of each call when it makes the map.
[[nodiscard]] Situation situation_of(const MapSpec& spec, Promise promise,
                                     std::uint32_t members) noexcept;

/// Slots in a key's window, in a table that has at least so many.
[[nodiscard]] constexpr std::uint32_t window_slots(const MapSpec& spec) noexcept {
  return spec.packed ? kPackedTableWindow : kTableWindow;
}

/// A request beside those of MapCall: the caller has found no room in `word` windows for a key with
/// the hash that follows.
inline constexpr std::uint8_t kAskRoom = 7;
static_assert(kAskRoom == static_cast<std::uint8_t>(MapCall::take) + 1);

/// As a member's record of calls under way counts it.
[[nodiscard]] constexpr std::uint32_t checked_call(MapCall call) noexcept {
  if (call == MapCall::exchange) return static_cast<std::uint32_t>(MapCall::assign);
  if (call == MapCall::take) return static_cast<std::uint32_t>(MapCall::erase);
  return static_cast<std::uint32_t>(call);
}

/// A slot without an element, which a call may claim for a key (CON-M5); part of a reply.
struct OfferedSlot {
  std::uint32_t level = 0;
  std::uint32_t slot = 0;
  std::uint64_t word = 0;  // that it has
};
static_assert(sizeof(OfferedSlot) == 16);

/// What a home says to a call that has found no room.
struct Room {
  /// `ok`: the offered slot, or more windows are open; `name_taken`: the key has a slot, or there
  /// is an empty one; `busy`: ask again; `full`: there is none.
  Status status = Status::full;
  std::optional<OfferedSlot> offered = {};
};

/// A call that is under way: what is called, and the memory that it works with.
struct MapRequest {
  MapRequest(MapState& map, MapCall its_call, Promise its_promise, Style its_style,
             const std::byte* its_payload) noexcept;
  [[nodiscard]] MapResult ended(Status status) noexcept;
  [[nodiscard]] std::byte* value() const noexcept { return payload + key_bytes; }

  MapCall call;
  Promise promise;
  Style style;
  std::uint32_t serial;
  std::uint16_t fingerprint;
  std::uint32_t key_bytes, value_bytes;
  std::uint64_t hash;
  Rank home;
  bool found = false;
  std::uint32_t round_trips = 0;
  std::uint64_t addend;
  CallMemory memory;             // for the next three
  std::byte* window = nullptr;   // the slots that are read, or the one that is written
  std::byte* payload = nullptr;  // key and value
  std::byte* former = nullptr;   // a value, if the map has a pool
};

/// Where a call is in the sequence of its key.
struct Probe {
  Probe(MapState& map, const MapRequest& one) noexcept;
  void enter(MapState& map, std::uint32_t number, std::uint64_t hash) noexcept;
  void pass() noexcept;
  [[nodiscard]] bool has_passed_window() const noexcept { return probed >= window_end; }
  /// Begins with the first slot again.
  void restart(MapState& map, const MapRequest& one) noexcept;

  MapTable* table = nullptr;
  std::uint32_t level = 0;   // the table's number
  std::uint32_t window = 0;  // the window's number
  std::uint32_t open = 1;    // windows of the part that were known to be open at the beginning
  std::uint32_t slot = 0;
  std::uint32_t probed = 0;           // slots of the table that belong to other keys
  std::uint32_t window_end = 0;       // `probed` behind the window
  std::optional<std::uint64_t> word;  // the slot's, if the call knows it without a look
  std::uint64_t half = 0;             // the slot's, if the last look has found it half written
  bool is_offered = false;            // by the home (CON-M5)
  bool is_keys = false;               // the slot is the key's and stays so (CON-K3)
  std::uint32_t vain_restarts = 0;    // in which no other call has taken a slot meanwhile
};

/// A slot that a call claims. Unless the claim has been lost or published as a whole, the
/// destructor owes its mend (CON-P5). The claim may be on its way still: the mend comes behind it,
/// and changes nothing if there is nothing to do.
class Claim {
 public:
  Claim(MapState& map, const Probe& at, Rank home, std::uint64_t word);
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim();
  void settle() noexcept { is_settled_ = true; }

 private:
  MapState& map_;
  MapTable& table_;
  Rank home_;
  std::uint32_t slot_;
  std::uint64_t word_;
  bool is_settled_ = false;
};

struct MapState final : Served {
  MapState(Containers& containers, MapSpec its_spec);
  ~MapState() override;
  [[nodiscard]] remote::Progress& its_progress() const noexcept { return hub.progress; }

  // --- calls: map_call.cpp -----------------------------------------------------------------------
  /// As MapCore::at_once.
  [[nodiscard]] MapApplied begin(MapCall call, Promise promise, Style style,
                                 std::byte* payload) noexcept;
  Protocol<MapResult> run(MapRequest one);
  Protocol<Status> by_message(MapRequest& one);
  Protocol<Status> one_sided(MapRequest& one);
  /// Claims and writes the slot, whose word is `seen`; `busy`: it has another word.
  Protocol<Status> change(MapRequest& one, Probe& at, std::uint64_t seen, std::uint64_t claimed);
  /// What the slots in the window mean; `at` goes on to the first one that matters.
  [[nodiscard]] Sight look(const MapRequest& one, Probe& at, std::uint32_t slots,
                           std::byte*& image) const noexcept;
  [[nodiscard]] std::uint64_t claim_of(const MapRequest& one, Sight sight,
                                       std::uint64_t seen) const noexcept;
  /// Whether a slot with this word of a claim is still to be written.
  [[nodiscard]] bool is_unpublished(std::uint64_t claim) const noexcept {
    return spec.packed ? PackedSlot::is_unpublished(claim) : SmallMapSlot::is_unpublished(claim);
  }
  /// The image of a slot that has been claimed, published.
  void encode_slot(const std::byte* payload, std::uint64_t claim, std::byte* slot) const noexcept;
  void use_former(MapRequest& one, const std::byte* slot) const noexcept;
  [[nodiscard]] std::uint32_t slots_to_read(const MapRequest& one, const Probe& at) const noexcept;
  [[nodiscard]] Style style_of(const MapRequest& one) noexcept;
  [[nodiscard]] Rank home_of(std::uint64_t hash) const noexcept {
    return scale(static_cast<std::uint32_t>(hash >> 32), members);
  }
  /// Makes room for a mend for each claim, and one more: what the destructor of a claim owes needs
  /// no memory.
  void reserve_mends();

  // --- growth: map_growth.cpp --------------------------------------------------------------------
  /// Behind a window without a vacant slot. `under_way`: the search goes on where `at` is now.
  Protocol<Status> pass_window(MapRequest& one, Probe& at);
  /// Asks the home for room behind the windows that the call has passed.
  Protocol<Room> ask_room(MapRequest& one, std::uint32_t windows_seen);
  /// How a call on the own part ends that has passed all open windows.
  [[nodiscard]] MapApplied passed_all(MapCall call, Promise promise, std::uint64_t hash,
                                      std::byte* payload) noexcept;
  [[nodiscard]] KeyWindow window(std::uint32_t number, std::uint64_t hash) const noexcept;
  /// How many tables a member uses, as far as this one knows.
  [[nodiscard]] std::uint32_t tables_of(Rank home) const noexcept {
    return std::min(open[home], static_cast<std::uint32_t>(sizes.size()));
  }

  // --- room at the home: map_reuse.cpp -----------------------------------------------------------
  /// The answer to a member that has found no room in so many windows.
  [[nodiscard]] Room room_behind(std::uint64_t windows_seen, std::uint64_t hash);
  [[nodiscard]] Room offer(std::uint64_t hash);
  /// Makes all offers void.
  Protocol<Status> void_offers();
  /// Opens the next window of each key of this part.
  Protocol<Status> open_window();
  [[nodiscard]] bool may_open() const noexcept {
    const std::uint32_t next = open[self];
    return next < most_windows &&
           (next < tables() || next >= sizes.size() || why_not_grown.empty());
  }
  /// The hash spreads the keys over the founders.
  [[nodiscard]] bool has_part() const noexcept { return self < members; }
  /// Tables of the own part.
  [[nodiscard]] std::uint32_t own_tables() const noexcept { return has_part() ? tables() : 0; }
  /// Tables that this member can reach at others, too.
  [[nodiscard]] std::uint32_t tables() const noexcept {
    return 1 + static_cast<std::uint32_t>(later.size());
  }
  [[nodiscard]] MapTable& table(std::uint32_t level) noexcept {
    return level == 0 ? first : *later[level - 1];
  }
  [[nodiscard]] const MapTable& table(std::uint32_t level) const noexcept {
    return level == 0 ? first : *later[level - 1];
  }
  /// poll_part() makes tables until there are so many, or this process can make no more.
  void want_tables(std::uint32_t count) noexcept;
  void grow();
  /// Learns a member's count of open windows, which a peer has written; whether that is news.
  bool learn_windows(Rank home, std::uint64_t count) noexcept;

  // --- what both ways share ----------------------------------------------------------------------
  [[nodiscard]] Sight judge(MapCall call, std::uint16_t fingerprint, const std::byte* key,
                            const std::byte* image) const noexcept;

  // --- in mapped memory: map_local.cpp -----------------------------------------------------------
  /// The whole call, if the part is mapped here, and nothing is in its way: the protocol does what
  /// this does not. `payload` is key and value, and `hash` the key's. Requires that promises are
  /// not checked, or that the call is announced.
  [[nodiscard]] MapApplied at_once(std::uint64_t hash, MapCall call, Promise promise, Style style,
                                   std::byte* payload) noexcept;
  /// Whether a call on another's part may use the memory itself, if that is mapped.
  [[nodiscard]] bool goes_directly(MapCall call, Style style) const noexcept;
  /// Asks for the memory where a call on that hash will begin.
  void prefetch(std::uint64_t hash) const noexcept;
  [[nodiscard]] std::byte* mapped(const MapTable& of, Rank home) const noexcept;
  [[nodiscard]] MapApplied local(Rank home, std::uint64_t hash, MapCall call, Promise promise,
                                 std::byte* payload) noexcept;
  [[nodiscard]] MapApplied local_find(Rank home, std::uint64_t hash, std::byte* payload) noexcept;
  /// The way of each call, with slots that are read as `Form` does.
  template <class Form, bool Finds>
  [[nodiscard, gnu::noinline]] MapApplied search(Rank home, std::uint64_t hash, MapCall its_call,
                                                 Promise promise, std::byte* payload) noexcept;
  /// Behind so many windows: whether the search goes on in the next one; if not, how the call has
  /// ended.
  [[nodiscard]] bool goes_on(Rank home, std::uint32_t windows, std::uint64_t hash, MapCall call,
                             Promise promise, std::byte* payload, MapApplied& ended) noexcept;
  /// Does what the call does at the slot where its search has ended, whose image is `image`.
  [[nodiscard]] MapApplied act(MapCall call, Promise promise, Sight sight, std::byte* slot,
                               std::uint16_t fingerprint, std::byte* payload) noexcept;
  /// Does so at a slot with that word, which has no element.
  [[nodiscard]] MapApplied act_on_vacant(MapCall call, Promise promise, std::uint64_t seen,
                                         std::byte* slot, std::uint16_t fingerprint,
                                         std::byte* payload) noexcept;
  /// Does so at a slot that is in registers.
  template <class View>
  [[nodiscard]] MapApplied act(MapCall call, Promise promise, Sight sight, const View& seen,
                               std::byte* slot, std::uint16_t fingerprint,
                               std::byte* payload) noexcept;
  void publish_local(std::byte* slot, std::uint64_t claim, const std::byte* payload) noexcept;
  [[nodiscard]] MapApplied exchange_local(std::byte* slot, std::uint64_t claim,
                                          std::byte* payload) noexcept;
  [[nodiscard]] bool writes_directly(Promise promise) const noexcept;
  /// As MapCore::update.
  [[nodiscard]] Status update(std::byte* payload, const MapCore::Change& change);
  /// Asks for the value that the update under way leaves; `threw` if that has thrown; `busy` if it
  /// was asked too often.
  [[nodiscard]] Status change_value(bool found, std::byte* value) noexcept;

  void handle(Rank from, const MessageHead& head, std::span<const std::byte> content) override;
  std::size_t poll_part() override;
  void members_changed() override;
  void mend_of_the_dead(std::uint32_t level, std::uint32_t slot);
  [[nodiscard]] std::uint64_t own_slots() const noexcept;
  /// Counts a further piece of the own part; how many elements the last complete count has found.
  [[nodiscard]] std::uint64_t count_piece() noexcept;

  /// Adds to the value of a payload: a word of 4 or 8 bytes, as adds() demands.
  void add_to(std::byte* payload, std::uint64_t operand) const noexcept;
  [[nodiscard]] std::uint64_t operand_of(const std::byte* payload) const noexcept;
  [[nodiscard]] bool adds() const noexcept {
    return spec.value_bytes == 4 || spec.value_bytes == 8;
  }

  [[nodiscard]] std::uint64_t offset_of(std::uint32_t slot) const noexcept {
    return kCacheLineBytes + std::uint64_t{slot} * shape.slot_bytes;
  }
  [[nodiscard]] std::uint64_t offset_of_word(std::uint32_t slot) const noexcept {
    return offset_of(slot) + word_offset(shape);
  }
  [[nodiscard]] std::byte* own(const MapTable& of, std::uint32_t slot) const noexcept {
    return of.site.memory() + offset_of(slot);
  }
  [[nodiscard]] std::uint64_t& word_at_own(const MapTable& of, std::uint32_t slot) const noexcept {
    return word_of_slot(own(of, slot) + word_offset(shape), 0);
  }
  [[nodiscard]] std::uint64_t own_word(const MapTable& of, std::uint32_t slot) const noexcept {
    return memory::load(word_at_own(of, slot));
  }
  /// The word `from` at that place becomes `to`, when the fabric takes it.
  struct Mend {
    MapTable* table;
    Rank home;
    std::uint32_t slot;
    std::uint64_t from, to;
  };

  Containers& containers;
  Hub& hub;
  StyleChoice styles;
  LoadEstimate load;
  const Rank self;
  const std::uint32_t members;
  MapSpec spec;
  SlotShape shape;
  bool coherent;  // the processor's atomics and the fabric's exclude each other
  const bool is_small =
      shape.slot_bytes == kSmallSlotBytes && spec.key_bytes == 8 && spec.value_bytes <= 8;
  MapTable first;
  std::vector<std::unique_ptr<MapTable>> later;
  std::vector<std::uint32_t> sizes;  // of all tables that there may ever be
  const std::uint32_t first_slots = std::min(spec.slots, window_slots(spec));  // in first windows
  /// How many windows a key has once all are open.
  const std::uint32_t most_windows =
      static_cast<std::uint32_t>(sizes.size()) +
      (sizes.back() > window_slots(spec) ? kLastTableWindows - 1 : 0);
  std::vector<std::uint32_t> open;  // windows of each member's part, as this one knows
  std::uint32_t wanted_tables = 1;
  std::unordered_map<std::uint64_t, OfferedSlot> offers;  // by the key's hash
  std::string why_not_grown;
  std::unique_ptr<Checker> checker;  // if promises are checked
  std::vector<Mend> mends;
  std::size_t claims = 0;                // that are under way
  remote::FramePool buffers;             // the memory of calls
  mutable std::vector<std::byte> image;  // of a slot of our own
  std::vector<std::byte> former;         // value of an exchange in own memory
  std::uint32_t serial = 0;
  const MapCore::Change* updating = nullptr;  // an update that is under way on the own part
  std::uint32_t changes = 0;                  // how often its function was called
  std::exception_ptr thrown;                  // by that
  /// Of the own part, as far as it is counted.
  struct Census {
    std::uint32_t level = 0, slot = 0;  // that comes next
    std::uint64_t so_far = 0;
    std::uint64_t elements = SharedCounter::kUnknown;  // of the last complete count
  };
  Census census;
  ContainerCounters counters{hub.counters, spec.value_bytes == 0 ? "set" : "map", spec.name,
                             own_slots(), [this] { return count_piece(); }};
  std::unique_ptr<ValuePool> values;   // for long ones; or null
  remote::Runs opening{hub.progress};  // one of the two, at most once
};

}  // namespace dunlin::container
