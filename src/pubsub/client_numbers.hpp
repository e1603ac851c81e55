#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <unordered_map>

#include <dunlin/pubsub/limits.hpp>
#include <dunlin/pubsub/type_support.hpp>

#include "fabric/bytes.hpp"

/// The highest number of each client's samples that a topic has delivered. All members of a topic
/// with one order have equal numbers.
///
///  RLY-1  Of all samples of one client with one number, a topic delivers at most one: the first in
///         its order. A client's numbers ascend in the order, so one number a client suffices.
namespace dunlin::pubsub {

class ClientNumbers {
 public:
  /// Returns whether this sample is to be delivered. If there are kMaxTopicClients already, the
  /// client that has been silent for longest is forgotten.
  [[nodiscard]] bool note(const ClientStamp& stamp);
  [[nodiscard]] std::uint64_t delivered_of(const ClientId& client) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return by_age_.size(); }

  void save(Writer& to) const;
  /// Returns false if there are more clients than any member keeps.
  [[nodiscard]] bool load(Reader& from);

 private:
  struct Hash {
    /// Client ids are random numbers already.
    std::size_t operator()(const ClientId& id) const noexcept {
      std::size_t value = 0;
      std::memcpy(&value, id.data(), sizeof value);
      return value;
    }
  };
  std::list<ClientStamp> by_age_;  // the client that was delivered last is at the end
  std::unordered_map<ClientId, std::list<ClientStamp>::iterator, Hash> places_;
};

}  // namespace dunlin::pubsub
