#include "multicast/deliverer.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/limits.hpp>

#include "assert.hpp"
#include "multicast/log_stage.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

namespace dunlin::multicast {

/// How many messages next() finds at once, and returns one by one.
constexpr std::size_t kFoundAtOnce = 32;

/// At most half of what a sender may have under way, because they are all freed together.
[[nodiscard]] std::size_t found_at_once(const SubgroupViewOptions& options) noexcept {
  if (!options.switches.batch_deliver) return 1;
  if (options.window_messages == 0) return kFoundAtOnce;
  return std::clamp<std::size_t>(options.window_messages / 2, 1, kFoundAtOnce);
}

/// Marks a batch as handed up; afterwards it is delivered, even if the upcall threw.
class Deliverer::InUpcall {
 public:
  explicit InUpcall(Deliverer& deliverer) noexcept : deliverer_(deliverer) {
    deliverer_.batch_.state = BatchState::in_upcall;
  }
  InUpcall(const InUpcall&) = delete;
  InUpcall& operator=(const InUpcall&) = delete;
  ~InUpcall() { deliverer_.settle(); }

 private:
  Deliverer& deliverer_;
};

Deliverer::Deliverer(ViewMemory& memory, Receipts& receipts, const LogStage* log,
                     RowPublisher& publisher, Statistics& statistics, const Lifecycle& lifecycle,
                     Upcall upcall)
    : memory_(memory),
      receipts_(receipts),
      log_(log),
      publisher_(publisher),
      statistics_(statistics),
      lifecycle_(lifecycle),
      upcall_(std::move(upcall)),
      own_(memory.own_sender_rank()),
      ordered_(memory.ordered()),
      most_bytes_((upcall_ ? memory.senders() : 1) * (memory.shape().bytes / 8)),
      found_at_once_(log == nullptr ? found_at_once(memory.options()) : 1) {
  for (std::size_t sender_rank = 0; sender_rank < memory.senders(); ++sender_rank)
    sources_.push_back({.cursor = RingCursor(memory.ring_of(sender_rank)),
                        .member = memory.options().senders[sender_rank]});
  batch_.messages.resize(kMaxBatchMessages);
}

std::size_t Deliverer::poll() {
  if (held_) [[unlikely]]
    return 0;
  const bool more = receipts_.take_change();
  if (more) {
    look_ahead();
    if (ordered_) {
      receipts_.find_stable();
      deliverable_ = log_ != nullptr ? log_->deliverable() : receipts_.stable();
    }
  }
  if (!upcall_) return gather_for_next() || more ? 1 : 0;
  if (!gather(memory_.options().switches.batch_deliver ? kMaxBatchMessages : 1)) return 0;
  const InUpcall in_upcall(*this);
  if (batch_.size == 0) return 1;
  ++statistics_.counters.deliver_batches;
  memory_.spend(batch_.size, 1);
  upcall_(std::span(batch_.messages).first(batch_.size));
  return batch_.size;
}

std::optional<Delivery> Deliverer::next() {
  if (held_) return std::nullopt;
  if (batch_.handed == batch_.size) {
    if (batch_.state == BatchState::handed_out) settle();
    gather_for_next();
    if (batch_.size == 0) return std::nullopt;
  }
  if (batch_.handed == 0) {
    batch_.state = BatchState::handed_out;
    ++statistics_.counters.deliver_batches;
  }
  ++statistics_.counters.messages_delivered;
  return batch_.messages[batch_.handed++];
}

std::optional<std::vector<std::uint64_t>> Deliverer::handed_up() const {
  if (batch_.handed < batch_.size) return std::nullopt;
  std::vector<std::uint64_t> slots;
  slots.reserve(sources_.size());
  for (const Source& source : sources_) slots.push_back(source.cursor.slots());
  return slots;
}

Known Deliverer::passed(std::size_t sender_rank) const {
  const Source& source = sources_[sender_rank];
  const auto& fragments = source.reassembly.unfinished_slots();
  const auto known = static_cast<std::ptrdiff_t>(std::min(fragments.size(), kMaxKnownFragments));
  return {.slots = source.cursor.slots(), .fragments = {fragments.end() - known, fragments.end()}};
}

std::uint64_t Deliverer::records_passed() const noexcept {
  std::uint64_t records = 0;
  for (const Source& source : sources_) records += source.cursor.records();
  return records;
}

Deliverer::Delivered Deliverer::delivered_records() const noexcept {
  const std::uint64_t records = records_passed();
  Delivered delivered{.records = records, .complete = records};
  for (const Source& source : sources_)
    if (source.reassembly.open())
      delivered.complete = std::min(delivered.complete, source.began_at);
  return delivered;
}

std::vector<std::uint64_t> Deliverer::ahead_of(std::span<const std::uint64_t> trim) const {
  std::vector<std::uint64_t> ahead;
  for (std::size_t sender_rank = 0; sender_rank < trim.size(); ++sender_rank) {
    const Source& source = sources_[sender_rank];
    const std::uint64_t slots = source.cursor.slots();
    const std::uint64_t beyond = slots - std::min(slots, trim[sender_rank]);
    ahead.push_back(beyond - source.reassembly.fragments_from(trim[sender_rank]));
  }
  return ahead;
}

std::vector<RingCursor> Deliverer::cursors() const {
  std::vector<RingCursor> cursors;
  cursors.reserve(sources_.size());
  for (const Source& source : sources_) cursors.push_back(source.cursor);
  return cursors;
}

/// poll(), too, looks for the messages that next() will return: it puts the fragments of a long
/// message together as they come, or its sender would wait for room, and we for its last fragment.
bool Deliverer::gather_for_next() {
  if (batch_.size > 0 || sources_.empty()) return false;
  const bool any = gather(one_by_one_ ? 1 : found_at_once_);
  if (any && batch_.size == 0) settle();
  return any;
}

/// Adds the sender's next record to the batch; false if the batch must be handed up before.
inline bool Deliverer::take(std::size_t sender_rank) {
  Source& source = sources_[sender_rank];
  if (source.reassembly.held()) [[unlikely]]
    return false;
  const Record record = source.cursor.take();
  source.next_slot = source.cursor.next(receipts_.real()[sender_rank]);
  if (record.continues || source.reassembly.open()) [[unlikely]]
    return take_fragment(sender_rank, record);
  DUNLIN_ASSERT(batch_.size < batch_.messages.size(),
                "a batch has at most kMaxBatchMessages messages");
  batch_.messages[batch_.size++] = {source.member, record.slot, record.message};
  batch_.bytes += record.message.size();
  return true;
}

bool Deliverer::take_fragment(std::size_t sender_rank, const Record& record) {
  Source& source = sources_[sender_rank];
  batch_.fragments = true;
  if (!source.reassembly.open()) source.began_at = records_passed() - 1;
  if (!source.reassembly.add(record)) return true;
  const std::span<const std::byte> message = source.reassembly.message();
  batch_.messages[batch_.size++] = {source.member, record.slot, message};
  batch_.bytes += record.message.size();
  statistics_.counters.bytes_delivered += message.size() - record.message.size();
  return true;
}

/// Looks for the next record of each sender. Receiving does not do this, as the record may have to
/// be fetched from another core, and receipts must not wait for that.
void Deliverer::look_ahead() noexcept {
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    Source& source = sources_[sender_rank];
    if (receipts_.keeps_inlined(sender_rank)) receipts_.store_inlined(sender_rank);
    if (source.next_slot == kNoSlot)
      source.next_slot = source.cursor.next(receipts_.real()[sender_rank]);
  }
}

