#include "fabric/mixed/forming.hpp"

#include <algorithm>
#include <utility>

#include "fabric/entering.hpp"
#include "fabric/mixed/mixed_backend.hpp"
#include "fabric/rendezvous/peer_endpoints.hpp"

namespace dunlin::mixed {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kDescriptorsOfAPeer = 4;
constexpr std::uint64_t kOtherDescriptors = 64;

/// The properties that both streams and shared memory have.
[[nodiscard]] Properties with_shared_memory(Properties properties) {
  properties.native_atomics = false;
  properties.atomics_coherent_with_cpu = true;
  properties.expel_fences = false;
  return properties;
}

}  // namespace

Forming::Forming(JoinOptions options, std::uint32_t members, std::string place,
                 const std::string& host)
    : options_(std::move(options)),
      place_(std::move(place)),
      own_(host),
      offers_(make_offers(options_, members)) {
  Endpoint endpoint{.host = own_.host(), .networks = {}};
  for (const stream::Offer& offer : offers_.all)
    endpoint.networks.push_back({.network = offer.name, .endpoint = offer.network->endpoint()});
  endpoint_ = encode(endpoint);
}

void Forming::begin(const dunlin::Entry& entry) {
  entry_ = entry;
  take_members(setup_, entry);
  ways_.resize(setup_.names.size());
  endpoints_.resize(setup_.names.size());
  std::vector<Rank> ranks;
  std::vector<Endpoint> members;
  const auto take = [&](Rank rank, std::span<const std::byte> endpoint) {
    ranks.push_back(rank);
    members.push_back(hear(rank, endpoint));
  };
  for (const dunlin::Entry::Member& member : entry.members) take(member.rank, member.endpoint);
  for (std::size_t i = 0; i < entry.admission.newcomers.size(); ++i)
    take(entry.admission.first + static_cast<Rank>(i), entry.admission.newcomers[i].endpoint);
  choose(ranks, members);
  deadline_ns_ = read_clock_ns(CLOCK_MONOTONIC) + options_.join_ms() * kNsPerMs;
  if (own_.host().shares) begin_links();
  begin_streams();
}

Endpoint Forming::hear(Rank peer, std::span<const std::byte> endpoint) const {
  std::optional<Endpoint> said = decode(endpoint);
  if (said) return std::move(*said);
  throw Error("group '" + entry_->group + "': " + member_text(*entry_, peer) +
              " does not join by 'auto' , as this member does: all members must join "
              "alike");
}

void Forming::choose(std::span<const Rank> ranks, std::span<const Endpoint> members) {
  const std::optional<std::size_t> chosen = choose_network(offers_.all, members);
  if (!chosen) {
    std::string text = "group '" + entry_->group + "': no network is offered by all members:";
    for (std::size_t i = 0; i < ranks.size(); ++i)
      text += "\n  " + member_text(*entry_, ranks[i]) + ": " + names_of(members[i].networks);
    throw Error(text + "\nall members must join alike (encryption, provider, device)");
  }
  std::swap(offers_.all.front(), offers_.all[*chosen]);
  offers_.all.resize(1);
  const std::string& network = offers_.all.front().name;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ways_[ranks[i]] = ranks[i] == entry_->rank() ? Way{own_.host().shares, "itself"}
                                                 : way_to(own_, members[i].host);
    endpoints_[ranks[i]] = members[i].find(network)->endpoint;
  }
}

/// Ensures descriptors for a socket, a doorbell and a ring's segment of each peer, while they are
/// linked.
void Forming::ensure_links() const {
  const std::uint64_t here = ranks_here().size();
  const std::uint64_t needed = kDescriptorsOfAPeer * here + ways_.size() + kOtherDescriptors;
  ensure_descriptors(needed, needed + 2 * kMaxRegions, static_cast<std::uint32_t>(ways_.size()));
}

/// Begins to link, as over streams: a newcomer calls all ranks below its own, and those above call
/// it.
void Forming::begin_links() {
  ensure_links();
  shm::Identity self = shm::identity_of(*entry_, setup_.names, options_.silence_ms());
  self.fabric = "auto";
  linking_.emplace(std::move(self), own_.access(), shm::key_of(within_host(entry_->admission)));
  linking_->listen_at(own_.take_listener());
  const auto call = [&](Rank peer, std::span<const std::byte> endpoint) {
    if (ways_[peer].here && peer < entry_->rank())
      linking_->call(peer, own_.address_of(decode(endpoint)->host));
  };
  for (const dunlin::Entry::Member& member : entry_->members) call(member.rank, member.endpoint);
  const Admission& admission = entry_->admission;
  for (Rank rank = admission.first; rank < ways_.size(); ++rank) {
    call(rank, admission.newcomers[rank - admission.first].endpoint);
    if (ways_[rank].here && rank > entry_->rank()) linking_->expect(rank);
  }
}

