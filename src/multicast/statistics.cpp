#include "multicast/statistics.hpp"

#include <algorithm>

namespace dunlin::multicast {
namespace {

/// So few publications that a message pays next to nothing.
constexpr std::uint32_t kPollsPerPublication = 64;

}  // namespace

Statistics::Statistics(ViewMemory& memory)
    : memory_(memory),
      shown_(memory.fabric(), "multicast=" + memory.options().name +
                                  "\ngeneration=" + std::to_string(memory.options().generation)) {}

void Statistics::start_timing(std::uint64_t slots) noexcept {
  timed_.due = false;
  timed_.slot = slots;
  timed_.since_ns = memory_.fabric().now_ns();
}

void Statistics::note_delivered(std::uint64_t slots) noexcept {
  if (slots < timed_.slot) return;
  timed_.last_ns = memory_.fabric().now_ns() - timed_.since_ns;
  timed_.since_ns = 0;
  ++timed_.count;
}

void Statistics::note_no_room() noexcept {
  ++counters.no_room;
  if (memory_.own_sender_rank() && no_room_since_ns_ == 0)
    no_room_since_ns_ = std::max<std::uint64_t>(memory_.fabric().recent_ns(), 1);
}

void Statistics::note_room() noexcept {
  no_room_ns_ = without_room_ns();
  no_room_since_ns_ = 0;
}

std::uint64_t Statistics::without_room_ns() const noexcept {
  const std::uint64_t now_ns = memory_.fabric().recent_ns();
  const bool waits = no_room_since_ns_ != 0 && now_ns > no_room_since_ns_;
  return no_room_ns_ + (waits ? now_ns - no_room_since_ns_ : 0);
}

/// Called now and then, and when there is nothing more to do.
void Statistics::publish() noexcept {
  shown_.messages.set(counters.messages_delivered);
  shown_.bytes.set(counters.bytes_delivered);
  shown_.nulls.set(counters.nulls);
  shown_.receive_batches.set(counters.receive_batches);
  shown_.send_batches.set(counters.send_batches);
  shown_.deliver_batches.set(counters.deliver_batches);
  shown_.no_room.set(counters.no_room);
  shown_.no_room_ns.set(without_room_ns());
  shown_.own_ns.set(timed_.last_ns);
  shown_.own_timed.set(timed_.count);
  if (polls_until_publication_ != 0) return;
  polls_until_publication_ = kPollsPerPublication;
  timed_.due = timed_.since_ns == 0;
}

}  // namespace dunlin::multicast
