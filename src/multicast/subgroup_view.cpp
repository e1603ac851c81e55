#include "multicast/subgroup_view.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/hash.hpp"
#include "fault_injection.hpp"
#include "multicast/journal.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

/// Set-up, and what poll() calls in which order. The stages are in receiving.cpp, sending.cpp and
/// delivering.cpp.
namespace dunlin::multicast {
namespace {

[[noreturn]] void refuse(const SubgroupViewOptions& options, const std::string& what) {
  throw Error("subgroup '" + options.name + "': " + what);
}

template <class Numbers>
std::string list(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) text += " " + std::to_string(number);
  return text;
}

std::string name_of(Mode mode) {
  switch (mode) {
    case Mode::unordered:
      return "unordered";
    case Mode::ordered:
      return "ordered";
    default:
      return "durable";
  }
}

/// All that the members must agree on beside the table's layout.
std::string describe(const SubgroupViewOptions& options) {
  return name_of(options.mode) + ", members" + list(options.members) + ", senders" +
         list(options.senders) + ", ring_bytes " + std::to_string(options.ring_bytes) +
         ", slot_bytes " +
         std::to_string(options.switches.used_bytes_only ? 0 : options.switches.slot_bytes) +
         ", window_messages " + std::to_string(options.window_messages) +
         (options.switches.nulls ? "" : ", without nulls") +
         (options.switches.one_cache_line ? "" : ", without one_cache_line");
}

}  // namespace

SubgroupView::SubgroupView(Fabric& fabric, SubgroupViewOptions options, Upcall upcall)
    : fabric_(fabric),
      options_(std::move(options)),
      upcall_(std::move(upcall)),
      shape_{.memory = nullptr,
             .bytes = options_.ring_bytes,
             .slot_bytes = options_.switches.used_bytes_only ? 0 : options_.switches.slot_bytes},
      writer_(shape_),
      posting_(shape_) {
  check_options();
  const std::size_t members = options_.members.size();
  const std::size_t senders = options_.senders.size();
  me_ = static_cast<std::size_t>(std::ranges::find(options_.members, fabric_.rank()) -
                                 options_.members.begin());
  sender_rank_of_.resize(members);
  for (std::size_t sender_rank = 0; sender_rank < senders; ++sender_rank)
    sender_rank_of_[options_.senders[sender_rank]] = sender_rank;
  own_sender_rank_ = sender_rank_of_[me_];

  const std::string text = describe(options_);
  rings_ = fabric_.allocate({.name = "ring:" + options_.name,
                             .bytes = std::max<std::size_t>(senders * shape_.bytes, kWordBytes),
                             .generation = options_.generation,
                             .layout_hash = fnv1a(text),
                             .layout_text = text});
  for (std::size_t sender_rank = 0; sender_rank < senders; ++sender_rank)
    sources_.push_back(
        {.cursor = RingCursor(ring_of(sender_rank)), .member = options_.senders[sender_rank]});
  if (own_sender_rank_) {
    writer_ = RingWriter(ring_of(*own_sender_rank_), options_.window_messages);
    posting_ = RingCursor(ring_of(*own_sender_rank_));
  }
  posted_.resize(members);
  others_received_.resize(members);
  others_persisted_.resize(members);
  persisted_slots_.resize(senders);
  journal_ = options_.journal;
  for (const Source& source : sources_) logging_.push_back({.cursor = source.cursor});
  if (durable()) committing_.records = journal_->next();
  taken_.resize(senders);
  real_.resize(senders);
  batch_.resize(kMaxBatchMessages);
  make_table();
  subscription_ = fabric_.subscribe([this](const Event& event) { handle(event); });
  fabric_.announce(rings_);
  connect_rings();
}

SubgroupView::~SubgroupView() = default;