void Forming::begin_streams() {
  for (Rank peer = 0; peer < ways_.size(); ++peer) {
    our_proofs_.push_back(rendezvous::prove(entry_->admission.key, entry_->rank(), peer));
    their_proofs_.push_back(rendezvous::prove(entry_->admission.key, peer, entry_->rank()));
  }
  std::vector<Rank> without = ranks_here();
  std::erase(without, entry_->rank());  // the network deals with this
  without.insert(without.end(), setup_.absent.begin(), setup_.absent.end());
  network().enter(entry_->rank(), endpoints_, our_proofs_, their_proofs_, without);
}

std::unique_ptr<Fabric> Forming::step() {
  const bool linked = !linking_ || linking_->step();
  if (network().connected() && linked) return make();
  if (read_clock_ns(CLOCK_MONOTONIC) < deadline_ns_) return nullptr;
  throw Error("member " + member_text(*entry_, entry_->rank()) + " cannot come into group '" +
              entry_->group + "': not linked within " + std::to_string(options_.join_ms()) +
              " ms to " + missing() +
              ": are they still there, and can this member reach their addresses?");
}

std::unique_ptr<Fabric> Forming::make() {
  stream::Attachment streams{.kind = "auto",
                             .description = {},
                             .group = entry_->group,
                             .rank = entry_->rank(),
                             .names = setup_.names,
                             .silence_timeout_ms = options_.silence_ms(),
                             .formed_by_ns = deadline_ns_,
                             .our_proofs = std::move(our_proofs_),
                             .their_proofs = std::move(their_proofs_),
                             .absent = setup_.absent,
                             .elsewhere = ranks_here(),
                             .is_part = linking_.has_value(),
                             .prove = rendezvous::prove,
                             .transport = network().release()};
  FabricSetup setup{.kind = "auto",
                    .group = entry_->group,
                    .rank = entry_->rank(),
                    .names = setup_.names,
                    .absent = setup_.absent,
                    .silence_timeout_ms = options_.silence_ms()};
  Parts parts{.own = std::move(own_),
              .host = nullptr,
              .network = std::make_unique<stream::StreamBackend>(std::move(streams)),
              .network_name = offers_.all.front().name,
              .network_description =
                  offers_.all.front().description +
                  (offers_.failed.empty() ? "" : ", as there is no better: " + offers_.failed),
              .place = place_,
              .ways = ways_};
  setup.properties = parts.network->properties();
  if (linking_) {
    shm::Attachment memory = linking_->attachment();
    memory.absent = setup_.absent;
    memory.elsewhere = ranks_elsewhere();
    const int bell = memory.bell.get();
    setup.sleeper = Sleeper(std::move(memory.bell));
    setup.properties = with_shared_memory(setup.properties);
    parts.host = std::make_unique<shm::ShmBackend>(std::move(memory), bell);
  } else {
    setup.sleeper = Sleeper();
  }
  return make_fabric(std::move(setup), std::make_unique<MixedBackend>(std::move(parts)));
}

std::vector<Rank> Forming::ranks_here() const {
  std::vector<Rank> all;
  for (Rank peer = 0; peer < ways_.size(); ++peer)
    if (ways_[peer].here) all.push_back(peer);
  return all;
}

/// The ranks that shared memory does not reach. Ranks without a member are in neither list.
std::vector<Rank> Forming::ranks_elsewhere() const {
  std::vector<Rank> all;
  for (Rank peer = 0; peer < ways_.size(); ++peer)
    if (!ways_[peer].here && !ways_[peer].why.empty()) all.push_back(peer);
  return all;
}

Awaited Forming::awaited() const {
  Awaited news = network().awaited();
  if (linking_) linking_->add_to(news);
  news.by(deadline_ns_);
  return news;
}

std::string Forming::missing() const {
  if (!entry_) return {};
  std::vector<Rank> peers = network().unconnected();
  if (linking_) std::ranges::copy(linking_->missing(), std::back_inserter(peers));
  std::ranges::sort(peers);
  std::string all;
  for (const Rank peer : peers) all += (all.empty() ? "" : ", ") + member_text(*entry_, peer);
  return all;
}

}  // namespace dunlin::mixed
