#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/agreed_order.hpp>
#include <dunlin/store.hpp>

/// The slot map says which members hold the keys of which slot. It is data on which all members of
/// a store agree: a state machine that decisions change, in the one order of them that a
/// remote::AgreedOrder gives. Pure: no I/O, no time, no rank of its own. docs/store-placement.md
/// has the design, and docs/formats/store-map.md the bytes.
///
///     SlotMap map;
///     auto order = progress.open_order({.name = "map"}, map);
///     ... order->propose(encode(decisions)) ...
///     const Rank owner = map.slot(map.slot_of(hash)).owner;
///
///  STO-P1  Equal decisions make equal maps, and a map that was saved and loaded is the same.
///  STO-P2  A slot has one owner, or is lost; no member holds a slot in two roles, and only members
///          that are present hold any.
///  STO-P3  Each change of a slot raises its epoch by one. A decision about a slot names the epoch
///          that it was made for, and changes nothing if the slot has another one.
///  STO-P4  Only a member with a full copy becomes the owner of a slot that is not lost. No
///          decision takes away a full copy while the slot has not more of them than the store
///          wants.
///  STO-P5  A slot that has changed its owner has no move before it is settled.
///  STO-P13 A member that gets a copy of a slot has no key of it before: one that held the slot has
///          said that it has emptied it.
namespace dunlin::store {

inline constexpr std::uint32_t kUsualSlots = 4096;
inline constexpr std::uint32_t kMaxSlots = 16'384;
inline constexpr std::uint32_t kMaxCopies = 3;
inline constexpr std::uint32_t kMaxWeight = kMaxStoreWeight;
inline constexpr std::size_t kMostEmptying = 2;
inline constexpr Rank kNobody = kNoOwner;  // where a rank stands

static_assert(kMaxRanks < kNobody && kMaxSlots <= kNobody, "ranks and slots have 16 bits");
static_assert(std::uint64_t{kMaxWeight} * kMaxMembers * kMaxSlots * kMaxCopies < 1ULL << 62,
              "deviations from a fair share are computed in 64 bits");

struct PlacedSlot {
  std::uint32_t epoch = 0;  // of the last change
  Rank owner = kNobody;     // all calls on the slot's keys go there; kNobody: the slot is lost
  /// Members with a full copy, those that become the owner first in front; kNobody behind them.
  std::array<Rank, kMaxCopies - 1> backups = {kNobody, kNobody};
  Rank incoming = kNobody;  // is getting a copy, and gets all changes already
  Rank leaving = kNobody;   // gives its copy up once `incoming` has one; kNobody: none does
  Rank former = kNobody;    // was the owner, and some calls may still be under way there
  bool settled = true;      // the owner is open: all members know that it is the owner
  /// Members that hold the slot no more, and may still have some of its keys.
  std::array<Rank, kMostEmptying> emptying = {kNobody, kNobody};

