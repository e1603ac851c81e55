#include "multicast/open_views.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::multicast {

bool OpenView::delivered_before(const Delivery& delivery) {
  if (!had.empty() && delivery.slot < had[delivery.sender].slots) return true;
  return !before.nothing() && before.has_next_of(subgroup.members[delivery.sender]);
}

void OpenView::add_beyond(std::span<const std::uint64_t> ahead) {
  for (std::size_t sender_rank = 0; sender_rank < ahead.size(); ++sender_rank)
    beyond.add(rank_of_sender(sender_rank), ahead[sender_rank]);
}

void OpenView::add_state_beyond(std::span<const std::uint64_t> trim) {
  if (had.empty()) return;
  for (std::size_t sender_rank = 0; sender_rank < trim.size(); ++sender_rank) {
    const std::uint64_t from = std::max(view->passed(sender_rank).slots, trim[sender_rank]);
    const Known& known = had[subgroup.senders[sender_rank]];
    beyond.add(rank_of_sender(sender_rank), known.messages_from(from));
  }
}

OpenView& OpenViews::open(OpenView view) {
  if (views_.empty()) view.before.add(std::exchange(of_dropped_, {}), view.subgroup.members);
  return views_.emplace_back(std::move(view));
}

/// A message that comes again comes in the next view, or in a later one.
void OpenViews::drop_oldest() {
  OpenView& oldest = views_.front();
  dropped_ += oldest.view->counters();
  of_dropped_ = std::move(oldest.before);
  of_dropped_.add(oldest.beyond, oldest.subgroup.members);
  views_.pop_front();
  if (views_.empty()) return;
  OpenView& next = views_.front();
  next.before.add(std::exchange(of_dropped_, {}), next.subgroup.members);
}

void OpenViews::drop_all() {
  while (!views_.empty()) drop_oldest();
}

Counters OpenViews::counters() const noexcept {
  Counters all = dropped_;
  for (const OpenView& open : views_) all += open.view->counters();
  return all;
}

void OpenViews::each_table(const std::function<void(const TableCore&)>& look) const {
  for (const OpenView& open : views_) look(open.view->table());
}

}  // namespace dunlin::multicast
