#pragma once

#include <cstdint>
#include <optional>

#include <dunlin/store.hpp>

#include "store/member_printer.hpp"
#include "store/progress_bar.hpp"

namespace dunlin::app::resp {

/// What the slot map says of the member; all 0 if the map does not have it.
[[nodiscard]] StorePlacement::Member part_of(const StorePlacement& placement, Rank rank);
/// How many slots it owns, or has copies of.
[[nodiscard]] inline std::uint32_t held_by(const StorePlacement::Member& member) noexcept {
  return member.owned + member.copies + member.partial;
}

/// Tells the user of a member how its share of the keys comes: a progress bar meanwhile, and a line
/// at the end. The thread of the store uses it.
class ShareWatch {
 public:
  /// Begins to watch.
  ShareWatch(Store& store, std::uint32_t copies, MemberPrinter& print);
  /// To be called as often as Store::poll().
  void poll();

 private:
  /// How many slots and copies of slots the member will hold.
  [[nodiscard]] std::uint64_t share_of(const StorePlacement& placement, std::uint32_t weight) const;

  Store& store_;
  const std::uint32_t copies_;
  MemberPrinter& print_;
  StoreOperation settling_;
  std::optional<ProgressBar> bar_;  // until the share is there
};

}  // namespace dunlin::app::resp
