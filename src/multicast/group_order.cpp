#include "multicast/group_order.hpp"

#include <algorithm>

#include <dunlin/error.hpp>

namespace dunlin::multicast {
namespace {

/// Room for some sixteen of the largest proposals. Each member has so much for each sender.
constexpr std::size_t kOrderRingBytes = 4096;
static_assert(16 * kMaxProposalBytes <= kOrderRingBytes && kMinRingBytes <= kOrderRingBytes);

}  // namespace

GroupOrder::GroupOrder(Group& group, const remote::OrderOptions& options,
                       remote::AgreedState& state)
    : who_("order '" + options.name + "': "),
      state_(state),
      multicast_(
          Multicast::join(group, options.name,
                          // Who needs its proposals to be handled waits for that before it ends.
                          {.mode = Mode::ordered, .ring_bytes = kOrderRingBytes, .hand_over_ms = 0},
                          {.label = "order"})) {
  multicast_->on_state([this] { return state_.save(); },
                       [this](std::span<const std::byte> bytes) { load(bytes); });
  multicast_->on_delivery([this](std::span<const Delivery> batch) {
    for (const Delivery& delivery : batch) state_.decided(delivery.message);
  });
  multicast_->on_members([this](const Subgroup& subgroup) { members_are(subgroup); });
}

bool GroupOrder::propose(std::span<const std::byte> proposal) {
  if (proposal.size() > kMaxProposalBytes)
    throw Error(who_ + "a proposal has " + std::to_string(proposal.size()) +
                " bytes, and can have " + std::to_string(kMaxProposalBytes) +
                " (kMaxProposalBytes)");
  return multicast_->send(proposal) == SendResult::sent;
}

/// What this throws makes the member leave the order, and reaches the caller of the group's poll().
void GroupOrder::load(std::span<const std::byte> state) {
  if (state_.load(state)) return;
  throw Error(who_ + "cannot load the state sent by another member (" +
              std::to_string(state.size()) + " bytes)");
}

/// A member that lacks the state is told of the members by the state that it gets (REM-22).
void GroupOrder::members_are(const Subgroup& subgroup) {
  if (subgroup.lacks_state) return;
  members_ = subgroup.members;
  std::ranges::sort(members_);
  state_.members_are(members_);
}

}  // namespace dunlin::multicast

namespace dunlin {

/// Here, because `group` knows no multicasts.
std::unique_ptr<remote::AgreedOrder> GroupMembers::open_order(remote::Progress& /*progress*/,
                                                              const remote::OrderOptions& options,
                                                              remote::AgreedState& state) {
  return std::make_unique<multicast::GroupOrder>(group_, options, state);
}

}  // namespace dunlin
