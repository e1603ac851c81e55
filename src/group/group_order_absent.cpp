#include <dunlin/error.hpp>
#include <dunlin/group_members.hpp>

/// A build without the multicast layer (DUNLIN_LAYERS) has no order of decisions in a group.
namespace dunlin {

std::unique_ptr<remote::AgreedOrder> GroupMembers::open_order(
    remote::Progress& /*progress*/, const remote::OrderOptions& /*options*/,
    remote::AgreedState& /*state*/) {
  throw Error("group '" + group_.name() +
              "': this build has no multicast layer, by which a group agrees on an order");
}

}  // namespace dunlin
