#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dunlin/group.hpp>

#include "group/scope.hpp"

/// The declared subgroups, what becomes of them in a view, and where their senders' counts are in a
/// row. Pure.
namespace dunlin::group {

/// The count for a sender of which a member knows nothing, because it is not in the subgroup.
inline constexpr std::uint64_t kNoOpinion = UINT64_MAX;

class Subgroups {
 public:
  /// One subgroup in a view.
  struct InView {
    Subgroup subgroup;            // without members: none of them is there
    std::size_t first_count = 0;  // index of its senders' counts, in the order of `senders`
    bool ours = false;
  };

  /// Throws Error for an invalid declaration.
  explicit Subgroups(std::vector<SubgroupSpec> specs);

  [[nodiscard]] const std::vector<SubgroupSpec>& specs() const noexcept { return specs_; }
  /// The subgroups in a view, whose members have these names, and ranks in its fabric.
  [[nodiscard]] std::vector<InView> in_view(const View& view, const std::vector<Rank>& ranks,
                                            const Scope& scope) const;
  /// How many counts there are in all.
  [[nodiscard]] static std::size_t counts(const std::vector<InView>& all) noexcept;
  /// Equal for all members with equal declarations; whether others may join is a part of it.
  [[nodiscard]] std::string fingerprint(bool joinable) const;
  /// The declarations as a text for people; of long lists, how many names there are, and their
  /// hash. At most kMaxLayoutTextBytes.
  [[nodiscard]] std::string description(bool joinable) const;

 private:
  std::vector<SubgroupSpec> specs_;
};

}  // namespace dunlin::group
