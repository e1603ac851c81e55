#include "fabric/shm/shm_fabric.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "fabric/shm/tags.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kLookIntervalNs = 250'000;

constexpr Properties kProperties{.passive_target = true,
                                 .ordered_placement = true,
                                 .native_atomics = true,
                                 .atomics_coherent_with_cpu = true,
                                 .max_inline_bytes = UINT32_MAX,
                                 .max_peers = kMaxHostMembers,
                                 .queue_slots = UINT32_MAX};

class Joining final : public SteppedFormation {
 public:
  explicit Joining(const JoinOptions& options) : rendezvous_(options) {}

 private:
  std::unique_ptr<Fabric> step() override {
    std::optional<Attachment> attachment = rendezvous_.poll();
    return attachment ? std::make_unique<ShmFabric>(std::move(*attachment)) : nullptr;
  }
  Awaited awaited() override { return rendezvous_.awaited(); }

  Rendezvous rendezvous_;
};

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions& options) { return Joining(options).run(); }

std::unique_ptr<Formation> begin_join(const JoinOptions& options) {
  return std::make_unique<Joining>(options);
}

ShmFabric::ShmFabric(Attachment attachment)
    : own_(reinterpret_cast<BaseSegment*>(attachment.base.mapping->memory().data())),
      members_(attachment.self.members()),
      remotes_(attachment.self.members() * kMaxRegions),
      doors_(attachment.self.members()),
      look_timer_(kLookIntervalNs, ShmFabric::now_ns()),
      last_watch_ns_(ShmFabric::now_ns()),
      silence_timeout_ns_(attachment.self.silence_timeout_ms * kNsPerMs),
      detector_(attachment.self.members(), silence_timeout_ns_, ShmFabric::now_ns()),
      self_(std::move(attachment.self)),
      access_(attachment.access),
      listener_(std::move(attachment.listener)),
      bell_(std::move(attachment.bell)),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "making an epoll descriptor")),
      alarm_(
          checked(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "making a timer")),
      base_(std::move(attachment.base)),
      contacts_(self_.members()),
      locals_(kMaxRegions),
      living_(self_.members()) {
  rank_ = self_.rank;
  group_ = self_.group;
  properties_ = kProperties;
  recent_ns_ = ShmFabric::now_ns();
  peers_.resize(self_.members());
  for (Rank rank = 0; rank < size(); ++rank) {
    peers_[rank].name = self_.names[rank];
    open_door(rank, std::move(attachment.links[rank]));
  }
  if (!listen_for(listener_.get(), kListenerTag) || !listen_for(bell_.get(), kBellTag) ||
      !listen_for(alarm_.get(), kAlarmTag))
    throw Error("watching the doorbell and the timer of group '" + group_ +
                "' failed: " + error_text(errno));
  attend_soon();
}

void ShmFabric::open_door(Rank rank, Link link) {
  if (rank == rank_)
    link.bell = Descriptor(checked(fcntl(bell_.get(), F_DUPFD_CLOEXEC, 0), "copying a descriptor"));
  Contact& contact = contacts_[rank];
  contact.link = std::move(link);
  if (!contact.link.base) return fail_soon(rank, "it died while the group was forming");
  doors_[rank].base = reinterpret_cast<BaseSegment*>(contact.link.base->memory().data());
  doors_[rank].bell = contact.link.bell.get();
  doors_[rank].needs_fence = contact.link.needs_fence;
  if (contact.link.silence_timeout_ms != 0)
    beat_interval_ns_ = std::min(beat_interval_ns_, contact.link.silence_timeout_ms * kNsPerMs / 4);
  if (rank != rank_ && !listen_for(contact.link.socket.get(), rank))
    throw Error("watching " + who(rank) + " failed: " + error_text(errno));
}

ShmFabric::~ShmFabric() {
  if (!in_own_process()) return;
  Packet goodbye;
  goodbye.type = PacketType::leave;
  for (Contact& contact : contacts_) {
    if (!contact.link.socket) continue;
    static_cast<void>(send_packet(contact.link.socket.get(), goodbye));
    shutdown(contact.link.socket.get(), SHUT_RDWR);  // even if a child process holds it open
  }
}

bool ShmFabric::connected(Rank peer, RegionId region) const noexcept {
  return peer < size() && region.index < kMaxRegions &&
         remotes_[peer * kMaxRegions + region.index].bytes != 0;
}

}  // namespace dunlin::shm
