#include <algorithm>
#include <array>

#include "multicast/row.hpp"
#include "multicast/subgroup_view.hpp"

/// What `dunlin top` shows of a subgroup: columns of the own row, which are pushed to nobody for
/// their own sake. Observers read each row in its owner's memory.
namespace dunlin::multicast {
namespace {

/// A batch each, so that a message pays next to nothing.
constexpr std::uint32_t kPollsPerPublication = 64;

}  // namespace

void SubgroupView::time_own() noexcept {
  timed_.due = false;
  timed_.slot = writer_.taken();
  timed_.since_ns = fabric_.now_ns();
}

void SubgroupView::note_own() noexcept {
  if (!own_sender_rank_ || sources_[*own_sender_rank_].cursor.slots() < timed_.slot) return;
  timed_.last_ns = fabric_.now_ns() - timed_.since_ns;
  timed_.since_ns = 0;
  ++timed_.count;
}

/// A sender that does not try again counts as having no room until it does.
void SubgroupView::note_no_room() noexcept {
  ++counters_.no_room;
  if (own_sender_rank_ && no_room_since_ns_ == 0)
    no_room_since_ns_ = std::max<std::uint64_t>(fabric_.recent_ns(), 1);
}

void SubgroupView::note_room() noexcept {
  no_room_ns_ = without_room_ns();
  no_room_since_ns_ = 0;
}

std::uint64_t SubgroupView::without_room_ns() const noexcept {
  const std::uint64_t now_ns = fabric_.recent_ns();
  const bool waits = no_room_since_ns_ != 0 && now_ns > no_room_since_ns_;
  return no_room_ns_ + (waits ? now_ns - no_room_since_ns_ : 0);
}

/// Now and then, and when there is nothing more to do.
void SubgroupView::publish_statistics() noexcept {
  const std::array<std::uint64_t, row::kStatisticsNames.size()> shown{counters_.messages_delivered,
                                                                      counters_.bytes_delivered,
                                                                      counters_.nulls,
                                                                      counters_.receive_batches,
                                                                      counters_.send_batches,
                                                                      counters_.deliver_batches,
                                                                      counters_.no_room,
                                                                      without_room_ns(),
                                                                      timed_.last_ns,
                                                                      timed_.count};
  const std::size_t offset = row::statistics_offset(options_.senders.size(), options_.mode);
  for (std::size_t i = 0; i < shown.size(); ++i) publish_word(offset + i * kWordBytes, shown[i]);
  if (until_statistics_ != 0) return;
  until_statistics_ = kPollsPerPublication;
  timed_.due = timed_.since_ns == 0;
}

}  // namespace dunlin::multicast
