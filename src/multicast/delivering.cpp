#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "assert.hpp"
#include "flaw.hpp"
#include "multicast/epoch.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

namespace dunlin::multicast {

/// While a batch is handed up. Afterwards it is delivered, whatever the upcall threw.
class Epoch::Batching {
 public:
  explicit Batching(Epoch& epoch) noexcept : epoch_(epoch) { epoch_.polling_ = true; }
  Batching(const Batching&) = delete;
  Batching& operator=(const Batching&) = delete;
  ~Batching() {
    epoch_.polling_ = false;
    epoch_.settle();
  }

 private:
  Epoch& epoch_;
};

/// Third stage: a batch of what may be delivered.
std::size_t Epoch::deliver_stage() {
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

std::optional<Delivery> Epoch::next() {
  if (held_) return std::nullopt;
  if (handed_) settle();
  gather_for_next();
  if (batched_ == 0) return std::nullopt;
  handed_ = true;
  ++counters_.deliver_batches;
  return batch_.front();
}

std::optional<std::vector<std::uint64_t>> Epoch::handed_up() const {
  if (batched_ > 0 && !handed_) return std::nullopt;
  std::vector<std::uint64_t> turns;
  turns.reserve(sources_.size());
  for (const Source& source : sources_) turns.push_back(source.cursor.turns());
  return turns;
}

/// What next() will return is looked for in poll(), too: the parts of a long message are put
/// together as they come, or its sender would wait for room, and we for its last part.
bool Epoch::gather_for_next() {
  if (batched_ > 0 || taken_.empty()) return false;
  const bool any = gather(1);
  if (any && batched_ == 0) settle();
  return any;
}

/// The sender's next record into the batch; false if the batch must be handed up before.
inline bool Epoch::take(std::size_t seat) {
  Source& source = sources_[seat];
  if (source.assembly.held()) [[unlikely]]
    return false;
  const Record record = source.cursor.take();
  source.next_turn = source.cursor.next(real_[seat]);
  if (record.continues || source.assembly.open()) [[unlikely]]
    return take_part(seat, record);
  DUNLIN_ASSERT(batched_ < batch_.size(), "a batch has at most kMaxBatchMessages messages");
  batch_[batched_++] = {source.member, record.turn, record.message};
  batched_bytes_ += record.message.size();
  return true;
}

bool Epoch::take_part(std::size_t seat, const Record& record) {
  Source& source = sources_[seat];
  parts_ = true;
  if (!source.assembly.add(record)) return true;
  batch_[batched_++] = {source.member, record.turn, source.assembly.message()};
  batched_bytes_ += record.message.size();
  counters_.bytes_delivered += source.assembly.message().size() - record.message.size();
  return true;
}

/// For the next record of each sender. Not while receiving: it may have to be fetched from another
/// core, and receipts must not wait for that.
void Epoch::look_ahead() noexcept {
  for (std::size_t seat = 0; seat < sources_.size(); ++seat) {
    Source& source = sources_[seat];
    if (source.carried.kept) put_carried(seat);
    if (source.next_turn == kNoTurn) source.next_turn = source.cursor.next(real_[seat]);
  }
}

/// Returns whether anything was passed, be it a null.
bool Epoch::gather(std::size_t most) {
  if (over_) {
    gather_rest(most);
    return batched_ > 0;
  }
  if (wedged_) return false;
  if (ordered()) {
    gather_in_order(most);
    return order::number_of(round_, turn_of_, taken_.size()) != delivered_;
  }
  gather_any(most);
  return batched_ > 0 || parts_;
}

/// Enough for one upcall: others wait to hear what is free again.
inline bool Epoch::full(std::size_t most) const noexcept {
  return batched_ >= most || batched_bytes_ >= sources_.size() * (shape_.bytes / 8);
}

void Epoch::gather_in_order(std::size_t most) {
  const std::size_t senders = taken_.size();
  const std::uint64_t stable = deliverable_;
  std::uint64_t number = order::number_of(round_, turn_of_, senders);
  std::uint64_t round = round_;
  std::size_t seat = turn_of_;
  std::size_t nulls = 0;  // in a row
  while (number < stable && !full(most)) {
    if (sources_[seat].next_turn == round) {
      if (!take(seat)) break;
      nulls = 0;
    } else if (++nulls > senders) {  // silence: on to the next message
      number = std::min(stable, nearest_record());
      round = number / senders;
      seat = number % senders;
      nulls = 0;
      continue;
    }
    ++number;
    if (++seat == senders) {
      seat = 0;
      ++round;
    }
  }
  DUNLIN_ASSERT(seat < senders, "MC-O2: a number belongs to a sender");
  DUNLIN_ASSERT(number <= stable || batched_ == 0,
                "MC-O3: nothing is delivered before all have received it");
  round_ = round;
  turn_of_ = seat;
}

void Epoch::gather_any(std::size_t most) {
  const std::size_t senders = taken_.size();
  for (std::size_t i = 0; i < senders && !full(most); ++i) {
    const std::size_t seat = (first_seat_ + i) % senders;
    while (sources_[seat].next_turn < taken_[seat] && !full(most))
      if (!take(seat)) break;
  }
  if (++first_seat_ >= senders) first_seat_ = 0;
}

/// After the end: what the trim still counts, in the order of its numbers.
void Epoch::gather_rest(std::size_t most) {
  while (!full(most)) {
    const std::uint64_t number = nearest_record();
    if (number == kNoTurn || !take(number % taken_.size())) return;
  }
}

/// The lowest number of a record that is there, and that the trim counts, if there is one.
std::uint64_t Epoch::nearest_record() const noexcept {
  std::uint64_t lowest = kNoTurn;
  for (std::size_t seat = 0; seat < sources_.size(); ++seat) {
    const std::uint64_t turn = sources_[seat].next_turn;
    if (turn == kNoTurn || (over_ && turn >= trim_[seat])) continue;
    lowest = std::min(lowest, order::number_of(turn, seat, sources_.size()));
  }
  return lowest;
}

/// What was handed up is not read any more.
void Epoch::settle() noexcept {
  handed_ = false;
  counters_.messages_delivered += batched_;
  counters_.bytes_delivered += batched_bytes_;
  batched_ = 0;
  batched_bytes_ = 0;
  if (parts_) [[unlikely]] {
    for (Source& source : sources_) source.assembly.let_go();
    parts_ = false;
  }
  if (over_ || sources_.empty()) return;
  if (timed_.since_ns != 0) [[unlikely]]
    note_own();
  for (std::size_t seat = 0; seat < sources_.size(); ++seat) {
    Source& source = sources_[seat];
    const RingCursor& cursor = source.cursor;
    if (source.freed.records == cursor.records()) continue;
    counters_.records_delivered += cursor.records() - source.freed.records;
    source.freed = {cursor.position(), cursor.records()};
    if (!ordered()) {
      say(row::kConsumed + seat * kWordBytes, cursor.turns());
      source.assembly.forget_parts_below(
          cursor.turns() - std::min<std::uint64_t>(cursor.turns(), shape_.bytes / kWordBytes));
    }
    if (seat != seat_ && freed_enough(seat)) must_say_freed_ = !flawed(Flaw::room_is_not_told);
  }
  if (!ordered()) return;
  delivered_ = order::number_of(round_, turn_of_, sources_.size());
  say(row::kDelivered, delivered_);
}

/// An eighth of the ring or of the window: less is not worth a write.
bool Epoch::freed_enough(std::size_t seat) const noexcept {
  const Freed& freed = sources_[seat].freed;
  const Freed& said = sources_[seat].said_freed;
  if (freed.position - said.position >= shape_.bytes / 8) return true;
  const std::uint32_t window = options_.window_messages;
  return window != 0 && freed.records - said.records >= std::max(window / 8, 1U);
}

Epoch::Remains Epoch::finish(std::span<const std::uint64_t> trim) {
  bool fits = !over_ && trim.size() == taken_.size();
  for (std::size_t seat = 0; fits && seat < trim.size(); ++seat)
    fits = trim[seat] <= received()[seat];
  if (!fits) {
    throw Error("subgroup '" + options_.name +
                "': finish() is called once, with as many turns of each sender as all survivors "
                "have received");
  }
  wedge();
  if (upcall_ || handed_) settle();  // or next() still hands up what was found
  look_ahead();
  Remains remains;
  if (!ordered() && !flawed(Flaw::ahead_is_forgotten)) {
    for (std::size_t seat = 0; seat < trim.size(); ++seat) {
      const std::uint64_t turns = sources_[seat].cursor.turns();
      const std::uint64_t beyond = turns - std::min(turns, trim[seat]);
      remains.ahead.push_back(beyond - sources_[seat].assembly.parts_from(trim[seat]));
    }
  }
  if (durable()) cut_log(trim);
  over_ = true;
  trim_.assign(trim.begin(), trim.end());
  if (seat_) remains.again = uncovered(trim_[*seat_]);
  while (upcall_ && gather(kMaxBatchMessages)) {
    const Batching batching(*this);
    ++counters_.deliver_batches;
    upcall_(std::span(batch_).first(batched_));
  }
  return remains;
}

/// A message counts if its last record does.
std::vector<std::vector<std::byte>> Epoch::uncovered(std::uint64_t trim) const {
  using Message = std::vector<std::byte>;
  std::vector<std::pair<std::uint64_t, Message>> found;
  for (const SentLong::Message& message : long_.messages())
    if (message.last_turn >= trim) found.emplace_back(message.first_turn, message.bytes);
  RingCursor cursor = writer_.tail();
  while (cursor.next(writer_.real()) != kNoTurn) {
    const Record record = cursor.take();
    const auto holds = [&](const SentLong::Message& message) {
      return message.first_turn <= record.turn && record.turn <= message.last_turn;
    };
    const bool covered = record.turn < trim && !flawed(Flaw::delivered_is_sent_again);
    if (covered || std::ranges::any_of(long_.messages(), holds)) continue;
    found.emplace_back(record.turn, Message(record.message.begin(), record.message.end()));
  }
  std::ranges::sort(found, {}, &std::pair<std::uint64_t, Message>::first);
  std::vector<Message> messages;
  messages.reserve(found.size());
  for (auto& [turn, message] : found) messages.push_back(std::move(message));
  return messages;
}

}  // namespace dunlin::multicast
