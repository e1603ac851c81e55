#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <dunlin/container/queue_core.hpp>

#include "container/check.hpp"
#include "container/hub.hpp"
#include "fabric/backoff.hpp"

namespace dunlin::container {

// The host's region: docs/formats/container.md.
inline constexpr std::uint64_t kTailOffset = 0;
inline constexpr std::uint64_t kHeadOffset = kCacheLineBytes;
inline constexpr std::uint64_t kEndsBytes = kHeadOffset + 8 - kTailOffset;  // both, in one read
inline constexpr std::uint64_t kQueueSlots = 2 * kCacheLineBytes;

/// A slot's stamp: its ticket plus 1; with this bit if pops skip it.
inline constexpr std::uint64_t kSkip = std::uint64_t{1} << 63;

struct Tickets {
  std::uint64_t first;
  std::uint64_t count;
  [[nodiscard]] bool contains(std::uint64_t ticket) const noexcept {
    return ticket - first < count;
  }
};

/// A fetch-and-add of the tail under way. It outlives its operation: the tickets come in any case.
struct Reservation {
  Completion completion;
  std::uint64_t before = 0;
  std::uint64_t count = 0;
  QueueOperation* op = nullptr;
  bool busy = false;
};

struct QueueState final : Served {
  QueueState(Containers& its_containers, QueueSpec its_spec);
  ~QueueState() override;

  using Stage = QueueOperation::Stage;

  // --- one-sided: queue_operation.cpp ------------------------------------------------------------
  void begin(QueueOperation& op) noexcept;
  void advance(QueueOperation& op) noexcept;
  void clean_up(QueueOperation& op) noexcept;
  [[nodiscard]] bool step(QueueOperation& op) noexcept;
  [[nodiscard]] bool choose(QueueOperation& op) noexcept;
  [[nodiscard]] bool ask(QueueOperation& op) noexcept;
  [[nodiscard]] bool look(QueueOperation& op) noexcept;
  [[nodiscard]] bool looked(QueueOperation& op) noexcept;
  [[nodiscard]] bool reserve(QueueOperation& op) noexcept;
  [[nodiscard]] bool reserved(QueueOperation& op) noexcept;
  [[nodiscard]] bool fill(QueueOperation& op) noexcept;
  [[nodiscard]] bool get(QueueOperation& op) noexcept;
  [[nodiscard]] bool got(QueueOperation& op) noexcept;
  [[nodiscard]] bool take(QueueOperation& op) noexcept;
  [[nodiscard]] bool taken(QueueOperation& op) noexcept;
  [[nodiscard]] bool post(QueueOperation& op, std::span<const Operation> batch,
                          Stage next) noexcept;
  [[nodiscard]] bool fails(QueueOperation& op) noexcept;
  /// There was no room, or no element: the call ends so, or rests and then goes on with `next`.
  void find_none(QueueOperation& op, remote::Status status, Stage next) noexcept;
  void rest(QueueOperation& op, std::uint64_t longest_ns, Stage next) noexcept;
  [[nodiscard]] bool rested(QueueOperation& op) noexcept;
  [[nodiscard]] Style style_of(const QueueOperation& op) noexcept;
  static void count(const QueueOperation& op, SharedCounter& counter) noexcept;
  void enlist(QueueOperation& op) noexcept;
  void delist(QueueOperation& op) noexcept;
  [[nodiscard]] Reservation* free_reservation();

  // --- in mapped memory, and at the host: queue_local.cpp ----------------------------------------
  struct Local {
    enum class Way : std::uint8_t { done, again } way = Way::done;
    remote::Status status = remote::Status::ok;
    std::uint32_t count = 0;
  };
  /// The whole call, if the queue is mapped here, and nothing is in its way: the protocol does what
  /// this does not. Requires that promises are not checked, or that the call is announced.
  [[nodiscard]] std::optional<Local> at_once(bool pushes, std::byte* elements, std::uint32_t count,
                                             Promise promise, Style style) noexcept;
  /// The queue's memory, if the call may use it directly; else null.
  [[nodiscard]] std::byte* mapped(Promise promise, Style style) const noexcept;
  [[nodiscard]] Local local_push(std::byte* queue, const std::byte* elements,
                                 std::uint32_t count) noexcept;
  [[nodiscard]] Local local_pop(std::byte* queue, std::byte* elements, std::uint32_t most) noexcept;
  [[nodiscard]] bool works_directly(Promise promise) const noexcept;
  void handle(Rank from, const MessageHead& head, std::span<const std::byte> content) override;
  void handle_request(Rank from, const MessageHead& head, std::span<const std::byte> content);

  // --- tickets of the dead: queue_recovery.cpp ---------------------------------------------------
  void members_changed() override;
  void handle_claims(Rank from, const MessageHead& head, std::span<const std::byte> content);
  void answer_claim_request();
  void find_unclaimed();
  std::size_t skip_unclaimed();
  std::size_t skip_orphans();
  std::size_t collect_reservations();
  [[nodiscard]] bool own_tickets_known() const noexcept { return reserving == 0; }
  std::size_t poll_part() override;

  [[nodiscard]] bool is_host() const noexcept { return spec.host == hub.fabric.rank(); }
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t ticket) const noexcept {
    return kQueueSlots + ticket % spec.capacity * shape.slot_bytes;
  }
  [[nodiscard]] std::uint64_t& own_word(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<std::uint64_t*>(site.memory() + offset);
  }
  void saw(std::uint64_t tail, std::uint64_t head) noexcept;
  /// At the host; elsewhere, as far as this process knows.
  [[nodiscard]] std::uint64_t size() noexcept;
  /// Elements, as far as this process knows; never negative, whatever a peer has written there.
  [[nodiscard]] std::uint64_t seen_size() const noexcept {
    return seen_tail > seen_head ? seen_tail - seen_head : 0;
  }
  [[nodiscard]] bool has_room(std::uint64_t last_ticket) const noexcept {
    return last_ticket < seen_head + spec.capacity;
  }

  Containers& containers;
  Hub& hub;
  StyleChoice styles;
  QueueSpec spec;
  SlotShape shape;
  bool coherent;
  Site site;
  std::unique_ptr<Checker> checker;  // if promises are checked
  std::uint64_t seen_tail = 0;       // both only grow
  std::uint64_t seen_head = 0;
  mutable std::vector<std::byte> image;  // of a slot of our own

  // Operations that hold tickets, or have asked for them.
  QueueOperation* first = nullptr;
  std::vector<std::unique_ptr<Reservation>> reservations;
  std::uint32_t reserving = 0;  // tickets that have not come
  bool host_waits = false;      // for the answer to a claim request, of this generation:
  std::uint64_t host_generation = 0;
  std::vector<Tickets> orphans;  // of operations that were given up
  Completion orphan_done;        // of what is posted for them
  std::uint64_t orphan_ends[kEndsBytes / 8] = {};
  bool orphan_looks = false;
  Backoff orphan_rests{kShortestRestNs, kLongestRestNs};
  std::uint64_t orphan_look_at_ns = 0;  // 0: at once
  std::vector<std::byte> orphan_image;

  // At the host, after a death.
  bool collecting = false;
  std::uint64_t generation = 0;
  std::uint64_t recovered_below = 0;  // the tail when the death was agreed
  std::vector<bool> answered;
  std::vector<Tickets> claimed;
  std::vector<std::uint64_t> unclaimed;  // tickets to be skipped, ascending

  ContainerCounters counters{hub.counters, "queue", spec.name, spec.capacity,
                             [this] { return size(); }};
};

}  // namespace dunlin::container
