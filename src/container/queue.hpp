#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <dunlin/container/queue_core.hpp>

#include "container/check.hpp"
#include "container/hub.hpp"
#include "container/steps.hpp"

namespace dunlin::container {

// The host's region: docs/formats/container.md.
inline constexpr std::uint64_t kTailOffset = 0;
inline constexpr std::uint64_t kGenerationOffset = 8;
inline constexpr std::uint64_t kHeadOffset = kCacheLineBytes;
inline constexpr std::uint64_t kEndsBytes = kHeadOffset + 8 - kTailOffset;  // both, in one read
inline constexpr std::uint64_t kQueueSlots = 2 * kCacheLineBytes;

/// A slot's stamp: its ticket plus 1; with this bit if pops skip it.
inline constexpr std::uint64_t kSkip = std::uint64_t{1} << 63;

[[nodiscard]] constexpr bool is_mark(std::uint64_t stamp) noexcept { return (stamp & kSkip) != 0; }
/// The ticket of a stamp, plus 1; 0: the slot was never written.
[[nodiscard]] constexpr std::uint64_t turn_of(std::uint64_t stamp) noexcept {
  return stamp & ~kSkip;
}

/// Tail and head, as one read brings them: the head may be the newer one.
struct Ends {
  [[nodiscard]] std::uint64_t tail() const noexcept { return words[kTailOffset / 8]; }
  [[nodiscard]] std::uint64_t head() const noexcept { return words[kHeadOffset / 8]; }
  /// The generation of the membership at the host: who is gone in it can change nothing there.
  [[nodiscard]] std::uint64_t generation() const noexcept { return words[kGenerationOffset / 8]; }
  std::array<std::uint64_t, kEndsBytes / 8> words;
};

struct Tickets {
  std::uint64_t first;
  std::uint64_t count;
  [[nodiscard]] bool contains(std::uint64_t ticket) const noexcept {
    return ticket - first < count;
  }
};

struct QueueCall;
struct Reservation;

/// The tickets of a push, in its frame; its destructor hands those without an element to the
/// orphans (CON-Q3). Or those that a pop has taken (CON-Q7).
struct HeldTickets {
  HeldTickets(QueueState& its_queue, QueueCall& its_call);
  HeldTickets(const HeldTickets&) = delete;
  HeldTickets& operator=(const HeldTickets&) = delete;
  ~HeldTickets();

  QueueState& queue;
  QueueCall& call;
  Tickets tickets = {};                               // none until they have come
  std::uint64_t filled = 0;                           // of these, from the first on
  std::size_t place;                                  // in QueueState::holders
  Reservation* reservation = nullptr;                 // while it is under way
  remote::Status status = remote::Status::no_memory;  // unless the reservation has another
};

/// A fetch-and-add of the tail, or by a pop of the head, in the frame of a protocol that nobody
/// waits for: its tickets come in any case. Holder and reservation know each other; either may go
/// first.
struct Reservation {
  Reservation(QueueState& its_queue, HeldTickets& its_holder, std::uint64_t count);
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();
  /// The fetch-and-add has ended so.
  void end(remote::Status status) noexcept;

  struct Gate {
    SiteGate site;
    Reservation* reservation;
    [[nodiscard]] remote::Status now() const noexcept;
    [[nodiscard]] remote::Status refused() const noexcept { return site.refused(); }
    void posted() const noexcept;
    void taken() const noexcept {}
  };

  QueueState& queue;
  const bool pushes;
  HeldTickets* holder;  // null once it is gone
  Tickets tickets;
  bool posted = false;
};

struct QueueState final : Served {
  QueueState(Containers& its_containers, QueueSpec its_spec);
  ~QueueState() override;

