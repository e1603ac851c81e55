#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include <dunlin/multicast.hpp>

#include "fabric/bytes.hpp"
#include "multicast/open_views.hpp"

namespace dunlin::multicast {

/// Which messages this member does not hand up, because it delivered them before: those in the
/// state that it took, and those of an unordered subgroup that were delivered beyond the trim of an
/// earlier view, and that their sender sends again.
class DeliveredBefore {
 public:
  /// Nothing that comes in that view was.
  [[nodiscard]] bool nothing_of(const OpenView& view) const noexcept {
    return ahead_of_.empty() && view.had.empty();
  }
  /// Whether that message was. To be asked once of each message.
  [[nodiscard]] bool has(const OpenView& view, const Delivery& delivery);

  /// The view has ended. `ahead`: how many messages of each sender were delivered beyond its trim.
  void add(const OpenView& view, std::span<const std::uint64_t> ahead);
  /// Unordered, likewise: what the state held beyond the trim, and was never received here, will
  /// come again, too.
  void add_state(const OpenView& view, std::span<const std::uint64_t> trim);

  /// As a part of a state, for another member.
  void write(Writer& writer) const;
  void read(Reader& reader);

 private:
  /// By sender: how many messages of it were delivered beyond its trim.
  std::map<std::string, std::uint64_t> ahead_of_;
};

}  // namespace dunlin::multicast
