#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "assert.hpp"
#include "fault_injection.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"
#include "multicast/subgroup_view.hpp"

namespace dunlin::multicast {

/// While a batch is handed up. Afterwards it is delivered, whatever the upcall threw.
class SubgroupView::Batching {
 public:
  explicit Batching(SubgroupView& view) noexcept : view_(view) { view_.polling_ = true; }
  Batching(const Batching&) = delete;
  Batching& operator=(const Batching&) = delete;
  ~Batching() {
    view_.polling_ = false;
    view_.settle();
  }

 private:
  SubgroupView& view_;
};

/// Third stage: a batch of what may be delivered.
std::size_t SubgroupView::deliver_stage() {
  if (held_) [[unlikely]]
    return 0;
  const bool more = std::exchange(changed_, false);
  if (more) look_ahead();
  if (more && ordered()) find_stable();
  if (more && durable()) find_persisted();
  if (!upcall_) return gather_for_next() || more ? 1 : 0;
  if (!gather(options_.switches.batch_deliver ? kMaxBatchMessages : 1)) return 0;
  const Batching batching(*this);
  if (batched_ == 0) return 1;
  ++counters_.deliver_batches;
  spend(batched_, 1);
  upcall_(std::span(batch_).first(batched_));
  return batched_;
}

std::optional<Delivery> SubgroupView::next() {
  if (held_) return std::nullopt;
  if (handed_) settle();
  gather_for_next();
  if (batched_ == 0) return std::nullopt;
  handed_ = true;
  ++counters_.deliver_batches;
  return batch_.front();
}

std::optional<std::vector<std::uint64_t>> SubgroupView::handed_up() const {
  if (batched_ > 0 && !handed_) return std::nullopt;
  std::vector<std::uint64_t> slots;
  slots.reserve(sources_.size());
  for (const Source& source : sources_) slots.push_back(source.cursor.slots());
  return slots;
}

/// What next() will return is looked for in poll(), too: the parts of a long message are put
/// together as they come, or its sender would wait for room, and we for its last part.
bool SubgroupView::gather_for_next() {
  if (batched_ > 0 || taken_.empty()) return false;
  const bool any = gather(1);
  if (any && batched_ == 0) settle();
  return any;
}

/// The sender's next record into the batch; false if the batch must be handed up before.
inline bool SubgroupView::take(std::size_t sender_rank) {
  Source& source = sources_[sender_rank];
  if (source.reassembly.held()) [[unlikely]]
    return false;
  const Record record = source.cursor.take();
  source.next_slot = source.cursor.next(real_[sender_rank]);
  if (record.continues || source.reassembly.open()) [[unlikely]]
    return take_fragment(sender_rank, record);
  DUNLIN_ASSERT(batched_ < batch_.size(), "a batch has at most kMaxBatchMessages messages");
  batch_[batched_++] = {source.member, record.slot, record.message};
  batched_bytes_ += record.message.size();
  return true;
}

bool SubgroupView::take_fragment(std::size_t sender_rank, const Record& record) {
  Source& source = sources_[sender_rank];
  fragments_ = true;
  if (!source.reassembly.add(record)) return true;
  batch_[batched_++] = {source.member, record.slot, source.reassembly.message()};
  batched_bytes_ += record.message.size();
  counters_.bytes_delivered += source.reassembly.message().size() - record.message.size();
  return true;
}

/// For the next record of each sender. Not while receiving: it may have to be fetched from another
/// core, and receipts must not wait for that.
void SubgroupView::look_ahead() noexcept {
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    Source& source = sources_[sender_rank];
    if (source.inlined.kept) put_inlined(sender_rank);
    if (source.next_slot == kNoSlot) source.next_slot = source.cursor.next(real_[sender_rank]);
  }
}

/// Returns whether anything was passed, be it a null.
bool SubgroupView::gather(std::size_t most) {
  if (over_) {
    gather_rest(most);
    return batched_ > 0;
  }
  if (wedged_) return false;
  if (ordered()) {
    gather_in_order(most);
    return order::sequence_of(round_, next_sender_, taken_.size()) != delivered_;
  }
  gather_any(most);
  return batched_ > 0 || fragments_;
}

/// Enough for one upcall: others wait to hear what is free again.
inline bool SubgroupView::full(std::size_t most) const noexcept {
  return batched_ >= most || batched_bytes_ >= sources_.size() * (shape_.bytes / 8);
}

