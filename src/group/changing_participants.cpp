#include <algorithm>
#include <optional>
#include <utility>

#include "group/changing_subgroups.hpp"

/// ChangingSubgroups: the participants' work, and the state that a joiner needs.
namespace dunlin::group {

std::size_t ChangingSubgroups::poll() {
  if (!works_) return 0;
  std::size_t done = handle_held() + ask_for_states() + answer() + tell_of_leavers();
  done += poll_participants();
  done += tell_of_leavers();  // this poll may have brought the last that they waited for
  done += local_.size();      // an upcall asked for something
  forget_parted();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return done;
}

/// Goes by index, because an upcall may ask for more subgroups.
std::size_t ChangingSubgroups::poll_participants() {
  return turns_.poll([&] { return memberships_.size(); },
                     [&](std::size_t i) {
                       const Membership& membership = *memberships_[i];
                       return membership.works() && membership.participant->rests();
                     },
                     [&](std::size_t i) {
                       Membership& membership = *memberships_[i];
                       std::size_t done = membership.works() ? 1 : 0;  // if it throws
                       if (membership.works()) keep([&] { done = membership.participant->poll(); });
                       return done;
                     });
}

bool ChangingSubgroups::hand_over() {
  bool all = true;
  for (const auto& membership : memberships_)
    if (membership->participant != nullptr && !membership->parted)
      all &= membership->participant->hand_over(membership->join.sends);
  return all;
}

// --- state ---------------------------------------------------------------------------------------

/// GRP-D7: asks one member after the other for a state, anew in each generation.
std::size_t ChangingSubgroups::ask_for_states() {
  std::size_t done = 0;
  for (std::size_t i = 0; i < memberships_.size(); ++i) {
    Membership& membership = *memberships_[i];
    if (!membership.works() || !membership.lacks_state) [[likely]]
      continue;
    if (membership.asked && fabric_.failed(membership.whom[membership.asks])) {
      ++membership.asks;
      membership.asked = false;
    }
    // The members with the state have failed or gone, and told the leader so: another change comes.
    if (membership.asked ||
        (membership.asks == membership.whom.size() && membership.refusal.empty()))
      continue;
    ++done;
    if (membership.asks < membership.whom.size()) {
      membership.asked = true;
      const std::optional<Rank> place = place_of(membership.whom[membership.asks]);
      if (place)
        send(MemberSet::only(*place),
             {.kind = Kind::want, .name = membership.name, .generation = membership.generation});
      continue;
    }
    give_up(membership, "no member could give the state of subgroup '" + membership.name +
                            "': " + membership.refusal);
  }
  return done;
}

std::size_t ChangingSubgroups::answer() {
  std::size_t done = 0;
  for (std::size_t left = requests_.size(); left > 0; --left) {
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    const Membership* const membership = find(request.message.name);
    const std::uint64_t wanted = request.message.generation;
    const bool will_have_it = membership != nullptr && membership->generation < wanted;
    // A joiner asks anew in the next generation if its own has ended, or will end (`wedged`).
    if (membership != nullptr && membership->generation > wanted) continue;
    if (will_have_it) {
      requests_.push_back(request);
      continue;
    }
    if (membership == nullptr || membership->participant == nullptr || membership->lacks_state) {
      send_state(request.place, request.message, std::nullopt);
      ++done;
      continue;
    }
    if (membership->wedged) continue;
    std::optional<std::vector<std::byte>> state;
    std::string why;
    try {
      state = membership->participant->give_state();
      if (!state) {
        requests_.push_back(request);
        continue;
      }
    } catch (const std::exception& error) {
      why = std::string("it cannot be saved: ") + error.what();
      keep([] { throw; });
    } catch (...) {
      why = "it cannot be saved";
      keep([] { throw; });
    }
    send_state(request.place, request.message, std::move(state), why);
    ++done;
  }
  return done;
}

/// Without a state, the joiner asks another member.
void ChangingSubgroups::send_state(Rank place, const SubgroupMessage& request,
                                   std::optional<std::vector<std::byte>> state,
                                   const std::string& why) {
  send(MemberSet::only(place), {.kind = Kind::state,
                                .name = request.name,
                                .generation = request.generation,
                                .good = state.has_value(),
                                .text = why,
                                .bytes = state ? std::move(*state) : std::vector<std::byte>()});
}

void ChangingSubgroups::take_state(Rank place, const SubgroupMessage& message) {
  Membership* const membership = find(message.name);
  if (membership == nullptr || !membership->works() || !membership->lacks_state) return;
  if (membership->generation != message.generation || !membership->asked) return;
  if (ranks_[place] != membership->whom[membership->asks]) return;
  if (!message.good) {
    ++membership->asks;
    membership->asked = false;
    if (!message.text.empty()) membership->refusal = message.text;
    return;
  }
  membership->lacks_state = false;
  keep([&] { membership->participant->take_state(message.bytes); });
}

}  // namespace dunlin::group