  // --- one-sided, and by message: queue_call.cpp -------------------------------------------------
  /// The protocol of any call: pushes the elements; pops if they are null.
  [[nodiscard]] remote::Protocol<PoppedElements> run(const std::byte* elements, std::uint32_t count,
                                                     QueueTerms terms);
  [[nodiscard]] remote::Protocol<remote::Status> work_directly(QueueCall& call);
  [[nodiscard]] remote::Protocol<remote::Status> work_by_message(QueueCall& call);
  [[nodiscard]] remote::Protocol<remote::Status> push(QueueCall& call);
  /// Reads tail and head; not later than the call may wait.
  [[nodiscard]] remote::Protocol<remote::Status> look(const Patience& patience);
  [[nodiscard]] remote::Protocol<remote::Status> reserve(HeldTickets& holder);
  [[nodiscard]] Style style_of(const QueueCall& call) noexcept;

  // --- one-sided pops: queue_pop.cpp -------------------------------------------------------------
  [[nodiscard]] remote::Protocol<remote::Status> pop(QueueCall& call);
  /// A pop beside which there are no pushes: a fetch-and-add, and a read (CON-Q7).
  [[nodiscard]] remote::Protocol<remote::Status> pop_taken(QueueCall& call);
  [[nodiscard]] remote::Protocol<remote::Status> take_head(HeldTickets& holder,
                                                           std::uint64_t count);
  [[nodiscard]] remote::Protocol<remote::Status> read_taken(QueueCall& call, Tickets taken);
  /// Reads slots that follow each other from that ticket's on, and the ends, unless they are null.
  [[nodiscard]] remote::Protocol<remote::Status> read_slots(QueueCall& call, std::uint64_t ticket,
                                                            std::uint32_t count, Ends* ends);
  [[nodiscard]] bool takes_head(const QueueTerms& terms) const noexcept {
    return (terms.promise == Promise::reads || terms.promise == Promise::local) &&
           terms.wait_ns == 0 && may_take_head;
  }
  [[nodiscard]] Operation read_ends(Ends& to) const noexcept {
    return read(spec.host, site.region(), kTailOffset, to.words.data(), kEndsBytes);
  }

  // --- in mapped memory, and at the host: queue_local.cpp ----------------------------------------
  // `under_way`: nothing was done, and the protocol does it. `count` is how many elements are
  // pushed, or popped at most, to `to`; then how many were.
  /// How a call ends that needs no protocol: it is refused, or done at once. A pop has no elements.
  [[nodiscard]] remote::Status begin(const std::byte* elements, std::byte* to, std::uint32_t& count,
                                     const QueueTerms& terms) noexcept;
  /// The whole call, if the queue is mapped here, and nothing is in its way. Requires that promises
  /// are not checked, or that the call is announced.
  [[nodiscard]] remote::Status at_once(const std::byte* elements, std::byte* to,
                                       std::uint32_t& count, const QueueTerms& terms) noexcept;
  /// The queue's memory, if the call may use it directly; else null.
  [[nodiscard]] std::byte* mapped(const QueueTerms& terms) noexcept;
  [[nodiscard]] remote::Status local_push(std::byte* queue, const std::byte* elements,
                                          std::uint32_t count) noexcept;
  [[nodiscard]] remote::Status local_pop(std::byte* queue, std::byte* to,
                                         std::uint32_t& popped) noexcept;
  /// Writes elements into slots that follow each other, from that stamp on.
  void fill(std::byte* slot, const std::byte* elements, std::uint64_t stamp,
            std::uint32_t count) noexcept;
  /// Reads elements from such slots, up to the first that has another stamp; returns how many.
  [[nodiscard]] std::uint32_t take(const std::byte* slot, std::byte* to, std::uint64_t stamp,
                                   std::uint32_t most) noexcept;
  void fill_large(std::byte* slot, const std::byte* elements, std::uint64_t stamp,
                  std::uint32_t count) noexcept;
  [[nodiscard]] std::uint32_t take_large(const std::byte* slot, std::byte* to, std::uint64_t stamp,
                                         std::uint32_t most) noexcept;
  [[nodiscard]] bool works_directly(Promise promise) const noexcept;
  [[nodiscard]] bool waits_where_mapped(const QueueTerms& terms) noexcept;
  void handle(Rank from, const MessageHead& head, std::span<const std::byte> content) override;
  void handle_request(Rank from, const MessageHead& head, std::span<const std::byte> content);

