#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/container/collectives.hpp>

#include "container/hub.hpp"
#include "container/steps.hpp"

/// The state of a Collectives at one member, and its region (docs/formats/container.md). Members
/// are counted by their place in the set; trees by the distance from the root behind it.
namespace dunlin::container {

/// A message names its call: the call's number in the upper 48 bits, and a hash of what the sender
/// takes the call for in the lower 16.
namespace call_word {
inline constexpr unsigned kHashBits = 16;
[[nodiscard]] constexpr std::uint64_t number_of(std::uint64_t word) noexcept {
  return word >> kHashBits;
}
}  // namespace call_word

/// The layout of a region, which a member's data comes to.
struct CollectiveLayout {
  /// Up to so many bytes travel in one line with the word of their message.
  static constexpr std::size_t kShortBytes = kCacheLineBytes - kWordBytes;
  static constexpr std::size_t kWordOffset = kShortBytes;
  static constexpr std::size_t kLongOffset = kCacheLineBytes;

  CollectiveLayout(std::uint32_t its_members, std::uint32_t its_bytes) noexcept
      : members(its_members),
        rounds(static_cast<std::uint32_t>(std::bit_width(members - 1))),
        slot_bytes(kLongOffset +
                   (its_bytes > kShortBytes ? round_up(its_bytes, kCacheLineBytes) : 0)),
        slots(std::clamp(static_cast<std::uint32_t>(std::bit_floor(kAheadBytes / slot_bytes)),
                         kLeastAhead, kMostAhead)) {}

  /// How many calls this member has ended.
  [[nodiscard]] static constexpr std::uint64_t ended() noexcept { return 0; }
  [[nodiscard]] static std::uint64_t arrival(std::uint32_t round) noexcept {
    return kCacheLineBytes * (1 + std::uint64_t{round});
  }
  /// Boxes 0 to rounds - 1 are for what children send up; the last one is for what comes down.
  [[nodiscard]] std::uint64_t slot(std::uint32_t box, std::uint64_t number) const noexcept {
    return arrival(rounds) + (box * std::uint64_t{slots} + number % slots) * slot_bytes;
  }
  [[nodiscard]] std::uint32_t box_for_down() const noexcept { return rounds; }
  /// A line for what comes in that round from a member that stands before this one.
  [[nodiscard]] std::uint64_t line_from_before(std::uint32_t round,
                                               std::uint64_t number) const noexcept {
    return slot(rounds + 1, 0) + (round * std::uint64_t{slots} + number % slots) * kCacheLineBytes;
  }
  [[nodiscard]] std::uint64_t region_bytes() const noexcept { return line_from_before(rounds, 0); }
  /// Whether a value of each is combined in one go: all do what the last one to come does.
  [[nodiscard]] bool reduces_by_doubling(std::size_t value_bytes) const noexcept {
    return std::has_single_bit(members) && value_bytes <= kShortBytes;
  }
  [[nodiscard]] static std::uint64_t payload_of(std::size_t bytes) noexcept {
    return bytes <= kShortBytes ? 0 : kLongOffset;
  }

  std::uint32_t members;
  std::uint32_t rounds;
  std::size_t slot_bytes;
  std::uint32_t slots;  // of a box: calls that a member can be ahead of another
};

struct CollectivesState {
  CollectivesState(Containers& containers, const CollectivesOptions& options);
  CollectivesState(const CollectivesState&) = delete;
  CollectivesState& operator=(const CollectivesState&) = delete;
  ~CollectivesState();

  // --- a call ------------------------------------------------------------------------------------
  /// A call under way, in the frame of its protocol. If that goes before the call has ended `ok`,
  /// the set ends (CON-L4).
  class Turn {
   public:
    Turn(CollectivesState& set, const CollectiveCall& call) noexcept;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

    [[nodiscard]] std::uint64_t number() const noexcept { return call_word::number_of(word); }
    /// What the call has come to; ends the turn.
    [[nodiscard]] CollectiveOutcome outcome(remote::Status how) noexcept;

