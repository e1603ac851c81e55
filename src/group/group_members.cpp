#include <algorithm>

#include <dunlin/error.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/limits.hpp>

namespace dunlin {

GroupMembers::GroupMembers(Group& group, std::uint32_t most)
    : group_(group), present_(std::max(group.founders(), most)) {
  const std::string who = "members of group '" + group.name() + "': ";
  const Rank rank = group.fabric().rank();
  if (most > kMaxMembers || (most != 0 && most < group.founders()))
    throw Error(who + "most is " + std::to_string(most) + ", and must be " +
                std::to_string(group.founders()) + " (the founders) to " +
                std::to_string(kMaxMembers) + " (kMaxMembers)");
  if (rank >= capacity())
    throw Error(who + "with this process " + std::to_string(rank + 1) +
                " members have come so far, and at most " + std::to_string(capacity()) +
                " are expected; let all members of the group give a greater number (`most`)");
  if (group.view().number == 1 &&
      std::ranges::any_of(group.view().ranks, [&](Rank first) { return first >= capacity(); }))
    throw Error(who +
                "it is a further group whose members are not the first ranks of the fabric, which "
                "these layers count; list those first in FurtherGroup::members, or use the "
                "fabric's own group");
  look();
}

std::uint32_t GroupMembers::capacity() const noexcept {
  return static_cast<std::uint32_t>(present_.size());
}

bool GroupMembers::contains(Rank rank) const noexcept {
  return rank < present_.size() && present_[rank];
}

std::size_t GroupMembers::poll() {
  const std::size_t done = group_.poll();
  look();
  return done;
}

void GroupMembers::look() {
  if (!why_stopped_.empty()) return;
  if (!group_.why_ended().empty()) {
    why_stopped_ = group_.why_ended();
    return;
  }
  const View& view = group_.view();
  if (view.number == generation_) return;
  generation_ = view.number;
  present_.assign(present_.size(), false);
  for (const Rank rank : view.ranks)
    if (rank < present_.size()) present_[rank] = true;
}

}  // namespace dunlin
