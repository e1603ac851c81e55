#pragma once

#include <cstdint>
#include <map>
#include <span>

#include <dunlin/fabric.hpp>

#include "fabric/bytes.hpp"

namespace dunlin::multicast {

/// How many messages of each sender were delivered in earlier views beyond what those had agreed
/// on, in an unordered subgroup: their senders send them again, first, and they are passed over. A
/// sender that has left never does; one that comes back has another rank.
class DeliveredBefore {
 public:
  [[nodiscard]] bool nothing() const noexcept { return ahead_of_.empty(); }
  /// Whether the next message of that sender was. To be asked once of each message.
  [[nodiscard]] bool has_next_of(Rank sender);

  void add(Rank sender, std::uint64_t messages);
  /// Of these senders only.
  void add(const DeliveredBefore& other, std::span<const Rank> senders);

  /// As a part of a state, for another member.
  void write(Writer& writer) const;
  void read(Reader& reader);

 private:
  std::map<Rank, std::uint64_t> ahead_of_;
};

}  // namespace dunlin::multicast