  [[nodiscard]] bool lost() const noexcept { return owner == kNobody; }
  [[nodiscard]] std::uint32_t full_copies() const noexcept;
  [[nodiscard]] bool is_backup(Rank member) const noexcept;
  /// As owner or backup.
  [[nodiscard]] bool has_full_copy(Rank member) const noexcept;
  [[nodiscard]] bool is_emptying(Rank member) const noexcept;
  /// Whether it has keys of the slot, or may have some.
  [[nodiscard]] bool has_part(Rank member) const noexcept {
    return has_full_copy(member) || member == incoming || member == former || is_emptying(member);
  }
  friend bool operator==(const PlacedSlot&, const PlacedSlot&) = default;
};

/// One change of the map, as members propose it.
struct Decision {
  enum class Kind : std::uint8_t {
    create = 1,  // `value` slots with `other` copies each, over the members with a weight
    enter,       // `member` holds keys, in proportion to its weight `value`; 0: it drains
    add,         // `member` begins to get a copy of `slot`, in place of `other` or beside all
    full,        // `member` has all of `slot`
    own,         // `member`, a backup, becomes the owner of `slot`
    opened,      // no call on `slot` goes on at its former owner
    stop,        // `slot` stops to get a further copy
    renew,       // `member` becomes the owner of `slot`, which was lost, and is empty
    heard,       // all that `member` proposed before number `value` has been decided
    emptied      // `member` has no key of `slot` any more
  };
  Kind kind;
  /// 1 says, with enter, that the member takes slots; with create, that lost slots are renewed;
  /// with stop, that the member that gets the copy has no room, and takes none until it says so
  /// again.
  std::uint8_t flag = 0;
  std::uint16_t member = kNobody;
  std::uint16_t slot = 0;
  std::uint16_t other = kNobody;
  std::uint32_t epoch = 0;  // that `slot` has
  std::uint32_t value = 0;
  friend bool operator==(const Decision&, const Decision&) = default;
};
static_assert(sizeof(Decision) == 16);

inline constexpr std::size_t kMostDecisions = kMaxProposalBytes / sizeof(Decision);

/// The bytes of up to kMostDecisions.
[[nodiscard]] std::span<const std::byte> encode(std::span<const Decision> decisions) noexcept;

/// A member as the map knows it.
struct Holder {
  Rank rank = kNobody;
  std::uint32_t weight = 0;  // its share is in proportion to this; 0: it drains, or is a client
  bool takes = true;         // whether it has room for further slots
  std::uint32_t heard = 0;   // the number of its last `heard`
  friend bool operator==(const Holder&, const Holder&) = default;
};

class SlotMap final : public remote::AgreedState {
 public:
  // --- what the order changes --------------------------------------------------------------------
  void members_are(std::span<const Rank> members) noexcept override;
  void decided(std::span<const std::byte> proposal) noexcept override;
  [[nodiscard]] std::vector<std::byte> save() const override;
  [[nodiscard]] bool load(std::span<const std::byte> state) noexcept override;
  /// Returns whether it has changed anything.
  bool apply(const Decision& decision);

  // --- what it says ------------------------------------------------------------------------------
  /// Whether there are slots.
  [[nodiscard]] bool created() const noexcept { return !slots_.empty(); }
  [[nodiscard]] std::uint32_t slots() const noexcept {
    return static_cast<std::uint32_t>(slots_.size());
  }
  [[nodiscard]] const PlacedSlot& slot(std::uint32_t number) const noexcept {
    return slots_[number];
  }
  /// The slot of a key of that hash: its highest bits.
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t hash) const noexcept {
    return static_cast<std::uint32_t>(hash >> (64 - slot_bits_));
  }
  [[nodiscard]] std::uint32_t copies() const noexcept { return copies_; }
  [[nodiscard]] bool renews_lost() const noexcept { return renews_lost_; }
  /// All members that are present, by rank; clients have no weight.
  [[nodiscard]] std::span<const Holder> members() const noexcept { return members_; }
  [[nodiscard]] const Holder* member(Rank rank) const noexcept;
  /// Whether the others could hold all copies. Else a member that wants to drain does not.
  [[nodiscard]] bool may_drain(Rank rank) const noexcept;
  /// How many proposals and changes of the members the map has seen.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// The slots that have changed since the last call, ascending, each once.
  [[nodiscard]] std::vector<std::uint32_t> take_changed();

 private:
  using Kind = Decision::Kind;
  bool create(std::uint32_t slots, std::uint32_t copies, bool renews_lost);
  void assign(std::uint32_t number, std::vector<std::uint64_t>& owned,
              std::vector<std::uint64_t>& held);
  bool enter(const Decision& decision);
  [[nodiscard]] bool change(PlacedSlot& slot, const Decision& decision) const;
  [[nodiscard]] bool add(PlacedSlot& slot, Rank member, Rank leaving) const;
  [[nodiscard]] bool complete(PlacedSlot& slot) const;
  static void settle(PlacedSlot& slot);
  [[nodiscard]] bool drop_absent(PlacedSlot& slot) const;
  static void replace_owner(PlacedSlot& slot);
  void takes_no_more(Rank rank) noexcept;
  [[nodiscard]] bool holds_keys(Rank rank) const noexcept;
  void has_changed(std::uint32_t number);
  [[nodiscard]] bool is_sound(const PlacedSlot& slot) const;

  std::vector<Holder> members_;
  std::vector<PlacedSlot> slots_;
  std::vector<bool> changed_;  // by slot
  unsigned slot_bits_ = 0;
  std::uint32_t copies_ = 1;
  bool renews_lost_ = false;
  std::uint64_t version_ = 0;
};

/// Spreads equal choices: a number that depends on nothing but its arguments.
[[nodiscard]] std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept;

}  // namespace dunlin::store
