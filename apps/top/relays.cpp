#include "top/relays.hpp"

#include "relay/statistics_page_format.hpp"
#include "top/published_page.hpp"

namespace dunlin::top {

void RelayMember::compare(const RelayMember& before, double seconds) {
  for (const auto counter :
       {&RelayMember::accepted, &RelayMember::rejected, &RelayMember::damaged,
        &RelayMember::dropped, &RelayMember::resumed, &RelayMember::published,
        &RelayMember::published_bytes, &RelayMember::repeated, &RelayMember::delivered,
        &RelayMember::delivered_bytes, &RelayMember::skipped})
    (this->*counter).compare((before.*counter).total, seconds);
}

std::optional<std::string_view> relay_of(std::string_view region) {
  if (!region.starts_with(relay_page::kPrefix)) return std::nullopt;
  return region.substr(relay_page::kPrefix.size());
}

std::optional<RelayMember> read_relay(std::span<const std::byte> memory) {
  const auto* const page =
      page_at<relay_page::Page>(memory, {relay_page::kMagic, relay_page::kVersion});
  if (page == nullptr) return std::nullopt;
  const auto count = [&](relay_page::Count what) {
    return Counter{.total = memory::load(page->counts[static_cast<std::size_t>(what)])};
  };
  const RelayMember member{.is_encrypted = memory::load(page->is_encrypted) != 0,
                           .most_clients = memory::load(page->most_clients),
                           .clients = memory::load(page->clients),
                           .blocked_clients = memory::load(page->blocked_clients),
                           .waiting_bytes = memory::load(page->waiting_bytes),
                           .most_waiting_bytes = memory::load(page->most_waiting_bytes),
                           .accepted = count(relay_page::Count::accepted),
                           .rejected = count(relay_page::Count::rejected),
                           .damaged = count(relay_page::Count::damaged),
                           .dropped = count(relay_page::Count::dropped),
                           .resumed = count(relay_page::Count::resumed),
                           .published = count(relay_page::Count::published),
                           .published_bytes = count(relay_page::Count::published_bytes),
                           .repeated = count(relay_page::Count::repeated),
                           .delivered = count(relay_page::Count::delivered),
                           .delivered_bytes = count(relay_page::Count::delivered_bytes),
                           .skipped = count(relay_page::Count::skipped)};
  if (member.clients > member.most_clients) return std::nullopt;
  return member;
}

}  // namespace dunlin::top