void SubgroupView::check_options() const {
  const auto& [name, generation, members, senders, mode, ring_bytes, window, switches, journal] =
      options_;
  const std::size_t slot_bytes = switches.slot_bytes;
  if (name.size() > kMaxSubgroupNameBytes) {
    refuse(options_, "the name has " + std::to_string(name.size()) + " bytes; at most " +
                         std::to_string(kMaxSubgroupNameBytes) +
                         " (kMaxSubgroupNameBytes) are allowed");
  }
  if (members.size() > kMaxViewMembers) {
    refuse(options_, std::to_string(members.size()) + " members; at most " +
                         std::to_string(kMaxViewMembers) + " (kMaxViewMembers) are allowed");
  }
  if (std::ranges::find(members, fabric_.rank()) == members.end()) {
    refuse(options_, "this process (rank " + std::to_string(fabric_.rank()) +
                         ") is not among its members (" + list(members).erase(0, 1) + ")");
  }
  for (std::size_t i = 0; i < senders.size(); ++i) {
    if (senders[i] < members.size() && (i == 0 || senders[i - 1] < senders[i])) continue;
    refuse(options_, "senders must be ascending indices below " + std::to_string(members.size()) +
                         ", and are" + list(senders));
  }
  if (!std::has_single_bit(ring_bytes) || ring_bytes < kMinRingBytes ||
      ring_bytes > kMaxRingBytes) {
    refuse(options_, "ring_bytes is " + std::to_string(ring_bytes) +
                         "; give a power of two from kMinRingBytes to kMaxRingBytes");
  }
  if (mode > multicast::Mode::durable) {
    refuse(options_, "mode is " + std::to_string(static_cast<unsigned>(mode)) +
                         "; give one of multicast::Mode");
  }
  if (durable() != (journal != nullptr))
    refuse(options_, "a durable subgroup has a log, and no other has one");
  if (!switches.used_bytes_only && (slot_bytes % kWordBytes != 0 || slot_bytes > ring_bytes / 4)) {
    refuse(options_, "slot_bytes is " + std::to_string(slot_bytes) +
                         "; give a multiple of 8 up to a quarter of ring_bytes");
  }
}

void SubgroupView::make_table() {
  const Layout layout = row::layout(options_.senders.size(), options_.mode);
  const std::size_t bytes = layout.row_bytes;
  table_ = std::make_unique<TableCore>(
      fabric_, layout, [bytes](std::byte* row) { std::memset(row, 0, bytes); },
      TableOptions{.name = "cast:" + options_.name,
                   .members = options_.members,
                   .generation = options_.generation});
}

RingShape SubgroupView::ring_of(std::size_t sender_rank) const noexcept {
  RingShape shape = shape_;
  shape.memory = rings_.memory().data() + sender_rank * shape_.bytes;
  return shape;
}

void SubgroupView::handle(const Event& event) {
  if (event.kind == Event::Kind::region_refused && event.region == rings_.id()) {
    const bool first = event.peer == options_.members.front();
    if (refusal_.empty() || first) refusal_ = event.text;
    differs_from_first_ |= first;
  }
  if (!rings_connected_) connect_rings();
}

void SubgroupView::connect_rings() noexcept {
  rings_connected_ = std::ranges::all_of(options_.members, [&](Rank rank) {
    return rank == fabric_.rank() || fabric_.failed(rank) || fabric_.connected(rank, rings_.id());
  });
}

void SubgroupView::check() const {
  if (!refusal_.empty()) refuse(options_, refusal_);
  table_->check();
}

void SubgroupView::publish_word(std::size_t offset, std::uint64_t value) noexcept {
  memory::store(*reinterpret_cast<std::uint64_t*>(table_->mine() + offset), value);
}

/// On a simulated node: what was looked at, and called.
void SubgroupView::spend(std::size_t entries, std::size_t upcalls) noexcept {
  if (const CpuCosts* costs = fabric_.cpu_costs()) [[unlikely]] {
    fabric_.spend(costs->entry_ns * static_cast<double>(entries) +
                  costs->trigger_ns * static_cast<double>(upcalls));
  }
}

std::size_t SubgroupView::poll() {
  std::size_t done = table_->poll();
  if (wedged_ || polling_ || options_.senders.empty()) return done;
  spend(options_.senders.size() + options_.members.size(), 0);
  const std::size_t received = receive_stage() + (durable() ? note_persisted() : 0);
  // Most polls find nothing, and how long they take is how late the others are.
  const bool rested = rested_;
  if (received == 0 && rested && !has_to_send()) return done;
  rested_ = false;  // also if an upcall throws
  const std::size_t sent = send_stage();
  const std::size_t logged = durable() ? log_stage() : 0;
  const std::size_t delivered = deliver_stage();
  const bool rests = received + sent + logged + delivered == 0;
  if ((rests && !rested) || --until_statistics_ == 0) [[unlikely]]
    publish_statistics();
  rested_ = rests;
  return done + received + sent + logged + delivered;
}

bool SubgroupView::has_to_send() const noexcept {
  return must_publish_freed_ || writer_.taken() != announced_.taken ||
         (long_.feeding() && !is_injected(FaultInjection::long_message_sleeps));
}

}  // namespace dunlin::multicast
