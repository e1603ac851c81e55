#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <dunlin/fabric.hpp>
#include <dunlin/relay/relay.hpp>

#include "fabric/page_schedule.hpp"
#include "relay/statistics_page_format.hpp"

namespace dunlin::relay {

/// A relay's counters, where other processes see them. Written by the relay's thread only, and
/// never read back.
class StatisticsPage {
 public:
  /// `at`: ADDRESS:PORT.
  StatisticsPage(Fabric& fabric, const std::string& at, const RelayOptions& options);

  /// The bytes that waited for clients at one moment.
  struct Waiting {
    std::uint64_t bytes = 0;
    std::uint64_t most = 0;  // for one client
    friend bool operator==(const Waiting&, const Waiting&) = default;
  };
  void note(const Waiting& waiting) noexcept;
  /// Called in each poll, with how much it has done.
  void show(std::size_t done, std::size_t clients, std::size_t blocked_clients,
            const RelayCounters& counters) noexcept;

 private:
  Region region_;
  relay_page::Page* page_;
  Waiting waiting_;
  PageSchedule schedule_;
};

}  // namespace dunlin::relay
