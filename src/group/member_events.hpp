#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/group.hpp>

namespace dunlin::group {

/// What this member sees happen to the members, until its user is told. A MemberEvent has the
/// words. One thread at a time, that of the group.
class MemberEvents {
 public:
  explicit MemberEvents(Fabric& fabric);

  void on_event(Group::MemberHandler handler) {
    handler_ = handler ? std::make_shared<const Group::MemberHandler>(std::move(handler)) : nullptr;
  }
  /// Enters a view whose members have these ranks. To be called before members that are not in the
  /// view are expelled, which makes them fail.
  void enter(const View& next, const std::vector<Rank>& ranks);
  void end(const std::string& why);
  /// Tells the user what has happened since the last call. Throws what the handler throws.
  void tell() {
    if (!events_.empty()) [[unlikely]]
      tell_all();
  }

 private:
  void handle(const Event& event);
  void tell_all();
  [[nodiscard]] std::string why_removed(Rank rank) const;

  Fabric& fabric_;
  Subscription subscription_;
  std::shared_ptr<const Group::MemberHandler> handler_;
  std::uint64_t view_ = 0;
  std::string own_name_;
  std::map<Rank, std::string> members_;         // members of the present view
  std::map<Rank, std::string> gone_;            // members of earlier views, which may be killed
  std::map<Rank, std::uint64_t> suspected_ns_;  // when each was first suspected
  std::deque<MemberEvent> events_;
};

}  // namespace dunlin::group
