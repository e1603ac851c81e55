#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/names.hpp"
#include "group/changing_subgroups.hpp"

/// The user's requests for subgroups that come and go at run time.
namespace dunlin::group {

/// The membership that this member has, asks for, or leaves; not one that waits for that to end.
Membership* ChangingSubgroups::find(const std::string& name) noexcept {
  for (const auto& membership : memberships_)
    if (membership->name == name && !membership->parted && !membership->waits)
      return membership.get();
  return nullptr;
}

void ChangingSubgroups::join(const std::string& name, SubgroupParticipant& participant,
                             SubgroupJoin join) {
  const auto refuse = [&](const std::string& why) {
    throw Error("subgroup '" + name + "': " + why);
  };
  check_subgroup_name(name);
  for (const std::string& founder : join.founders) check_member_name(founder);
  if (join.options.size() > kMaxSubgroupTextBytes || join.label.size() > kMaxSubgroupTextBytes)
    refuse("its options and its label may have at most " + std::to_string(kMaxSubgroupTextBytes) +
           " bytes each (kMaxSubgroupTextBytes)");
  std::size_t others = declared_;
  for (const auto& membership : memberships_) {
    if (membership->parted) continue;
    ++others;
    if (membership->name == name && membership->wants_in)
      refuse("this member is in it, or has asked to be; leave it first");
  }
  if (others >= kMaxSubgroups)
    refuse("it would be one too many: at most " + std::to_string(kMaxSubgroups) +
           " (kMaxSubgroups) are allowed");
  Membership* const earlier = find(name);
  memberships_.push_back(std::make_unique<Membership>(Membership{.name = name,
                                                                 .participant = &participant,
                                                                 .join = std::move(join),
                                                                 .attempt = ++attempts_,
                                                                 .waits = earlier != nullptr}));
  if (earlier == nullptr) send_to_leader_of(*memberships_.back());
}

void ChangingSubgroups::change(const std::string& name, bool sends) {
  for (const auto& membership : memberships_) {
    if (membership->name != name || membership->parted || !membership->wants_in) continue;
    if (std::exchange(membership->join.sends, sends) != sends && !membership->waits)
      send_to_leader_of(*membership);
    return;
  }
  throw Error("subgroup '" + name + "': this member is not in it, and has not asked to be");
}

void ChangingSubgroups::leave(const std::string& name) {
  for (const auto& membership : memberships_) {
    if (membership->name != name || membership->parted || !membership->wants_in) continue;
    membership->wants_in = false;
    if (membership->waits) return part(*membership, "");
    membership->hands_over = any_hands_over_ = true;
    static_cast<void>(tell_of_leavers());
    return;
  }
}

/// Tells the leader which subgroups this member leaves, once the others have what it sent (GRP-D2).
std::size_t ChangingSubgroups::tell_of_leavers() {
  if (!std::exchange(any_hands_over_, false)) [[likely]]
    return 0;
  std::size_t told = 0;
  for (const auto& membership : memberships_) {
    if (!membership->hands_over) continue;
    if (!membership->participant->hand_over(membership->join.sends)) {
      any_hands_over_ = true;
      continue;
    }
    membership->hands_over = false;
    send_to_leader_of(*membership);
    ++told;
  }
  return told;
}

void ChangingSubgroups::detach(const SubgroupParticipant& participant) noexcept {
  for (const auto& each : memberships_) {
    Membership& membership = *each;
    if (membership.participant != &participant) continue;
    membership.wedge();
    membership.participant = nullptr;
    const bool is_news = membership.go_at_once();
    if (membership.waits)
      membership.parted = true;
    else if (is_news)
      send_to_leader_of(membership);
    return;
  }
}

void ChangingSubgroups::remove(const std::string& name) {
  check_subgroup_name(name);
  if (std::ranges::find(removals_, name) != removals_.end()) return;
  removals_.push_back(name);
  if (!works_) return;
  if (!reported_) return report();
  send_leader({.kind = Kind::request, .reports = {{.name = name, .removes = true}}});
}

std::vector<SubgroupInfo> ChangingSubgroups::infos() const {
  std::vector<SubgroupInfo> all;
  all.reserve(infos_.size());
  for (const auto& [name, info] : infos_) all.push_back(info);
  return all;
}

}  // namespace dunlin::group
