#include "multicast/open_views.hpp"

#include <algorithm>

namespace dunlin::multicast {

void OpenViews::drop_oldest() {
  dropped_ += views_.front().view->counters();
  views_.pop_front();
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
