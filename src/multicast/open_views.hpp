#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/known.hpp"
#include "multicast/subgroup_view.hpp"

/// The views of one subgroup that this member still has: the present one, and those before it of
/// which the caller of next() has not taken all messages.
namespace dunlin::multicast {

struct OpenView {
  Subgroup subgroup;
  std::vector<std::string> names;  // of its members
  std::unique_ptr<SubgroupView> view;
  std::vector<Known> had = {};  // by member: what the state that was taken in this view holds

  [[nodiscard]] const std::string& name_of_sender(std::size_t sender_rank) const {
    return names[subgroup.senders[sender_rank]];
  }
};

class OpenViews {
 public:
  [[nodiscard]] bool empty() const noexcept { return views_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return views_.size(); }
  /// Of these there must be one.
  [[nodiscard]] OpenView& oldest() noexcept { return views_.front(); }
  [[nodiscard]] OpenView& present() noexcept { return views_.back(); }
  [[nodiscard]] const OpenView& present() const noexcept { return views_.back(); }

  OpenView& open(OpenView view) { return views_.emplace_back(std::move(view)); }
  void drop_oldest();
  void drop_all();

  /// That of the oldest one, or nobody's.
  [[nodiscard]] const Subgroup& subgroup() const noexcept {
    return views_.empty() ? none_ : views_.front().subgroup;
  }
  /// Of these and all that were dropped.
  [[nodiscard]] Counters counters() const noexcept;
  void each_table(const std::function<void(const TableCore&)>& look) const;

 private:
  std::deque<OpenView> views_;
  Counters dropped_;
  Subgroup none_;
};

}  // namespace dunlin::multicast
