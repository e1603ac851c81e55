#include "relay/statistics_page.hpp"

#include <array>
#include <numeric>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::relay {
namespace {

/// In the order of relay_page::Count.
std::array<std::uint64_t, relay_page::kCounts> counts_of(const RelayCounters& counters) noexcept {
  return {counters.accepted,  counters.rejected,        counters.damaged,         counters.dropped,
          counters.resumed,   counters.published,       counters.published_bytes, counters.repeated,
          counters.delivered, counters.delivered_bytes, counters.skipped};
}

}  // namespace

StatisticsPage::StatisticsPage(Fabric& fabric, const std::string& at, const RelayOptions& options)
    : region_(fabric.publish(
          {.name = std::string(relay_page::kPrefix) + at, .bytes = sizeof(relay_page::Page)})),
      page_(reinterpret_cast<relay_page::Page*>(region_.memory().data())) {
  page_->version = relay_page::kVersion;
  page_->is_encrypted = options.secret.empty() ? 0 : 1;
  page_->most_clients = options.clients;
  memory::store(page_->magic, relay_page::kMagic);
}

void StatisticsPage::note(const Waiting& waiting) noexcept {
  if (waiting == waiting_) return;
  waiting_ = waiting;
  schedule_.note_change();
}

void StatisticsPage::show(std::size_t done, std::size_t clients, std::size_t blocked_clients,
                          const RelayCounters& counters) noexcept {
  const auto digest = [&] {
    // All counters grow, and a client that goes or is blocked has changed none of them.
    const auto counts = counts_of(counters);
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) ^ (clients << 48U) ^
           (blocked_clients << 32U);
  };
  if (!schedule_.is_due(done, digest)) return;
  memory::store(page_->clients, std::uint64_t{clients});
  memory::store(page_->blocked_clients, std::uint64_t{blocked_clients});
  memory::store(page_->waiting_bytes, waiting_.bytes);
  memory::store(page_->most_waiting_bytes, waiting_.most);
  const auto counts = counts_of(counters);
  for (std::size_t i = 0; i < counts.size(); ++i) memory::store(page_->counts[i], counts[i]);
}

}  // namespace dunlin::relay
