#include <algorithm>
#include <ostream>

#include <dunlin/group.hpp>

#include "group/agreement.hpp"
#include "group/subgroups.hpp"

namespace dunlin {
namespace {

[[nodiscard]] std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const View& view) {
  out << "view " << view.number << ": " << join(view.members);
  if (!view.departed.empty()) out << "; without " << join(view.departed);
  return out;
}

struct Group::State {
  using Places = std::vector<group::Subgroups::Place>;

  Fabric& fabric;
  group::Subgroups subgroups;
  std::vector<SubgroupPart*> parts;  // by subgroup; null: nobody does its work here
  View view;
  std::vector<Rank> ranks;  // of the view's members, in the fabric
  Places places;
  std::unique_ptr<group::Agreement> agreement;
  std::vector<std::unique_ptr<group::Agreement>> past;  // until all know what we know of them
  std::shared_ptr<const ViewHandler> handler;
  bool announced = false;  // the view, to the handler
  bool wedged = false;
  bool leaving = false;
  bool stopped = false;  // in no view any more
  bool wrong = false;    // ... and not because we wanted so
  std::string why;

  State(Fabric& f, GroupOptions options) : fabric(f), subgroups(std::move(options.subgroups)) {
    if (fabric.size() > kMaxViewMembers)
      throw Error("group '" + fabric.group() + "': " + std::to_string(fabric.size()) +
                  " members; at most " + std::to_string(kMaxViewMembers) +
                  " (kMaxViewMembers) can be in one view");
    parts.resize(subgroups.specs().size());
    view.me = fabric.rank();
    for (Rank rank = 0; rank < fabric.size(); ++rank) {
      const std::string& name = fabric.member_name(rank);
      view.members.push_back(name.empty() ? std::to_string(rank) : name);
      ranks.push_back(rank);
    }
    enter();
  }

  [[nodiscard]] group::Standing standing() const noexcept { return agreement->change().standing(); }

  /// The view whose members are in `view` and `ranks`.
  void enter() {
    ++view.number;
    places = subgroups.in_view(view, ranks);
    agreement = std::make_unique<group::Agreement>(
        fabric, group::Agreement::Options{.view = view.number,
                                          .members = ranks,
                                          .counts = group::Subgroups::counts(places),
                                          .text = subgroups.fingerprint()});
    announced = false;
    wedged = false;
  }

