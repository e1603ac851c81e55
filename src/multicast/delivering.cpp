#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

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
  const bool more = std::exchange(changed_, false);
  if (more && ordered()) find_stable();
  if (!upcall_) return more ? 1 : 0;  // next() delivers
  if (!gather(options_.switches.batch_deliver ? kMaxBatchMessages : 1)) return 0;
  const Batching batching(*this);
  if (batched_ == 0) return 1;
  ++counters_.deliver_batches;
  spend(batched_, 1);
  upcall_(std::span(batch_).first(batched_));
  return batched_;
}

std::optional<Delivery> Epoch::next() {
  settle();
  gather(1);
  if (batched_ == 0) return std::nullopt;
  ++counters_.deliver_batches;
  return batch_.front();
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
  const std::uint64_t before = counters_.records_delivered;
  gather_any(most);
  return counters_.records_delivered != before;
}

/// Enough for one upcall: others wait to hear what is free again.
bool Epoch::full(std::size_t most) const noexcept {
  return batched_ >= most || batched_bytes_ >= shape_.bytes / 8;
}

void Epoch::gather_in_order(std::size_t most) {
  const std::size_t senders = taken_.size();
  std::uint64_t number = order::number_of(round_, turn_of_, senders);
  std::size_t nulls = 0;  // in a row
  while (number < stable_ && !full(most)) {
    if (next_turn_[turn_of_] == round_) {
      if (!take(turn_of_)) break;
      nulls = 0;
    } else if (++nulls > senders) {  // silence: on to the next message
      number = std::min(stable_, nearest_record());
      round_ = number / senders;
      turn_of_ = number % senders;
      nulls = 0;
      continue;
    }
    ++number;
    if (++turn_of_ == senders) {
      turn_of_ = 0;
      ++round_;
    }
  }
}

void Epoch::gather_any(std::size_t most) {
  const std::size_t senders = taken_.size();
  for (std::size_t i = 0; i < senders && !full(most); ++i) {
    const std::size_t seat = (first_seat_ + i) % senders;
    while (next_turn_[seat] < taken_[seat] && !full(most))
      if (!take(seat)) break;
  }
  first_seat_ = (first_seat_ + 1) % senders;
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
  for (std::size_t seat = 0; seat < next_turn_.size(); ++seat) {
    const std::uint64_t turn = next_turn_[seat];
    if (turn == kNoTurn || (over_ && turn >= trim_[seat])) continue;
    lowest = std::min(lowest, order::number_of(turn, seat, next_turn_.size()));
  }
  return lowest;
}

/// The sender's next record into the batch; false if the batch must be handed up before.
bool Epoch::take(std::size_t seat) {
  if (assemblies_[seat].held()) [[unlikely]]
    return false;
  const Record record = cursors_[seat].take();
  next_turn_[seat] = cursors_[seat].next(real_[seat]);
  ++counters_.records_delivered;
  std::span<const std::byte> message = record.message;
  if (record.continues || assemblies_[seat].open()) [[unlikely]] {
    if (!assemblies_[seat].add(record)) return true;
    message = assemblies_[seat].message();
    held_ = true;
  }
  batch_[batched_++] = {options_.senders[seat], record.turn, message};
  batched_bytes_ += record.message.size();
  ++counters_.messages_delivered;
  counters_.bytes_delivered += message.size();
  return true;
}

/// What was handed up is not read any more.
void Epoch::settle() noexcept {
  batched_ = 0;
  batched_bytes_ = 0;
  if (held_) [[unlikely]] {
    for (Assembly& assembly : assemblies_) assembly.let_go();
    held_ = false;
  }
  if (over_ || options_.senders.empty()) return;
  for (std::size_t seat = 0; seat < freed_.size(); ++seat) {
    const RingCursor& cursor = cursors_[seat];
    if (freed_[seat].position == cursor.position()) continue;
    freed_[seat] = {cursor.position(), cursor.records()};
    if (!ordered()) {
      say(row::kConsumed + seat * kWordBytes, cursor.turns());
      assemblies_[seat].forget_parts_below(
          cursor.turns() - std::min<std::uint64_t>(cursor.turns(), shape_.bytes / kWordBytes));
    }
    if (seat != seat_ && freed_enough(seat)) must_say_freed_ = true;
  }
  if (!ordered()) return;
  delivered_ = order::number_of(round_, turn_of_, freed_.size());
  say(row::kDelivered, delivered_);
}

/// An eighth of the ring or of the window: less is not worth a write.
bool Epoch::freed_enough(std::size_t seat) const noexcept {
  const Freed& freed = freed_[seat];
  const Freed& said = said_freed_[seat];
  if (freed.position - said.position >= shape_.bytes / 8) return true;
  const std::uint32_t window = options_.window_messages;
  return window != 0 && freed.records - said.records >= std::max(window / 8, 1U);
}

Epoch::Remains Epoch::finish(std::span<const std::uint64_t> trim) {
  bool fits = !over_ && trim.size() == taken_.size();
  for (std::size_t seat = 0; fits && seat < trim.size(); ++seat) fits = trim[seat] <= taken_[seat];
  if (!fits) {
    throw Error("subgroup '" + options_.name +
                "': finish() is called once, with as many turns of each sender as all survivors "
                "have received");
  }
  wedge();
  settle();
  Remains remains;
  if (!ordered()) {
    for (std::size_t seat = 0; seat < trim.size(); ++seat) {
      const std::uint64_t turns = cursors_[seat].turns();
      const std::uint64_t beyond = turns - std::min(turns, trim[seat]);
      remains.ahead.push_back(beyond - assemblies_[seat].parts_from(trim[seat]));
    }
  }
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
    if (record.turn < trim || std::ranges::any_of(long_.messages(), holds)) continue;
    found.emplace_back(record.turn, Message(record.message.begin(), record.message.end()));
  }
  std::ranges::sort(found, {}, &std::pair<std::uint64_t, Message>::first);
  std::vector<Message> messages;
  for (auto& [turn, message] : found) messages.push_back(std::move(message));
  return messages;
}

}  // namespace dunlin::multicast