/// Returns whether it has passed anything, be it a null.
bool Deliverer::gather(std::size_t most) {
  if (!lifecycle_.open()) [[unlikely]] {
    if (lifecycle_.over()) gather_rest(most);
    return lifecycle_.over() && batch_.size > 0;
  }
  if (ordered_) {
    gather_in_order(most);
    return order::sequence_of(round_, next_sender_, sources_.size()) != delivered_;
  }
  gather_any(most);
  return batch_.size > 0 || batch_.fragments;
}

/// Whether one upcall has enough, as others wait to hear what is free again.
inline bool Deliverer::full(std::size_t most) const noexcept {
  return batch_.size >= most || batch_.bytes >= most_bytes_;
}

void Deliverer::gather_in_order(std::size_t most) {
  const std::size_t senders = sources_.size();
  const std::uint64_t deliverable = deliverable_;
  std::uint64_t number = order::sequence_of(round_, next_sender_, senders);
  std::uint64_t round = round_;
  std::size_t sender_rank = next_sender_;
  std::size_t nulls = 0;  // in a row
  while (number < deliverable && !full(most)) {
    if (sources_[sender_rank].next_slot == round) {
      if (!take(sender_rank)) break;
      nulls = 0;
    } else if (++nulls > senders) {  // all senders are silent: go on with the next message
      number = std::min(deliverable, nearest_record());
      round = number / senders;
      sender_rank = number % senders;
      nulls = 0;
      continue;
    }
    ++number;
    if (++sender_rank == senders) {
      sender_rank = 0;
      ++round;
    }
  }
  DUNLIN_ASSERT(sender_rank < senders, "MC-O2: a number belongs to a sender");
  DUNLIN_ASSERT(number <= deliverable || batch_.size == 0,
                "MC-O3: nothing is delivered before all have received it");
  round_ = round;
  next_sender_ = sender_rank;
}

