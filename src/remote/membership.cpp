#include <dunlin/error.hpp>
#include <dunlin/remote/membership.hpp>

#include "assert.hpp"
#include "remote/fixed_order.hpp"

namespace dunlin::remote {
namespace {

std::string name_of(const Fabric& fabric, Rank rank) {
  const std::string& name = fabric.member_name(rank);
  return name.empty() ? std::to_string(rank) : "'" + name + "'";
}

std::string sentence(const Fabric& fabric, Rank dead, std::string_view how) {
  DUNLIN_ASSERT_ALWAYS(fabric.failed(dead), "REM-2: a process stops for a member that has failed");
  return "member " + name_of(fabric, dead) + " has failed (" + std::string(how) +
         "), and a fixed list of members cannot go on without one of them: start them all anew, or "
         "give the views of a Group";
}

}  // namespace

std::unique_ptr<AgreedOrder> Membership::open_order(Progress& /*progress*/,
                                                    const OrderOptions& options,
                                                    AgreedState& /*state*/) {
  throw Error("order '" + options.name +
              "': these members have no order; give the views of a Group, or a fixed list of "
              "members");
}

FixedMembers::FixedMembers(Fabric& fabric) : members_(fabric.size()) {
  for (Rank rank = 0; rank < members_; ++rank)
    if (fabric.failed(rank)) why_stopped_ = sentence(fabric, rank, fabric.failure_text(rank));
  subscription_ = fabric.subscribe([this, &fabric](const Event& event) {
    const bool is_ours = event.peer < members_;  // not one that came later
    if (event.kind == Event::Kind::peer_failed && is_ours && why_stopped_.empty())
      why_stopped_ = sentence(fabric, event.peer, event.text);
  });
}

std::unique_ptr<AgreedOrder> FixedMembers::open_order(Progress& progress,
                                                      const OrderOptions& options,
                                                      AgreedState& state) {
  return std::make_unique<FixedOrder>(progress, options, state);
}

}  // namespace dunlin::remote