  template <class Do>
  void each_part(Do action) {
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i].ours && parts[i] != nullptr) action(*parts[i], places[i]);
  }

  /// By sender, over all subgroups.
  [[nodiscard]] std::vector<std::uint64_t> received() {
    std::vector<std::uint64_t> counts(group::Subgroups::counts(places), group::kNoOpinion);
    each_part([&](SubgroupPart& part, const group::Subgroups::Place& place) {
      const std::span<const std::uint64_t> theirs = part.received();
      std::copy(theirs.begin(), theirs.end(),
                counts.begin() + static_cast<std::ptrdiff_t>(place.first_count));
    });
    return counts;
  }

  void announce() {
    announced = true;
    if (const std::shared_ptr<const ViewHandler> kept = handler) (*kept)(view);
    each_part([&](SubgroupPart& part, const group::Subgroups::Place& place) {
      part.begin(fabric, place.subgroup);
    });
  }

  void step() {
    const std::vector<std::uint64_t> counts = received();
    agreement->step({.failed = {}, .wants_to_leave = leaving, .received = counts});
    if (standing() == group::Standing::working) return;
    if (!wedged) each_part([](SubgroupPart& part, const auto&) { part.wedge(); });
    wedged = true;
    switch (standing()) {
      case group::Standing::decided:
        finish();
        return go_on();
      case group::Standing::excluded:
        if (has_all(counts)) finish();
        return stop("view " + std::to_string(view.number + 1) +
                        " goes on without this member: the others could not reach it, or "
                        "thought so; start it anew",
                    true);
      case group::Standing::minority:
        return stop(too_few(), true);
      default:
        return;
    }
  }

  [[nodiscard]] std::string too_few() const {
    const std::string refusal = agreement->refusal();
    return "too few members of view " + std::to_string(view.number) + " are left to go on (of " +
           std::to_string(view.members.size()) +
           ", more than half must be reached); what is left stops, so that there are never two "
           "groups" +
           (refusal.empty() ? "" : "; members must declare the same subgroups: " + refusal);
  }

  /// Whoever was heard before the view ended has what counts of it; others may not.
  [[nodiscard]] bool has_all(const std::vector<std::uint64_t>& counts) const noexcept {
    const std::vector<std::uint64_t>& trim = agreement->change().decision().trim;
    return std::equal(trim.begin(), trim.end(), counts.begin(), counts.end(),
                      [](std::uint64_t least, std::uint64_t here) { return least <= here; });
  }

  void finish() {
    const std::vector<std::uint64_t>& trim = agreement->change().decision().trim;
    each_part([&](SubgroupPart& part, const group::Subgroups::Place& place) {
      part.finish(std::span(trim).subspan(place.first_count, place.subgroup.senders.size()));
    });
  }

  void go_on() {
    const group::MemberSet survivors = agreement->change().decision().survivors;
    View next{.number = view.number, .members = {}, .me = 0, .departed = {}};
    std::vector<Rank> next_ranks;
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      if (!survivors.has(rank)) {
        next.departed.push_back(view.members[rank]);
        continue;
      }
      if (rank == view.me) next.me = static_cast<std::uint32_t>(next_ranks.size());
      next.members.push_back(view.members[rank]);
      next_ranks.push_back(ranks[rank]);
    }
    const std::vector<Rank> before = std::exchange(ranks, std::move(next_ranks));
    view = std::move(next);
    past.push_back(std::move(agreement));
    expel_all_of(before, "view " + std::to_string(view.number + 1) + " goes on without it");
    enter();
  }

  void stop(const std::string& how, bool is_wrong) {
    stopped = true;
    wrong = is_wrong && !leaving;
    why = "group '" + fabric.group() + "', member '" + view.members[view.me] +
          "': " + (leaving ? "it has left the group" : how);
    // Who has a decision to tell tells it before it goes.
    if (standing() != group::Standing::minority) past.push_back(std::move(agreement));
    agreement.reset();
  }

  void part_from_all() { expel_all_of(std::exchange(ranks, {}), "we are in no view any more"); }

  /// Of those, who is not in the view at hand: it must reach none of the memory that comes now, and
  /// must not be waited for.
  void expel_all_of(const std::vector<Rank>& before, const std::string& reason) {
    for (const Rank rank : before)
      if (rank != fabric.rank() && std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
        fabric.expel(rank, reason);
  }

  std::size_t poll() {
    std::size_t done = 0;
    for (const auto& old : past) done += old->poll();
    std::erase_if(
        past, [this](const auto& old) { return stopped ? old->known_to_all() : old->settled(); });
    if (stopped) {
      if (past.empty() && !ranks.empty()) part_from_all();
      return done + fabric.poll();
    }
    if (!announced) announce();
    done += agreement->poll();
    if (agreement->due()) step();
    if (stopped || wedged || !announced) return done + 1;
    each_part([&](SubgroupPart& part, const auto&) { done += part.poll(); });
    return done;
  }
};

Group::Group(Fabric& fabric, GroupOptions options)
    : state_(std::make_unique<State>(fabric, std::move(options))) {}
Group::~Group() = default;

Fabric& Group::fabric() const noexcept { return state_->fabric; }
const View& Group::view() const noexcept { return state_->view; }

void Group::on_view(ViewHandler handler) {
  state_->handler = std::make_shared<const ViewHandler>(std::move(handler));
}

void Group::attach(const std::string& subgroup, SubgroupPart& part) {
  const std::vector<SubgroupSpec>& specs = state_->subgroups.specs();
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const SubgroupSpec& spec) { return spec.name == subgroup; });
  const std::string who = "group '" + state_->fabric.group() + "': subgroup '" + subgroup + "' ";
  if (found == specs.end())
    throw Error(who + "was not declared; add it to GroupOptions::subgroups of all members");
  SubgroupPart*& place = state_->parts[static_cast<std::size_t>(found - specs.begin())];
  if (place != nullptr) throw Error(who + "has a part already, and can have one only");
  if (state_->announced)
    throw Error(who + "cannot be joined now: attach before the first poll() of the group");
  place = &part;
}

void Group::leave() {
  state_->leaving = true;
  if (state_->agreement) state_->agreement->ask_to_step();
}

bool Group::ended() const noexcept { return state_->stopped && state_->ranks.empty(); }
const std::string& Group::why_ended() const noexcept { return state_->why; }

std::size_t Group::poll() { return state_->poll(); }

void Group::check() const {
  if (state_->wrong) throw Error(state_->why);
}

}  // namespace dunlin
