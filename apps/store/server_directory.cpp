#include "store/server_directory.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace dunlin::app::resp {

ServerDirectory::ServerDirectory(remote::Progress& progress, ServedAt self)
    : self_(std::move(self)), order_(progress.open_order({.name = "store-servers"}, list_)) {}

std::size_t ServerDirectory::poll() {
  const std::size_t done = order_->poll();
  if (has_told_ == serves_ || !order_->ready()) return done;
  const std::string line =
      serves_ ? ServerList::proposal_of(self_) : ServerList::proposal_to_end(self_.rank);
  if (!order_->propose(std::as_bytes(std::span(line)))) return done;
  has_told_ = serves_;
  return done + 1;
}

std::vector<ServedAt> ServerDirectory::servers() const {
  std::vector<ServedAt> all = list_.servers();
  const auto at = std::ranges::lower_bound(all, self_.rank, {}, &ServedAt::rank);
  if (at == all.end() || at->rank != self_.rank) all.insert(at, self_);
  return all;
}

}  // namespace dunlin::app::resp