    CollectivesState& set;
    const CollectiveCall& call;
    std::uint64_t word;   // of its messages
    std::uint32_t place;  // of this member in the tree; 0: the root
    std::size_t filled;   // bytes of the payload

   private:
    bool is_ok_ = false;
  };

  /// Keeps what this member gives: `mine` may go.
  void take_mine(const CollectiveCall& call) noexcept;
  [[nodiscard]] remote::Protocol<CollectiveOutcome> barrier(CollectiveCall call);
  [[nodiscard]] remote::Protocol<CollectiveOutcome> exchange(CollectiveCall call);
  [[nodiscard]] remote::Protocol<remote::Status> up(Turn& turn);
  [[nodiscard]] remote::Protocol<remote::Status> down(Turn& turn);
  [[nodiscard]] remote::Protocol<remote::Status> double_up(Turn& turn);
  /// Takes what a child has sent: that of its subtree.
  void take(Turn& turn, std::uint32_t child_place, const std::byte* slot) noexcept;
  /// Bytes of a message from that place of the tree, which stands for `places` of it.
  [[nodiscard]] std::size_t bytes_from(const Turn& turn, std::uint32_t child_place,
                                       std::uint32_t places) const noexcept;
  /// Takes what a member before this one has sent: that of as many places.
  void take_from_before(const Turn& turn, const std::byte* line) noexcept;
  /// Sends the payload, whose message prepare() has made, to a member's slot.
  [[nodiscard]] remote::Protocol<remote::Status> send(Turn& turn, std::uint32_t to,
                                                      std::uint64_t slot, std::size_t bytes);
  void prepare(const Turn& turn, std::size_t bytes) noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> wait_for_room(std::uint64_t number,
                                                               std::uint32_t to);
  /// CON-L3: whether that member has read the message that the slot had before.
  [[nodiscard]] bool has_room(std::uint64_t number, std::uint32_t to) const noexcept;
  void saw_ended(std::uint32_t member, std::uint64_t calls) noexcept;

  // --- members -----------------------------------------------------------------------------------
  [[nodiscard]] std::uint32_t behind(std::uint32_t distance) const noexcept {
    return (self + distance) % layout.members;
  }
  [[nodiscard]] std::uint32_t before(std::uint32_t distance) const noexcept {
    return (self + layout.members - distance) % layout.members;
  }
  [[nodiscard]] std::uint32_t place_of(Rank rank) const noexcept;
  /// `ok` as long as all are members, and that one has its part.
  [[nodiscard]] remote::Status fault(std::uint32_t member) noexcept;
  /// The set is over, because of that member.
  void end(remote::Status why, Rank because_of) noexcept;
  void withdraw() noexcept;
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] remote::Progress& its_progress() const noexcept { return hub.progress; }
  [[nodiscard]] std::byte* payload() noexcept {
    return message.data() + CollectiveLayout::kLongOffset;
  }

  Containers& containers;
  Hub& hub;
  const std::string name;
  const std::vector<Rank> members;
  const std::uint32_t self;
  const std::uint32_t bytes;
  const CollectiveLayout layout;
  std::unique_ptr<Site> site;
  ContainerCounters counters;

  std::uint64_t calls = 0;           // begun
  std::uint64_t all_ended = 0;       // so many calls have all members ended, at least,
  std::vector<std::uint64_t> ended;  // and so many has each
  bool in_call = false;
  std::uint32_t waits_for = 0;                 // a member
  std::vector<std::byte> message;              // as in a slot, with a long payload
  Completion sent;                             // what is posted from there
  std::uint64_t generation;                    // of the membership
  remote::Status status = remote::Status::ok;  // else the set is over,
  Rank ended_by = 0;                           // because of that member,
  bool call_differs = false;                   // whose call is another one than ours
};

}  // namespace dunlin::container
