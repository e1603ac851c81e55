#pragma once

#include <cstdint>
#include <map>
#include <span>

#include <dunlin/fabric.hpp>

#include "fabric/bytes.hpp"

namespace dunlin::multicast {

/// Counts, in an unordered subgroup, the messages of each sender that earlier views delivered
/// beyond what they had agreed on. Their senders send them again, first, and they are passed over.
/// A sender that has left never does; if it comes back, it has another rank.
class DeliveredBefore {
 public:
  [[nodiscard]] bool nothing() const noexcept { return ahead_of_.empty(); }
  /// Whether the sender's next message was delivered before. To be asked once for each message.
  [[nodiscard]] bool has_next_of(Rank sender);

  void add(Rank sender, std::uint64_t messages);
  /// Adds the counts of these senders only.
  void add(const DeliveredBefore& other, std::span<const Rank> senders);

  /// Writes the counts as a part of a state, for another member.
  void write(Writer& writer) const;
  void read(Reader& reader);

 private:
  std::map<Rank, std::uint64_t> ahead_of_;
};

}  // namespace dunlin::multicast
