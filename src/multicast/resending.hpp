#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <dunlin/multicast.hpp>

#include "multicast/subgroup_view.hpp"

namespace dunlin::multicast {

/// Own messages that were accepted in a view whose trim does not cover them. This member sends them
/// first in the next view (MC-O4); send() has no room until they are all sent.
class Resending {
 public:
  [[nodiscard]] bool pending() const noexcept { return !messages_.empty(); }
  /// Adds the messages of a view that has ended, before those that it still had to send.
  void add(std::vector<std::vector<std::byte>> messages);
  /// Sends as many as there is room for.
  void send_in(SubgroupView& view);
  /// Subtracts the messages that were sent again, so that each counts once.
  void take_from(Counters& counters) const noexcept;

 private:
  std::deque<std::vector<std::byte>> messages_;
  std::uint64_t sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace dunlin::multicast
