#include <algorithm>
#include <ostream>

#include <dunlin/group.hpp>
#include <dunlin/group/subgroup_participant.hpp>

#include "fabric/names.hpp"
#include "fabric/sleeping.hpp"
#include "fabric/thread_guard.hpp"
#include "group/group_joiner.hpp"
#include "group/scope.hpp"
#include "group/views.hpp"

namespace dunlin {
namespace {

[[nodiscard]] std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const View& view) {
  out << "view " << view.number << ": " << join_names(view.members);
  if (!view.departed.empty()) out << "; without " << join_names(view.departed);
  if (!view.joined.empty()) out << "; with " << join_names(view.joined);
  return out;
}

Group::Group(Fabric& fabric, GroupOptions options)
    : Group(std::make_unique<State>(fabric, std::move(options))) {}
Group::Group(Fabric& fabric) : Group(fabric, GroupOptions()) {}
Group::Group(std::unique_ptr<State> state) : state_(std::move(state)) {}
Group::~Group() = default;

Fabric& Group::fabric() const noexcept { return state_->fabric; }
const std::string& Group::name() const noexcept { return state_->name; }
const View& Group::view() const noexcept { return state_->view; }
std::uint32_t Group::founders() const noexcept { return state_->founders; }

void Group::on_view(ViewHandler handler) {
  DUNLIN_ONE_THREAD(&state_->fabric);
  state_->handler = handler ? std::make_shared<const ViewHandler>(std::move(handler)) : nullptr;
}

void Group::on_member(MemberHandler handler) { state_->member_events.on_event(std::move(handler)); }

void Group::attach(const std::string& subgroup, SubgroupParticipant& participant) {
  DUNLIN_ONE_THREAD(&state_->fabric);
  const std::vector<SubgroupSpec>& specs = state_->subgroups.specs();
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const SubgroupSpec& spec) { return spec.name == subgroup; });
  const std::string who = "group '" + state_->name + "': subgroup '" + subgroup + "' ";
  if (found == specs.end())
    throw Error(who + "was not declared; add it to GroupOptions::subgroups of all members");
  SubgroupParticipant*& place =
      state_->participants[static_cast<std::size_t>(found - specs.begin())];
  if (place != nullptr) throw Error(who + "has a participant already, and can have one only");
  if (state_->announced())
    throw Error(who + "cannot be joined now: attach before the first poll() of the group");
  place = &participant;
}

void Group::leave() {
  DUNLIN_ONE_THREAD(&state_->fabric);
  state_->leave();
}

// --- subgroups that come and go ------------------------------------------------------------------

void Group::join_subgroup(const std::string& subgroup, SubgroupParticipant& participant,
                          SubgroupJoin join) {
  DUNLIN_ONE_THREAD(&state_->fabric);
  for (const SubgroupSpec& spec : state_->subgroups.specs())
    if (spec.name == subgroup)
      throw Error("group '" + state_->name + "': subgroup '" + subgroup +
                  "' was declared, and does not come and go at run time; give another name");
  if (state_->stopped()) throw Error(state_->why);
  state_->change_subgroups().join(subgroup, participant, std::move(join));
}
void Group::change_subgroup(const std::string& subgroup, bool sends) {
  DUNLIN_ONE_THREAD(&state_->fabric);
  state_->change_subgroups().change(subgroup, sends);
}
void Group::leave_subgroup(const std::string& subgroup) {
  DUNLIN_ONE_THREAD(&state_->fabric);
  state_->change_subgroups().leave(subgroup);
}
void Group::detach_subgroup(SubgroupParticipant& participant) noexcept {
  DUNLIN_ONE_THREAD(&state_->fabric);
  state_->change_subgroups().detach(participant);
}
void Group::remove_subgroup(const std::string& subgroup) {
  DUNLIN_ONE_THREAD(&state_->fabric);
  state_->change_subgroups().remove(subgroup);
}
std::vector<SubgroupInfo> Group::subgroups() const { return state_->changing->infos(); }
std::uint64_t Group::subgroup_changes() const noexcept { return state_->changing->changes(); }
void Group::on_subgroup(SubgroupHandler handler) {
  DUNLIN_ONE_THREAD(&state_->fabric);
  state_->changing->on_change(std::move(handler));
}

bool Group::ended() const noexcept { return state_->stopped() && state_->ranks.empty(); }
const std::string& Group::why_ended() const noexcept { return state_->why; }
std::string Group::why_closed() const { return state_->why_closed(); }

std::size_t Group::poll() {
  DUNLIN_ONE_THREAD(&state_->fabric);
  return state_->poll();
}
Waits Group::waits() const { return state_->waits(); }
std::string Group::describe() const { return state_->describe(); }

void Group::check() const {
  if (state_->wrong) throw Error(state_->why);
}

// --- coming in -----------------------------------------------------------------------------------

struct GroupEntry::State {
  GroupOptions options;
  group::GroupJoiner joining;
};

namespace {

constexpr std::uint64_t kJoinLookNs = 2'000'000;  // the longest sleep between two polls

GroupOptions checked(const std::string& name, GroupOptions options) {
  if (!options.rendezvous)
    throw Error("member '" + name +
                "' cannot join a group without GroupOptions::rendezvous: give that of the "
                "group, such as make_rendezvous()");
  static_cast<void>(group::scope_of(options));  // throws: no process joins a further group
  check_member_name(name);
  return options;
}

}  // namespace

GroupEntry::GroupEntry(const std::string& name, GroupOptions given, std::uint32_t timeout_ms) {
  GroupOptions options = checked(name, std::move(given));
  group::GroupJoiner joining(options.rendezvous, name,
                             group::Subgroups(options.subgroups).fingerprint(true), timeout_ms);
  state_ = std::make_unique<State>(State{std::move(options), std::move(joining)});
}
GroupEntry::~GroupEntry() = default;

std::unique_ptr<Group> GroupEntry::poll() {
  std::optional<group::GroupJoiner::Arrival> arrival = state_->joining.poll();
  if (!arrival) return nullptr;
  return std::unique_ptr<Group>(
      new Group(std::make_unique<Group::State>(std::move(*arrival), state_->options)));
}

std::unique_ptr<Group> Group::join(const std::string& name, GroupOptions options,
                                   std::uint32_t timeout_ms) {
  GroupEntry entry(name, std::move(options), timeout_ms);
  std::unique_ptr<Group> group;
  const auto poll = [&] { return (group = entry.poll()) != nullptr; };
  while (!poll() && !sleep_unless(
                        poll, [&] { return entry.waits(); }, kJoinLookNs)) {
  }
  return group;
}

Waits GroupEntry::waits() const {
  Waits waits;
  state_->joining.collect(waits);
  return waits;
}

void Group::each_table(const std::function<void(const TableCore&)>& look) const {
  state_->each_table(look);
}

}  // namespace dunlin