void Deliverer::gather_any(std::size_t most) {
  const std::size_t senders = sources_.size();
  const std::span<const std::uint64_t> taken = receipts_.taken();
  for (std::size_t i = 0; i < senders && !full(most); ++i) {
    const std::size_t sender_rank = (first_sender_rank_ + i) % senders;
    while (sources_[sender_rank].next_slot < taken[sender_rank] && !full(most))
      if (!take(sender_rank)) break;
  }
  if (++first_sender_rank_ >= senders) first_sender_rank_ = 0;
}

/// Gathers what the trim still covers, after the view's end, in the order of numbers.
void Deliverer::gather_rest(std::size_t most) {
  while (!full(most)) {
    const std::uint64_t number = nearest_record();
    if (number == kNoSlot || !take(number % sources_.size())) return;
  }
}

/// The lowest number of a record that is here and covered by a trim, if there is one; else kNoSlot.
std::uint64_t Deliverer::nearest_record() const noexcept {
  std::uint64_t lowest = kNoSlot;
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    const std::uint64_t slot = sources_[sender_rank].next_slot;
    if (slot == kNoSlot || (lifecycle_.over() && slot >= trim_[sender_rank])) continue;
    lowest = std::min(lowest, order::sequence_of(slot, sender_rank, sources_.size()));
  }
  return lowest;
}

/// To be called once the user does not read the messages of the batch any more.
void Deliverer::settle() noexcept {
  empty_batch();
  if (lifecycle_.over() || sources_.empty()) return;
  if (statistics_.timing() && own_) [[unlikely]]
    statistics_.note_delivered(sources_[*own_].cursor.slots());
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank)
    free_records(sender_rank);
  if (!ordered_) return;
  delivered_ = order::sequence_of(round_, next_sender_, sources_.size());
  memory_.write(row::kDelivered, delivered_);
}

inline void Deliverer::empty_batch() noexcept {
  statistics_.counters.messages_delivered += batch_.size - batch_.handed;
  statistics_.counters.bytes_delivered += batch_.bytes;
  batch_.state = BatchState::gathering;
  batch_.size = 0;
  batch_.handed = 0;
  batch_.bytes = 0;
  if (!batch_.fragments) [[likely]]
    return;
  for (Source& source : sources_) source.reassembly.let_go();
  batch_.fragments = false;
}

inline void Deliverer::free_records(std::size_t sender_rank) noexcept {
  Source& source = sources_[sender_rank];
  const RingCursor& cursor = source.cursor;
  const std::uint64_t records = publisher_.free_before(sender_rank, cursor);
  if (records == 0) return;
  statistics_.counters.records_delivered += records;
  if (!ordered_) {
    memory_.write(row::kConsumed + sender_rank * kWordBytes, cursor.slots());
    source.reassembly.forget_fragments_below(
        cursor.slots() -
        std::min<std::uint64_t>(cursor.slots(), memory_.shape().bytes / kWordBytes));
  }
  if (sender_rank != own_ && publisher_.freed_enough(sender_rank)) publisher_.must_publish_freed();
}

void Deliverer::stop() noexcept {
  if (upcall_ || batch_.handed == batch_.size) settle();
  look_ahead();
}

void Deliverer::deliver_no_more() { trim_.assign(sources_.size(), 0); }

void Deliverer::deliver_rest(std::span<const std::uint64_t> trim) {
  DUNLIN_ASSERT(lifecycle_.over() && trim.size() == sources_.size(),
                "the trim is known once the view is over");
  trim_.assign(trim.begin(), trim.end());
  while (upcall_ && gather(kMaxBatchMessages)) {
    const InUpcall in_upcall(*this);
    ++statistics_.counters.deliver_batches;
    upcall_(std::span(batch_.messages).first(batch_.size));
  }
}

}  // namespace dunlin::multicast
