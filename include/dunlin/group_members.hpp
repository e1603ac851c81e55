#pragma once

#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/remote/membership.hpp>

/// The views of a Group as the membership of `remote`: what stands on one-sided memory goes on
/// without the members that a view has left behind. It polls the group.
///
///     dunlin::Group group(*fabric);
///     dunlin::GroupMembers members(group);
///     dunlin::remote::Progress progress(*fabric, members);
///     dunlin::SegmentSpace space(progress, {.pool_bytes = 1 << 20});
namespace dunlin {

class GroupMembers final : public remote::Membership {
 public:
  /// The group must outlive this. Once a joiner has come into it, this process is stopped here:
  /// these layers stay with the members that the fabric had at their beginning.
  explicit GroupMembers(Group& group);

  [[nodiscard]] std::uint64_t generation() const noexcept override;
  [[nodiscard]] bool contains(Rank rank) const noexcept override;
  [[nodiscard]] const std::string& why_stopped() const noexcept override;
  std::size_t poll() override;

 private:
  void look();

  Group& group_;
  Fabric& fabric_;
  std::uint64_t generation_ = 0;
  std::vector<bool> present_;
  std::string why_stopped_;
};

}  // namespace dunlin
