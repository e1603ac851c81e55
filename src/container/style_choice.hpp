#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <dunlin/container/cost.hpp>

namespace dunlin::container {

/// What the cost model chooses for one container. For each call and promise it remembers the
/// longest wait up to which a message is cheaper, so most calls only compare two numbers.
class StyleChoice {
 public:
  /// `costs_version` differs when the costs do.
  [[nodiscard]] Style of(const ComponentCosts& costs, std::uint32_t costs_version, Call call,
                         const Situation& at) noexcept {
    Entry& entry = entries_[static_cast<std::size_t>(call)][static_cast<std::size_t>(at.promise)];
    if (entry.costs_version != costs_version || entry.tables != at.tables ||
        entry.count != at.count || entry.load != at.load || entry.clients != at.clients)
      entry = {costs_version, at.tables,  at.count,
               at.load,       at.clients, longest_wait_ns(costs, call, at)};
    return at.wait_ns < entry.longest_wait_ns ? Style::message : Style::one_sided;
  }

 private:
  struct Entry {
    std::uint32_t costs_version = 0;
    double tables = 0;
    double count = 0;
    double load = 0;
    double clients = 0;
    double longest_wait_ns = 0;
  };
  std::array<std::array<Entry, kPromises>, kCalls> entries_{};
};

}  // namespace dunlin::container
