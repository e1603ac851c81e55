#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/delivered_before.hpp"
#include "multicast/known.hpp"
#include "multicast/subgroup_view.hpp"

/// The views of one subgroup that this member still has: the present one, and those before it of
/// which the caller of next() has not taken all messages.
namespace dunlin::multicast {

struct OpenView {
  Subgroup subgroup;
  std::vector<std::string> names;  // the members' names
  std::unique_ptr<SubgroupView> view;
  std::vector<Known> had = {};     // by member: what the state that was taken in this view has
  DeliveredBefore before = {};     // what comes in this view, and was delivered in an earlier one
  std::uint64_t first_record = 0;  // durable, once it has ended: number of its first message
  DeliveredBefore beyond = {};     // once it has ended: what was delivered, and will come again

  /// Whether a message was delivered before, or is in the state. To be asked once for each message.
  [[nodiscard]] bool delivered_before(const Delivery& delivery);
  [[nodiscard]] bool nothing_delivered_before() const noexcept {
    return before.nothing() && had.empty();
  }
  /// `ahead`: how many messages of each sender were delivered beyond the view's trim.
  void add_beyond(std::span<const std::uint64_t> ahead);
  /// Unordered: adds messages that the state had beyond the trim, and that were never received
  /// here: they will come again, too.
  void add_state_beyond(std::span<const std::uint64_t> trim);

  [[nodiscard]] Rank rank_of_sender(std::size_t sender_rank) const {
    return subgroup.members[subgroup.senders[sender_rank]];
  }
};

class OpenViews {
 public:
  [[nodiscard]] bool empty() const noexcept { return views_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return views_.size(); }
  /// These four require that there is a view.
  [[nodiscard]] OpenView& oldest() noexcept { return views_.front(); }
  [[nodiscard]] const OpenView& oldest() const noexcept { return views_.front(); }
  [[nodiscard]] OpenView& present() noexcept { return views_.back(); }
  [[nodiscard]] const OpenView& present() const noexcept { return views_.back(); }

  OpenView& open(OpenView view);
  void drop_oldest();
  void drop_all();

  /// The oldest view's subgroup, or an empty one.
  [[nodiscard]] const Subgroup& subgroup() const noexcept {
    return views_.empty() ? none_ : views_.front().subgroup;
  }
  /// The sum over these views and all that were dropped.
  [[nodiscard]] Counters counters() const noexcept;
  void each_table(const std::function<void(const TableCore&)>& look) const;

 private:
  std::deque<OpenView> views_;
  Counters dropped_;
  DeliveredBefore of_dropped_;  // comes again in the view that is opened next
  Subgroup none_;
};

}  // namespace dunlin::multicast
