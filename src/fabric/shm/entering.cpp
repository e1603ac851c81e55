#include "fabric/shm/entering.hpp"

#include <utility>

#include "fabric/entering.hpp"
#include "fabric/shm/shm_backend.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kBetweenClaimsNs = 1'000'000;
constexpr std::uint64_t kDescriptorsOfAMember = 4;
constexpr std::uint64_t kOwnDescriptors = 32;

}  // namespace

ShmEntry::ShmEntry(JoinOptions options)
    : options_(std::move(options)), access_(access_for(options_.access_group)) {}

void ShmEntry::begin(const Entry& entry) {
  check(entry);
  FabricSetup setup;
  take_members(setup, entry);
  const std::size_t peers = entry.members.size() + entry.admission.newcomers.size();
  const std::uint64_t descriptors = kDescriptorsOfAMember * peers + kOwnDescriptors;
  ensure_descriptors(descriptors, descriptors + 2 * kMaxRegions, static_cast<std::uint32_t>(peers));
  linking_.emplace(identity_of(entry, std::move(setup.names), options_.silence_ms()), access_,
                   key_of(entry.admission));
  for (const Entry::Member& member : entry.members) begin_link(member.rank, false);
  for (Rank rank = entry.admission.first; rank < linking_->self().members(); ++rank)
    if (rank != entry.rank()) begin_link(rank, rank > entry.rank());
  entry_ = entry;
  deadline_ns_ = read_clock_ns(CLOCK_MONOTONIC) + options_.join_ms() * kNsPerMs;
  begin_anew();
}

void ShmEntry::begin_link(Rank rank, bool calls) {
  if (calls)
    linking_->expect(rank);
  else
    linking_->call(rank, address_of(access_, linking_->self().group, rank));
}

std::unique_ptr<Fabric> ShmEntry::step() {
  if (!entry_) return nullptr;
  if (read_clock_ns(CLOCK_MONOTONIC) >= deadline_ns_)
    linking_->give_up("not linked within " + std::to_string(options_.join_ms()) + " ms to " +
                      missing());
  if (!linking_->listens() && !claim_address()) return nullptr;
  return linking_->step() ? make_shm_fabric(attachment()) : nullptr;
}

/// Claims the newcomer's address. A rank is given once, so only a hostile process can claim it as
/// well.
bool ShmEntry::claim_address() {
  const Identity& self = linking_->self();
  std::optional<Descriptor> listener =
      claim(address_of(access_, self.group, self.rank), Holder::is_examined);
  if (listener) linking_->listen_at(std::move(*listener));
  next_claim_ns_ = read_clock_ns(CLOCK_MONOTONIC) + kBetweenClaimsNs;
  return listener.has_value();
}

Attachment ShmEntry::attachment() {
  FabricSetup setup;
  take_members(setup, *entry_);
  Attachment made = linking_->attachment();
  made.absent = std::move(setup.absent);
  return made;
}

Awaited ShmEntry::awaited() {
  Awaited news;
  if (!entry_) return news;
  news.by(deadline_ns_);
  if (!linking_->listens()) news.by(next_claim_ns_);
  linking_->add_to(news);
  return news;
}

std::string ShmEntry::missing() const {
  std::string all;
  if (!linking_) return all;
  for (const Rank peer : linking_->missing())
    all += (all.empty() ? "" : ", ") + member_text(*entry_, peer);
  return all;
}

}  // namespace dunlin::shm
