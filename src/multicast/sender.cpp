#include "multicast/sender.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "assert.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

namespace dunlin::multicast {
namespace {

/// Bounds of the bytes that are put to each peer before receipts are published again.
constexpr std::size_t kLeastAtOnce = 4096;
constexpr std::size_t kMostAtOnce = 65'536;

}  // namespace

Sender::Sender(ViewMemory& memory, Receipts& receipts, RowPublisher& publisher,
               Statistics& statistics, const Lifecycle& lifecycle)
    : memory_(memory),
      receipts_(receipts),
      publisher_(publisher),
      statistics_(statistics),
      lifecycle_(lifecycle),
      own_(memory.own_sender_rank()),
      ring_(own_ ? memory.ring_of(*own_) : memory.shape()),
      writer_(ring_, memory.options().window_messages),
      posting_(ring_),
      posted_(memory.members()) {}

std::span<std::byte> Sender::prepare(std::size_t bytes) noexcept {
  std::byte* at = nullptr;
  if (own_ && lifecycle_.open() && !long_.feeding()) at = prepare_record(bytes);
  if (at == nullptr) {
    statistics_.note_no_room();
    return {};
  }
  if (statistics_.lacks_room()) [[unlikely]]
    statistics_.note_room();
  return {at, bytes};
}

inline std::byte* Sender::prepare_record(std::size_t bytes) noexcept {
  if (std::byte* const at = writer_.prepare(bytes)) return at;
  reclaim();
  return writer_.prepare(bytes);
}

void Sender::commit() noexcept {
  if (!writer_.prepared() || lifecycle_.over()) return;
  statistics_.counters.bytes_sent += writer_.commit();
  ++statistics_.counters.messages_sent;
  if (statistics_.times_next()) [[unlikely]]
    statistics_.start_timing(writer_.taken());
}

SendResult Sender::send(std::span<const std::byte> message) {
  if (!own_) return SendResult::not_a_sender;
  if (message.size() > ring_.most_message_bytes()) return send_long(message);
  const std::span<std::byte> room = prepare(message.size());
  if (room.data() == nullptr) return lifecycle_.open() ? SendResult::no_room : SendResult::wedged;
  if (!message.empty()) std::memcpy(room.data(), message.data(), message.size());
  commit();
  return SendResult::sent;
}

SendResult Sender::send_long(std::span<const std::byte> message) {
  if (message.size() > kMaxCastBytes) {
    refuse(memory_.options(), "a message of " + std::to_string(message.size()) +
                                  " bytes; at most " + std::to_string(kMaxCastBytes) +
                                  " (kMaxCastBytes) are allowed");
  }
  if (!lifecycle_.open() || long_.feeding()) {
    statistics_.note_no_room();
    return lifecycle_.open() ? SendResult::no_room : SendResult::wedged;
  }
  if (statistics_.lacks_room()) statistics_.note_room();
  long_.add(message);
  ++statistics_.counters.messages_sent;
  statistics_.counters.bytes_sent += message.size();
  feed();
  return SendResult::sent;
}

bool Sender::has_room(std::size_t bytes) noexcept {
  if (!own_ || !lifecycle_.open() || long_.feeding()) return false;
  if (bytes > ring_.most_message_bytes() || writer_.has_room(bytes)) return true;
  reclaim();
  return writer_.has_room(bytes);
}

/// Frees the bytes of records that all members have delivered (MC-B2).
void Sender::reclaim() noexcept {
  const bool ordered = memory_.ordered();
  const std::size_t offset = ordered ? row::kDelivered : row::kConsumed + *own_ * kWordBytes;
  std::uint64_t lowest = UINT64_MAX;
  for (std::size_t member = 0; member < posted_.size(); ++member)
    lowest = std::min(lowest, memory_.seen(member, offset));
  const std::uint64_t slots =
      ordered ? order::slots_below(lowest, *own_, memory_.senders()) : lowest;
  writer_.free_below(slots);
  long_.free_below(slots);
}

/// Makes records of a long message, as far as there is room.
void Sender::feed() noexcept {
  const std::size_t most = ring_.bytes / 8 - kWordBytes;
  while (long_.feeding()) {
    SentLong::Message& message = long_.last();
    const std::size_t bytes = std::min(most, message.bytes.size() - message.fed);
    std::byte* const at = prepare_record(bytes);
    if (at == nullptr) return;
    std::memcpy(at, message.bytes.data() + message.fed, bytes);
    if (message.fed == 0) message.first_slot = writer_.taken();
    message.fed += bytes;
    const bool last = message.fed == message.bytes.size();
    if (last) message.last_slot = writer_.taken();
    writer_.commit(!last);
  }
}

void Sender::take_nulls() noexcept {
  if (!own_ || !memory_.options().switches.nulls) return;
  const std::uint64_t due = order::slots_due(receipts_.real(), *own_);
  if (due <= writer_.taken()) return;
  if (std::exchange(silent_since_, writer_.real()) != writer_.real()) nulls_in_a_row_ = 0;
  const std::uint64_t parts = memory_.options().switches.nulls_ahead ? nulls_in_a_row_++ : 0;
  const std::uint64_t silent = writer_.taken() - writer_.real();
  statistics_.counters.nulls += writer_.pass_to(order::nulls_up_to(due, silent, parts));
}

bool Sender::poll() noexcept {
  if (!own_) return false;
  if (long_.feeding()) [[unlikely]]
    feed();
  if (goal_.taken == announced_.taken) choose_goal();
  if (goal_.taken == announced_.taken) return false;
  if (!inline_payload() && !post_records()) return false;
  announce();
  return true;
}

/// The goal is limited, because receipts wait on the same queue behind the records.
void Sender::choose_goal() noexcept {
  const bool batch = memory_.options().switches.batch_send;
  const std::uint64_t most =
      announced_.head + std::clamp(ring_.bytes / 16, kLeastAtOnce, kMostAtOnce);
  if (!batch || writer_.head() > most) {
    std::uint64_t slots = 0;
    while (posting_.next(writer_.real()) != kNoSlot) {
      slots = posting_.take().slot + 1;
      if (!batch || posting_.position() >= most) break;
    }
    if (slots != 0 && posting_.next(writer_.real()) != kNoSlot) {
      goal_ = {posting_.position(), slots, slots, posting_.records()};
      return;
    }
  }
  posting_ = writer_.end();
  goal_ = {writer_.head(), writer_.real(), writer_.taken(), writer_.records()};
}

/// Whether all others have seen the words that were inlined last (MC-B6).
inline bool Sender::may_inline() const noexcept {
  const SubgroupViewOptions& options = memory_.options();
  if (options.mode != Mode::ordered || !options.switches.one_cache_line ||
      !memory_.rings_connected())
    return false;
  for (std::size_t member = 0; member < posted_.size(); ++member) {
    if (member != memory_.me() && receipts_.received_by(member) < inlined_below_) return false;
  }
  return true;
}

/// Puts small records into the line itself, if it may.
bool Sender::inline_payload() noexcept {
  const std::uint64_t bytes = goal_.head - announced_.head;
  if (bytes == 0 || bytes > row::kMaxInlinedWords * kWordBytes || !may_inline()) return false;
  DUNLIN_ASSERT(bytes % kWordBytes == 0, "MC-B6: a line carries whole words");
  const RingRun run = first_run(ring_, announced_.head, goal_.head);
  if (run.bytes != bytes) return false;
  memory::fetch(memory_.table().mine() + row::kInlined, ring_.memory + run.place, run.bytes);
  memory_.write(row::kInlinedAt, announced_.head + bytes / kWordBytes);
  std::ranges::fill(posted_, goal_.head);
  inlined_below_ = order::sequence_of(goal_.real - 1, *own_, memory_.senders()) + 1;
  publisher_.carry_payload();
  return true;
}

/// Posts records up to the goal; false if a queue is full, or a peer's ring is not there yet.
bool Sender::post_records() noexcept {
  if (!memory_.rings_connected()) return false;
  if (goal_.head == announced_.head) return true;
  const bool timed = memory_.options().switches.time_posting;
  const std::uint64_t start = timed ? memory_.fabric().now_ns() : 0;
  bool all = true;
  for (std::size_t member = 0; member < posted_.size(); ++member)
    if (member != memory_.me()) all &= post_to(member);
  if (timed) statistics_.counters.posting_ns += memory_.fabric().now_ns() - start;
  return all;
}

bool Sender::post_to(std::size_t member) noexcept {
  if (posted_[member] == goal_.head) return true;
  const std::size_t base = *own_ * ring_.bytes;
  std::array<Operation, 2> puts;
  std::size_t runs = 0;
  // Two runs are enough, unless a peer has spoilt what frees the ring (MC-R3): the rest comes
  // later.
  for (std::uint64_t at = posted_[member]; at != goal_.head && runs < puts.size(); ++runs) {
    const RingRun run = first_run(ring_, at, goal_.head);
    // The ring keeps the bytes until receipts come, which is not before the next poll().
    puts[runs] = put(memory_.options().members[member], memory_.rings().id(), base + run.place,
                     ring_.memory + run.place, run.bytes)
                     .more_follows();
    at += run.bytes;
  }
  const Posted posted = memory_.fabric().post(std::span(puts).first(runs));
  for (std::size_t i = 0; i < posted.accepted; ++i) posted_[member] += puts[i].bytes;
  statistics_.counters.puts += posted.accepted;
  return posted.all() && posted_[member] == goal_.head;
}

/// All peers have the records, or will have them before they see the announcement (MC-B1).
void Sender::announce() noexcept {
  DUNLIN_ASSERT(own_.has_value() && memory_.rings_connected(),
                "MC-B1: only a sender announces, and only once every peer has a ring for it");
  DUNLIN_ASSERT(goal_.head == announced_.head ||
                    std::ranges::all_of(posted_,
                                        [&](const std::uint64_t& posted) {
                                          return &posted == &posted_[memory_.me()] ||
                                                 posted == goal_.head;
                                        }),
                "MC-B1: all peers have been sent the records before they are announced");
  Counters& counters = statistics_.counters;
  counters.records_announced += goal_.records - announced_.records;
  counters.send_batches += goal_.records != announced_.records ? 1 : 0;
  announced_ = goal_;
  memory_.write(row::kReal, announced_.real);
  memory_.write(row::kSent, announced_.taken);
  receipts_.announced(announced_.taken, announced_.real);
}

bool Sender::handed_over() noexcept {
  if (long_.feeding() || announced_.real != writer_.real()) return false;
  if (!own_ || writer_.real() == 0) return true;
  for (std::size_t member = 0; member < posted_.size(); ++member) {
    if (member == memory_.me() || !memory_.table().alive(member) || has_all(member)) continue;
    if (!memory_.ordered()) publisher_.ask(writer_.head());
    return false;
  }
  return !publisher_.owes_receipts() && memory_.table().settled();
}

/// In the durable mode, whether the member has them on its disk: the view's end counts only those.
bool Sender::has_all(std::size_t member) const noexcept {
  if (!memory_.ordered())
    return memory_.seen(member, row::kConsumed + *own_ * kWordBytes) >= writer_.real();
  const bool durable = memory_.durable();
  const std::uint64_t lacks = order::next_message(
      memory_.seen(member, durable ? row::kPersisted : row::kReceived),
      durable ? std::nullopt : memory_.sender_rank_of(member), receipts_.taken(), receipts_.real());
  return lacks > order::sequence_of(writer_.real() - 1, *own_, memory_.senders());
}

/// A long message counts if its last record does.
std::vector<std::vector<std::byte>> Sender::uncovered(std::uint64_t trim) const {
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
    const bool covered = record.slot < trim;
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
