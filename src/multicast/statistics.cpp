#include "multicast/statistics.hpp"

#include <algorithm>
#include <array>

#include "multicast/row.hpp"

namespace dunlin::multicast {
namespace {

/// A batch each, so that a message pays next to nothing.
constexpr std::uint32_t kPollsPerPublication = 64;

}  // namespace

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

/// Now and then, and when there is nothing more to do.
void Statistics::publish() noexcept {
  const std::array shown{counters.messages_delivered,
                         counters.bytes_delivered,
                         counters.nulls,
                         counters.receive_batches,
                         counters.send_batches,
                         counters.deliver_batches,
                         counters.no_room,
                         without_room_ns(),
                         timed_.last_ns,
                         timed_.count};
  static_assert(shown.size() == row::kStatisticsNames.size(), "a value for each column");
  const std::size_t offset = row::statistics_offset(memory_.senders(), memory_.options().mode);
  for (std::size_t i = 0; i < shown.size(); ++i) memory_.write(offset + i * kWordBytes, shown[i]);
  if (polls_until_publication_ != 0) return;
  polls_until_publication_ = kPollsPerPublication;
  timed_.due = timed_.since_ns == 0;
}

}  // namespace dunlin::multicast