void SubgroupView::gather_in_order(std::size_t most) {
  const std::size_t senders = taken_.size();
  const std::uint64_t stable = deliverable_;
  std::uint64_t number = order::sequence_of(round_, next_sender_, senders);
  std::uint64_t round = round_;
  std::size_t sender_rank = next_sender_;
  std::size_t nulls = 0;  // in a row
  while (number < stable && !full(most)) {
    if (sources_[sender_rank].next_slot == round) {
      if (!take(sender_rank)) break;
      nulls = 0;
    } else if (++nulls > senders) {  // silence: on to the next message
      number = std::min(stable, nearest_record());
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
  DUNLIN_ASSERT(number <= stable || batched_ == 0,
                "MC-O3: nothing is delivered before all have received it");
  round_ = round;
  next_sender_ = sender_rank;
}

void SubgroupView::gather_any(std::size_t most) {
  const std::size_t senders = taken_.size();
  for (std::size_t i = 0; i < senders && !full(most); ++i) {
    const std::size_t sender_rank = (first_sender_rank_ + i) % senders;
    while (sources_[sender_rank].next_slot < taken_[sender_rank] && !full(most))
      if (!take(sender_rank)) break;
  }
  if (++first_sender_rank_ >= senders) first_sender_rank_ = 0;
}

/// After the end: what the trim still counts, in the order of its numbers.
void SubgroupView::gather_rest(std::size_t most) {
  while (!full(most)) {
    const std::uint64_t number = nearest_record();
    if (number == kNoSlot || !take(number % taken_.size())) return;
  }
}

/// The lowest number of a record that is there, and that the trim counts, if there is one.
std::uint64_t SubgroupView::nearest_record() const noexcept {
  std::uint64_t lowest = kNoSlot;
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    const std::uint64_t slot = sources_[sender_rank].next_slot;
    if (slot == kNoSlot || (over_ && slot >= trim_[sender_rank])) continue;
    lowest = std::min(lowest, order::sequence_of(slot, sender_rank, sources_.size()));
  }
  return lowest;
}

/// What was handed up is not read any more.
void SubgroupView::settle() noexcept {
  handed_ = false;
  counters_.messages_delivered += batched_;
  counters_.bytes_delivered += batched_bytes_;
  batched_ = 0;
  batched_bytes_ = 0;
  if (fragments_) [[unlikely]] {
    for (Source& source : sources_) source.reassembly.let_go();
    fragments_ = false;
  }
  if (over_ || sources_.empty()) return;
  if (timed_.since_ns != 0) [[unlikely]]
    note_own();
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    Source& source = sources_[sender_rank];
    const RingCursor& cursor = source.cursor;
    if (source.freed.records == cursor.records()) continue;
    counters_.records_delivered += cursor.records() - source.freed.records;
    source.freed = {cursor.position(), cursor.records()};
    if (!ordered()) {
      publish_word(row::kConsumed + sender_rank * kWordBytes, cursor.slots());
      source.reassembly.forget_fragments_below(
          cursor.slots() - std::min<std::uint64_t>(cursor.slots(), shape_.bytes / kWordBytes));
    }
    if (sender_rank != own_sender_rank_ && freed_enough(sender_rank))
      must_publish_freed_ = !is_injected(FaultInjection::room_is_not_published);
  }
  if (!ordered()) return;
  delivered_ = order::sequence_of(round_, next_sender_, sources_.size());
  publish_word(row::kDelivered, delivered_);
}

/// An eighth of the ring or of the window: less is not worth a write.
bool SubgroupView::freed_enough(std::size_t sender_rank) const noexcept {
  const Freed& freed = sources_[sender_rank].freed;
  const Freed& said = sources_[sender_rank].published_freed;
  if (freed.position - said.position >= shape_.bytes / 8) return true;
  const std::uint32_t window = options_.window_messages;
  return window != 0 && freed.records - said.records >= std::max(window / 8, 1U);
}

SubgroupView::Remains SubgroupView::finish(std::span<const std::uint64_t> trim) {
  bool fits = !over_ && trim.size() == taken_.size();
  for (std::size_t sender_rank = 0; fits && sender_rank < trim.size(); ++sender_rank)
    fits = trim[sender_rank] <= received()[sender_rank];
  if (!fits) {
    throw Error("subgroup '" + options_.name +
                "': finish() is called once, with as many slots of each sender as all survivors "
                "have received");
  }
  wedge();
  if (upcall_ || handed_) settle();  // or next() still hands up what was found
  look_ahead();
  Remains remains;
  if (!ordered() && !is_injected(FaultInjection::ahead_is_forgotten)) {
    for (std::size_t sender_rank = 0; sender_rank < trim.size(); ++sender_rank) {
      const std::uint64_t slots = sources_[sender_rank].cursor.slots();
      const std::uint64_t beyond = slots - std::min(slots, trim[sender_rank]);
      remains.ahead.push_back(beyond -
                              sources_[sender_rank].reassembly.fragments_from(trim[sender_rank]));
    }
  }
  if (durable()) cut_log(trim);
  over_ = true;
  trim_.assign(trim.begin(), trim.end());
  if (own_sender_rank_) remains.again = uncovered(trim_[*own_sender_rank_]);
  while (upcall_ && gather(kMaxBatchMessages)) {
    const Batching batching(*this);
    ++counters_.deliver_batches;
    upcall_(std::span(batch_).first(batched_));
  }
  return remains;
}

/// A message counts if its last record does.
std::vector<std::vector<std::byte>> SubgroupView::uncovered(std::uint64_t trim) const {
  using Message = std::vector<std::byte>;
  std::vector<std::pair<std::uint64_t, Message>> found;
  for (const SentLong::Message& message : long_.messages())
    if (message.last_slot >= trim) found.emplace_back(message.first_slot, message.bytes);
  RingCursor cursor = writer_.tail();
  while (cursor.next(writer_.real()) != kNoSlot) {
    const Record record = cursor.take();
    const auto holds = [&](const SentLong::Message& message) {
      return message.first_slot <= record.slot && record.slot <= message.last_slot;
    };
    const bool covered =
        record.slot < trim && !is_injected(FaultInjection::delivered_is_sent_again);
    if (covered || std::ranges::any_of(long_.messages(), holds)) continue;
    found.emplace_back(record.slot, Message(record.message.begin(), record.message.end()));
  }
  std::ranges::sort(found, {}, &std::pair<std::uint64_t, Message>::first);
  std::vector<Message> messages;
  messages.reserve(found.size());
  for (auto& [slot, message] : found) messages.push_back(std::move(message));
  return messages;
}

}  // namespace dunlin::multicast
