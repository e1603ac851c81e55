#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/group_members.hpp>
#include <dunlin/multicast.hpp>

namespace dunlin::multicast {

/// The order of proposals that the views of a group give to `remote`: an ordered multicast in a
/// subgroup of its own, of the members that have opened the order. A member delivers a message when
/// all members of the subgroup have it (MC-O3), or when a quorum of the view has decided how the
/// subgroup's generation ends (GRP-C7, GRP-D9); so no member acts on what others may never hear of.
class GroupOrder final : public remote::AgreedOrder {
 public:
  /// Asks to be in the subgroup. Throws Error for an invalid name, and for one that is in use.
  GroupOrder(Group& group, const remote::OrderOptions& options, remote::AgreedState& state);

  [[nodiscard]] bool propose(std::span<const std::byte> proposal) override;
  [[nodiscard]] bool ready() const noexcept override { return multicast_->joined(); }
  [[nodiscard]] const std::string& why_stopped() const noexcept override {
    return multicast_->why_left();
  }
  std::size_t poll() override { return 0; }  // the group's poll() does it

 private:
  void load(std::span<const std::byte> state);
  void members_are(const Subgroup& subgroup);

  const std::string who_;  // "order 'sum': "
  remote::AgreedState& state_;
  std::vector<Rank> members_;
  std::unique_ptr<Multicast> multicast_;
};

}  // namespace dunlin::multicast