  // --- tickets without an element: queue_recovery.cpp --------------------------------------------
  /// Makes room for one orphan more, so that a destructor can hand them over.
  void expect_orphans();
  void take_orphans(Tickets tickets) noexcept;
  [[nodiscard]] remote::Protocol<remote::Status> mark_orphans();
  [[nodiscard]] remote::Protocol<remote::Status> mark(std::uint64_t ticket);
  /// At the host: takes back what dead members have moved the head too far (CON-Q7).
  [[nodiscard]] remote::Protocol<remote::Status> mend_head();
  /// Whether the head can be beyond the tail by no more than pops that are under way.
  [[nodiscard]] bool is_mended() const noexcept { return mended_in == hub.progress.generation(); }
  void members_changed() override;
  void handle_claims(Rank from, const MessageHead& head, std::span<const std::byte> content);
  void answer_claim_request();
  void collect_claims();
  void ask_for_claims();
  template <class See>
  void for_each_claim(const See& see) const;
  [[nodiscard]] bool is_damaged(std::uint64_t head) noexcept;
  std::size_t mark_unclaimed();
  std::size_t poll_part() override;

  [[nodiscard]] remote::Progress& its_progress() const noexcept { return hub.progress; }
  [[nodiscard]] bool is_host() const noexcept { return spec.host == hub.fabric.rank(); }
  [[nodiscard]] std::uint32_t place_of(std::uint64_t ticket) const noexcept {
    const bool is_power = (spec.capacity & (spec.capacity - 1)) == 0;  // no division, then
    return static_cast<std::uint32_t>(is_power ? ticket & (spec.capacity - 1)
                                               : ticket % spec.capacity);
  }
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t ticket) const noexcept {
    return kQueueSlots + std::uint64_t{place_of(ticket)} * shape.slot_bytes;
  }
  /// From that ticket's on, to the end of the ring.
  [[nodiscard]] std::uint32_t slots_before_end(std::uint64_t ticket) const noexcept {
    return spec.capacity - place_of(ticket);
  }
  [[nodiscard]] std::uint64_t& own_word(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<std::uint64_t*>(site.memory() + offset);
  }
  /// What was read: a head beyond the tail is of pops that give back the rest (CON-Q7).
  void saw(const Ends& ends) noexcept { saw(ends.tail(), std::min(ends.tail(), ends.head())); }
  void saw(std::uint64_t tail, std::uint64_t head) noexcept {
    seen_tail = tail > seen_tail ? tail : seen_tail;
    seen_head = head > seen_head ? head : seen_head;
  }
  /// At the host; elsewhere, as far as this process knows.
  [[nodiscard]] std::uint64_t size() noexcept;
  /// Elements, as far as this process knows; never negative, whatever a peer has written there.
  [[nodiscard]] std::uint64_t seen_size() const noexcept {
    return seen_tail > seen_head ? seen_tail - seen_head : 0;
  }
  /// Whether the slots of `count` tickets from this one on are free.
  [[nodiscard]] bool has_room(std::uint64_t ticket, std::uint64_t count) const noexcept {
    return ticket + count <= seen_head + spec.capacity;
  }

  Containers& containers;
  Hub& hub;
  StyleChoice styles;
  QueueSpec spec;
  SlotShape shape;
  const std::uint64_t queue_bytes = kQueueSlots + std::uint64_t{spec.capacity} * shape.slot_bytes;
  bool coherent;
  Site site;
  std::unique_ptr<Checker> checker;     // if promises are checked
  std::uint32_t waiting_in_memory = 0;  // calls of this process
  std::uint64_t seen_tail = 0;          // both only grow
  std::uint64_t seen_head = 0;
  /// How far others had moved the head when a pop of this member saw it last.
  std::uint64_t head_moved = kMaxSlots;
  mutable std::vector<std::byte> image;  // of a slot of our own
  remote::FramePool memory_of_calls;

