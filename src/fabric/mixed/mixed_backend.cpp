#include "fabric/mixed/mixed_backend.hpp"

#include <algorithm>
#include <utility>

#include "fabric/member_list.hpp"
#include "fabric/rendezvous/peer_endpoints.hpp"

namespace dunlin::mixed {
namespace {

/// The endpoint in a newcomer's own words; if they make no sense, it will not come.
[[nodiscard]] Endpoint endpoint_of(const Admission::Newcomer& newcomer) {
  return decode(newcomer.endpoint).value_or(Endpoint{});
}

}  // namespace

Admission within_host(Admission admission) {
  constexpr Rank kNobody = UINT32_MAX;
  admission.key = rendezvous::prove(admission.key, kNobody, kNobody);
  return admission;
}

std::string describe_ways(std::span<const Way> ways, Rank own,
                          const std::vector<std::string>& names, const std::string& network) {
  struct Kind {
    const Way* way;
    std::string peers;
  };
  std::vector<Kind> kinds;
  for (Rank peer = 0; peer < ways.size(); ++peer) {
    if (peer == own || ways[peer].why.empty()) continue;
    auto kind = std::ranges::find_if(kinds, [&](const Kind& known) {
      return known.way->here == ways[peer].here && known.way->why == ways[peer].why;
    });
    if (kind == kinds.end()) kind = kinds.insert(kind, {&ways[peer], {}});
    kind->peers += (kind->peers.empty() ? "" : ", ") + member_text(names, peer);
  }
  std::stable_partition(kinds.begin(), kinds.end(),
                        [](const Kind& kind) { return kind.way->here; });
  std::string text;
  for (const Kind& kind : kinds)
    text += (text.empty() ? "" : "; ") + (kind.way->here ? "shared memory" : network) + " with " +
            kind.peers + " (" + kind.way->why + ")";
  return text.empty() ? network + " with nobody yet" : text;
}

MixedBackend::MixedBackend(Parts parts)
    : host_(std::move(parts.host)),
      network_(std::move(parts.network)),
      ways_(std::move(parts.ways)),
      own_(std::move(parts.own)),
      network_name_(std::move(parts.network_name)),
      network_description_(std::move(parts.network_description)),
      place_(std::move(parts.place)) {}

void MixedBackend::start() {
  lend_core(*network_);
  if (host_) {
    lend_core(*host_);
    host_->start();
  }
  network_->start();
  describe();
}

void MixedBackend::describe() const {
  std::vector<std::string> names;
  names.reserve(core().size());
  for (Rank peer = 0; peer < core().size(); ++peer)
    names.push_back(core().fabric().member_name(peer));
  names.resize(std::max(names.size(), ways_.size()));
  std::string text = describe_ways(ways_, core().rank(), names, network_description_);
  if (!place_.empty()) text += "; " + place_;
  core().describe(std::move(text));
}

// --- operations ----------------------------------------------------------------------------------

/// Posts the batch in portions, each of operations that go one way.
Posted MixedBackend::post(std::span<const Operation> batch) noexcept {
  Posted posted;
  while (posted.accepted < batch.size()) {
    const std::span<const Operation> rest = batch.subspan(posted.accepted);
    const bool here = is_here(rest.front().peer);
    std::size_t count = 1;
    while (count < rest.size() && is_here(rest[count].peer) == here) ++count;
    const std::span<const Operation> portion = rest.first(count);
    const Posted part = here ? host_->post(portion) : network_->post(portion);
    posted.accepted += part.accepted;
    posted.refusal = part.refusal;
    if (!part.all()) break;
  }
  return posted;
}

// --- members -------------------------------------------------------------------------------------

std::vector<std::byte> MixedBackend::endpoint() const {
  return encode({.host = own_.host(),
                 .networks = {{.network = network_name_, .endpoint = network_->endpoint()}}});
}

/// Room that shared memory has made stays unused if the network then refuses.
void MixedBackend::admit(const Admission& admission) {
  Admission over_network = admission;
  std::vector<Way> ways(admission.first + admission.newcomers.size());
  std::ranges::copy(ways_, ways.begin());
  for (std::size_t i = 0; i < admission.newcomers.size(); ++i) {
    const Endpoint endpoint = endpoint_of(admission.newcomers[i]);
    ways[admission.first + i] = way_to(own_, endpoint.host);
    const NetworkEndpoint* const reach = endpoint.find(network_name_);
    over_network.newcomers[i].endpoint =
        reach != nullptr ? reach->endpoint : NetworkEndpoint().endpoint;
  }
  if (host_) host_->admit(within_host(admission));
  network_->admit(over_network);
  ways_ = std::move(ways);
  for (Rank rank = admission.first; rank < ways_.size(); ++rank) {
    if (ways_[rank].here)
      network_->leave_elsewhere(rank);
    else if (host_)
      host_->leave_elsewhere(rank);
  }
  describe();
}

void MixedBackend::close(Rank peer) noexcept {
  part_of(peer).close(peer);
  if (host_ && !is_here(peer)) host_->mark_failed(peer);
}

// --- memory --------------------------------------------------------------------------------------

std::span<std::byte> MixedBackend::map(RegionId id, const LocalRegion& region) {
  if (!host_) return network_->map(id, region);
  const std::span<std::byte> memory = host_->map(id, region);
  network_->adopt(id, host_->segment_of(id));
  return memory;
}

void MixedBackend::open(RegionId id, const LocalRegion& region, RemoteRegion& own) {
  network_->open(id, region, own);
  if (host_) host_->open(id, region, own);
}

/// The network may need the region's pages for longer.
void MixedBackend::unmap(RegionId id, const LocalRegion& region) noexcept {
  network_->unmap(id, region);
  if (host_) host_->unmap(id, region);
}

// --- life and waiting ----------------------------------------------------------------------------

void MixedBackend::beat() noexcept {
  if (host_) host_->beat();
  network_->beat();
}

void MixedBackend::arm() noexcept {
  if (host_) host_->arm();
  network_->arm();
}

void MixedBackend::disarm(bool only_rung) noexcept {
  if (host_) host_->disarm(only_rung);
  network_->disarm(only_rung);
}

bool MixedBackend::may_wait() noexcept {
  const bool network_may = network_->may_wait();
  return network_may && (!host_ || host_->may_wait());
}

std::uint64_t MixedBackend::next_duty_ns() const noexcept {
  const std::uint64_t network_ns = network_->next_duty_ns();
  return host_ ? std::min(network_ns, host_->next_duty_ns()) : network_ns;
}

}  // namespace dunlin::mixed
