#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/remote/membership.hpp>

/// A GroupMembers shows the views of a Group as the membership of `remote`: the layers over
/// one-sided memory go on without the members that a view has left behind, and a Store, a
/// SegmentSpace and Containers also with those that join later. It polls the group; the program
/// must not poll it as well.
///
///     dunlin::Group group(*fabric);
///     dunlin::GroupMembers members(group);
///     dunlin::remote::Progress progress(*fabric, members);
///     dunlin::SegmentSpace space(progress, {.pool_bytes = 1 << 20});
namespace dunlin {

class GroupMembers final : public remote::Membership {
 public:
  /// The group must outlive this object. `most` is the number of ranks that can ever be members,
  /// the founders included, up to kMaxMembers; all members give the same number. A rank is never
  /// given twice, so `most` counts all members that have come and gone. 0: the founders alone; a
  /// member that joins the group later has no part in these layers then. Throws Error if `most` is
  /// invalid, or does not cover this process.
  explicit GroupMembers(Group& group, std::uint32_t most = 0);

  [[nodiscard]] std::uint64_t generation() const noexcept override { return generation_; }
  [[nodiscard]] bool contains(Rank rank) const noexcept override;
  [[nodiscard]] std::uint32_t founders() const noexcept override { return group_.founders(); }
  [[nodiscard]] std::uint32_t capacity() const noexcept override;
  [[nodiscard]] const std::string& why_stopped() const noexcept override { return why_stopped_; }
  [[nodiscard]] bool outlives_deaths() const noexcept override { return true; }
  std::size_t poll() override;
  [[nodiscard]] Waits waits() const override { return group_.waits(); }
  /// The order of a subgroup of that name, which comes at run time: multicasts have one.
  [[nodiscard]] std::unique_ptr<remote::AgreedOrder> open_order(
      remote::Progress& progress, const remote::OrderOptions& options,
      remote::AgreedState& state) override;

 private:
  void look();

  Group& group_;
  std::uint64_t generation_ = 0;
  std::vector<bool> present_;
  std::string why_stopped_;
};

}  // namespace dunlin
