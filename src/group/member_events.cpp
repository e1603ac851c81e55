#include "group/member_events.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::group {

using Kind = MemberEvent::Kind;

MemberEvents::MemberEvents(Fabric& fabric)
    : fabric_(fabric),
      subscription_(fabric.subscribe([this](const Event& event) { handle(event); })) {}

void MemberEvents::handle(const Event& event) {
  if (event.kind == Event::Kind::peer_killed && gone_.contains(event.peer)) {
    events_.push_back({.kind = Kind::killed,
                       .member = gone_[event.peer],
                       .view = view_,
                       .why = std::string(event.text),
                       .after_ns = event.after_ns});
  }
  if (event.kind != Event::Kind::peer_failed || !members_.contains(event.peer)) return;
  suspected_ns_.try_emplace(event.peer, fabric_.now_ns());
  events_.push_back({.kind = Kind::suspected,
                     .member = members_[event.peer],
                     .view = view_,
                     .why = std::string(event.text),
                     .after_ns = event.after_ns});
}

std::string MemberEvents::why_removed(Rank rank) const {
  return fabric_.failed(rank) ? fabric_.failure_text(rank)
                              : "another member cannot reach it, although this one can";
}

void MemberEvents::enter(const View& next, const std::vector<Rank>& ranks) {
  const bool first = std::exchange(view_, next.number) == 0;
  std::map<Rank, std::string> members;
  for (std::size_t i = 0; i < ranks.size(); ++i) members[ranks[i]] = next.members[i];
  for (const auto& [rank, name] : members_) {
    if (members.contains(rank)) continue;
    gone_[rank] = name;
    const bool asked = std::ranges::find(next.left, name) != next.left.end();
    const auto suspected = suspected_ns_.find(rank);
    const bool here = suspected != suspected_ns_.end();
    events_.push_back({.kind = asked ? Kind::left : Kind::removed,
                       .member = name,
                       .view = view_,
                       .why = asked ? std::string() : why_removed(rank),
                       .after_ns = here ? fabric_.now_ns() - suspected->second : 0});
  }
  for (const auto& [rank, name] : members)
    if (first ? rank == fabric_.rank() : !members_.contains(rank))
      events_.push_back({.kind = Kind::joined, .member = name, .view = view_});
  members_ = std::move(members);
  own_name_ = next.members[next.me];
}

void MemberEvents::end(const std::string& why) {
  members_.clear();
  events_.push_back({.kind = Kind::ended, .member = own_name_, .view = view_, .why = why});
}

/// The handler may replace itself.
void MemberEvents::tell_all() {
  while (!events_.empty()) {
    const MemberEvent event = std::move(events_.front());
    events_.pop_front();
    if (const auto handler = handler_) (*handler)(event);
  }
}

}  // namespace dunlin::group
