#include <dunlin/group_members.hpp>

namespace dunlin {
namespace {

/// A member without a name goes by its rank, as in views.
std::string name_of(const Fabric& fabric, Rank rank) {
  const std::string& name = fabric.member_name(rank);
  return name.empty() ? std::to_string(rank) : name;
}

}  // namespace

GroupMembers::GroupMembers(Group& group)
    : group_(group), fabric_(group.fabric()), present_(fabric_.size(), true) {
  look();
}

std::uint64_t GroupMembers::generation() const noexcept { return generation_; }

bool GroupMembers::contains(Rank rank) const noexcept {
  return rank < present_.size() && present_[rank];
}

const std::string& GroupMembers::why_stopped() const noexcept { return why_stopped_; }

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
  if (fabric_.size() != present_.size()) {
    why_stopped_ = "group '" + group_.name() +
                   "' has taken in a joiner; segments stay with the members that made them";
    return;
  }
  const View& view = group_.view();
  if (view.number == generation_) return;
  generation_ = view.number;
  present_.assign(fabric_.size(), false);
  for (const std::string& member : view.members)
    for (Rank rank = 0; rank < fabric_.size(); ++rank)
      if (name_of(fabric_, rank) == member) present_[rank] = true;
}

}  // namespace dunlin
