#pragma once

#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "group/member_set.hpp"

/// Compares the declarations of a group's founders, so that each can say how another's differs.
/// (The view's table refuses that, too, but in the words of its columns.) One thread at a time.
namespace dunlin::group {

class Declaration {
 public:
  /// All founders must give the same readable `text`, of at most kMaxLayoutTextBytes.
  Declaration(Fabric& fabric, std::string region, std::vector<Rank> founders, std::string text);
  /// The members that declare other subgroups, and what they declare; empty as long as none does.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  /// The founders, by index, whose declarations could be read, and equal this member's.
  [[nodiscard]] const MemberSet& same() const noexcept { return same_; }

 private:
  void handle(const Event& event);

  std::vector<Rank> founders_;
  std::string refusal_;
  MemberSet same_;
  Region region_;
  Subscription subscription_;
};

}  // namespace dunlin::group