  std::vector<HeldTickets*> holders;
  std::uint32_t reserving = 0;       // fetch-and-adds of the ends that are under way
  std::uint32_t may_be_orphans = 0;  // holders and reservations
  std::vector<Tickets> orphans;      // of calls that were given up
  bool host_waits = false;           // for the answer to a claim request, of this generation:
  std::uint64_t host_generation = 0;
  bool may_take_head = !hub.has_changed();  // until then, or until the host asks for tickets
  // Generations of the membership (CON-Q8).
  std::uint64_t expelled_in = 0;  // as Ends::generation()
  std::uint64_t mended_in = is_host() || may_take_head ? hub.progress.generation() : 0;

  // At the host, after a death, and when a member has destroyed its queue.
  bool collecting = false;
  bool must_ask = false;          // the members, in the next poll
  std::uint64_t withdrawals = 0;  // that it knows of
  std::uint64_t generation = 0;
  std::uint64_t recovered_below = 0;  // the tail when it began
  std::vector<bool> answered;
  std::vector<Tickets> claimed;
  bool must_collect = false;      // in the next poll
  bool must_mend_head = false;    // in the next poll, too
  std::uint64_t marks_from = 0;   // the first ticket that was not looked at,
  std::uint64_t marks_below = 0;  // of those that dead members may have had

  ContainerCounters counters{hub.counters, "queue", spec.name, spec.capacity,
                             [this] { return size(); }};
  remote::Runs protocols{hub.progress};  // reservations, and mark_orphans()
};

struct QueueCall;

/// A pause of a call that waits where the queue is mapped. A push or a pop, for which it waits,
/// ends the pause, and the process whose poll sees that is awake: others ring its member's
/// doorbell, if it is the host, and its own calls do so, as they see `waiting_in_memory`.
class QueuePause final : public remote::Waiter {
 public:
  QueuePause(QueueState& queue, const std::byte* memory, QueueCall& call) noexcept;
  ~QueuePause() { --queue_.waiting_in_memory; }
  [[nodiscard]] bool ready() noexcept override;
  void result() const noexcept {}

 private:
  QueueState& queue_;
  const std::uint64_t& end_;  // that the others move: the head for a push, the tail for a pop
  std::uint64_t seen_;
  std::uint64_t mapped_in_;  // the end is there as long as this is Fabric::disconnections()
  Rests::Pause pause_;
};

/// A call under way, in the frame of run().
struct QueueCall {
  QueueCall(QueueState& queue, const std::byte* elements, std::uint32_t many,
            const QueueTerms& its_terms) noexcept;
  /// Whether the call waits, as it has found no room, or no element.
  [[nodiscard]] bool waits_after(remote::Status status) noexcept {
    using enum remote::Status;
    if (terms.wait_ns == 0 || (status != full && status != empty)) return false;
    ++vain_attempts;
    return true;
  }
  [[nodiscard]] auto rest(std::uint64_t longest_ns) noexcept {
    return rests.pause(longest_ns, patience.until_ns());
  }

  QueueTerms terms;
  bool pushes;
  std::uint32_t wanted;
  std::uint32_t slots;      // that `images` has room for
  std::uint32_t count = 0;  // elements pushed or popped
  std::uint32_t vain_attempts = 0;
  Patience patience;
  Rests rests;
  CallMemory memory;   // for these two
  std::byte* images;   // of slots
  std::byte* payload;  // of as many elements as are wanted
};

/// For operations that change nothing yet: a call that has waited long enough posts no more of
/// them, and so ends where it has done nothing (CON-Q5).
struct PatientGate {
  SiteGate site;
  const Patience* patience;
  [[nodiscard]] remote::Status now() const noexcept {
    const remote::Status fault = site.now();
    const bool is_late = fault == remote::Status::ok && patience->is_over();
    return is_late ? remote::Status::timed_out : fault;
  }
  [[nodiscard]] remote::Status refused() const noexcept { return site.refused(); }
  void posted() const noexcept {}
  void taken() const noexcept {}
};

}  // namespace dunlin::container
