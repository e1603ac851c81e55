#include "fabric/shm/shm_backend.hpp"

#include <algorithm>

#include <fcntl.h>
#include <sys/socket.h>

#include "fabric/join/network.hpp"
#include "fabric/shm/fence.hpp"
#include "fabric/shm/peer_discovery.hpp"
#include "fabric/shm/shm_rendezvous.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kLookIntervalNs = 250'000;

constexpr std::uint32_t kDescriptorsOfAMember = 4;

class ShmJoin final : public SteppedJoin {
 public:
  ShmJoin(const JoinOptions& options, const std::string& place)
      : place_(place.empty() ? place : "; " + place), discovery_(options) {}
  std::string missing() const override { return discovery_.missing_members(); }

 private:
  std::unique_ptr<Fabric> step() override {
    std::optional<Attachment> attachment = discovery_.poll();
    if (!attachment) return nullptr;
    attachment->place = place_;
    return make_shm_fabric(std::move(*attachment));
  }
  Awaited awaited() override { return discovery_.awaited(); }

  std::string place_;
  PeerDiscovery discovery_;
};

}  // namespace

std::unique_ptr<SteppedJoin> begin_join(const JoinOptions& options, const std::string& place) {
  return std::make_unique<ShmJoin>(options, place);
}

constinit const JoinableNetwork kNetwork{.begin_join = begin_join,
                                         .make_rendezvous = make_rendezvous};

ShmBackend::ShmBackend(Attachment attachment, int bell)
    : members_(attachment.self.members()),
      targets_(attachment.self.members() * kTargetsOfAPeer),
      attention_(attachment.self.members()),
      own_(reinterpret_cast<BaseMapping*>(attachment.base.mapping->memory().data())),
      look_timer_(kLookIntervalNs, ShmBackend::now_ns()),
      last_watch_ns_(ShmBackend::now_ns()),
      self_(std::move(attachment.self)),
      access_(attachment.access),
      listener_(std::move(attachment.listener)),
      bell_(bell),
      base_(std::move(attachment.base)),
      contacts_(self_.members()),
      segments_(kMaxRegions),
      elsewhere_(std::move(attachment.elsewhere)),
      living_(self_.members() -
              static_cast<std::uint32_t>(attachment.absent.size() + elsewhere_.size())) {
  pending_ = &own_->pending;
  for (Rank rank = 0; rank < members_; ++rank)
    contacts_[rank].link = std::move(attachment.links[rank]);
}

void ShmBackend::start() {
  if (!core().sleeper().watch(listener_.get(), kListenerTag))
    throw Error("watching the listener of group '" + self_.group +
                "' failed: " + error_text(errno));
  for (Rank rank = 0; rank < members_; ++rank)
    if (!core().failing(rank) && std::ranges::find(elsewhere_, rank) == elsewhere_.end() &&
        !attach(rank))
      throw Error("watching " + core().name_of(rank) + " failed: " + error_text(errno));
  memory::store(own_->control_waiting, 1);
  attend_soon();
}

/// Attaches a peer; false if its socket cannot be watched.
bool ShmBackend::attach(Rank rank) {
  Link& link = contacts_[rank].link;
  if (rank == self_.rank)
    link.bell = Descriptor(checked(fcntl(bell_, F_DUPFD_CLOEXEC, 0), "copying a descriptor"));
  if (!link.base) {
    core().fail_soon(rank, "it died while the group was forming");
    return true;
  }
  attention_[rank].base = reinterpret_cast<BaseMapping*>(link.base->memory().data());
  attention_[rank].bell = link.bell.get();
  attention_[rank].needs_fence = link.needs_fence;
  attention_[rank].ring =
      link.outbox ? ring_in(*link.outbox) : &attention_[rank].base->ring(self_.rank);
  contacts_[rank].ring = link.inbox ? ring_in(*link.inbox) : &own_->ring(rank);
  core().on_silence_timeout(link.silence_timeout_ms);
  if (rank == self_.rank) return true;
  contacts_[rank].process = process_behind(link.socket.get(), link.pid);
  return core().sleeper().watch(link.socket.get(), rank);
}

ShmBackend::~ShmBackend() {
  if (!has_core() || !core().in_own_process()) return;
  Packet goodbye;
  goodbye.type = PacketType::leave;
  for (Contact& contact : contacts_) {
    if (contact.parting) shutdown(contact.parting.get(), SHUT_RDWR);
    if (!contact.link.socket) continue;
    static_cast<void>(send_packet(contact.link.socket.get(), goodbye));
    shutdown(contact.link.socket.get(), SHUT_RDWR);  // works even if a child process holds it open
  }
}

/// Makes room for newcomers, which call at the listener (FAB-G2).
void ShmBackend::admit(const Admission& admission) {
  const std::uint64_t of_members =
      std::uint64_t{kDescriptorsOfAMember} * (living_ + admission.newcomers.size());
  ensure_descriptors(of_members, of_members + 2 * kMaxRegions, living_);
  members_ = static_cast<std::uint32_t>(admission.first + admission.newcomers.size());
  targets_.resize(members_ * kTargetsOfAPeer);
  attention_.resize(members_);
  contacts_.resize(members_);
  for (Rank rank = admission.first; rank < members_; ++rank)
    contacts_[rank].key = key_of(admission);
}

std::string ShmBackend::detail_of(Rank peer) const {
  const pid_t pid = contacts_[peer].link.pid;
  return pid == 0 ? std::string() : " (pid " + std::to_string(pid) + ")";
}

/// Parts with a peer: from here on nothing of this process writes to its memory, and the peer is
/// told so. A peer that was expelled may be alive, and is listened to until it says the same
/// (fence()).
void ShmBackend::part(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  contact.parted_ns = now_ns();
  Packet farewell;
  farewell.type = PacketType::part;
  static_cast<void>(send_packet(contact.link.socket.get(), farewell));
  const bool is_heard = core().expelled(peer) && !core().touches_nothing(peer);
  shutdown(contact.link.socket.get(), is_heard ? SHUT_WR : SHUT_RDWR);
  if (core().touches_nothing(peer)) contact.process.close();  // need not be fenced
  if (!is_heard) return core().sleeper().forget(contact.link.socket.get());
  contact.parting = std::move(contact.link.socket);
}

/// Closes the link. Messages that the peer has sent before may still be in its ring: the core has
/// the ring drained first, or drops them.
void ShmBackend::close(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  if (attention_[peer].base != nullptr || contact.key == 0) --living_;
  attention_[peer] = Attention{};
  if (contact.ring != nullptr)
    contact.messages_until = std::min(contact.messages_until, memory::load(contact.ring->head));
  outgoing_ -= contact.outgoing.size();
  contact.outgoing.clear();
  if (contact.link.socket) part(peer);
  // What the peer has sent is still to be read, or dropped.
  contact.link = Link{.inbox = std::move(contact.link.inbox), .pid = contact.link.pid};
  give_back_ring(contact);
  mark_failed(peer);
}

void ShmBackend::mark_failed(Rank peer) noexcept {
  if (peer < kMarkWords * 64)
    memory::fetch_or(&own_->failed_peers[peer / 64], std::uint64_t{1} << peer % 64);
}

}  // namespace dunlin::shm
