#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/eventfd.h>

#include "fabric/shm/peer_discovery.hpp"

namespace dunlin::shm {
namespace {

/// A killed process holds its address until the kernel has torn it down, and some time passes until
/// it is seen to be dying.
constexpr std::uint64_t kGraceForTheDyingNs = 250'000'000;
constexpr std::uint64_t kRetryNs = 5'000'000;
constexpr std::uint64_t kNsPerMs = 1'000'000;
/// Descriptors of a fabric itself, besides those for members and regions.
constexpr std::uint64_t kOwnDescriptors = 32;

/// Whether the kernel is tearing the process down (PF_EXITING, a flag that /proc shows).
bool is_exiting(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line) || line.rfind(')') == std::string::npos) return false;
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 9; ++field) fields >> skipped;
  std::uint64_t flags = 0;
  constexpr std::uint64_t kExiting = 4;
  return fields >> flags && (flags & kExiting) != 0;
}

}  // namespace

PeerDiscovery::PeerDiscovery(const JoinOptions& options)
    : self_(identity_from(options)),
      access_(access_for(options.access_group)),
      timeout_ms_(options.join_ms()),
      deadline_ns_(read_clock_ns(CLOCK_MONOTONIC) + timeout_ms_ * kNsPerMs),
      wanted_(wanted_ranks(self_)),
      grace_until_ns_(std::min(read_clock_ns(CLOCK_MONOTONIC) + kGraceForTheDyingNs, deadline_ns_)),
      links_(self_.members()),
      notes_(self_.members()),
      probes_(self_.members()) {
  const std::uint64_t of_members = 4 * self_.members() + kOwnDescriptors;
  ensure_descriptors(of_members, of_members + 2 * kMaxRegions, self_.members());
}

/// Claims the rank's address; false if that must be tried again.
bool PeerDiscovery::claim_rank() {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  if (now_ns < next_claim_ns_) return false;
  if (claim_one_of_those_wanted()) {
    deadline_ns_ = now_ns + timeout_ms_ * kNsPerMs;
    make_base();
    agreement_.emplace(self_.rank, self_.incarnation, self_.members());
    return true;
  }
  if (now_ns >= grace_until_ns_) outlast_the_dying(now_ns);
  next_claim_ns_ = now_ns + kRetryNs;
  return false;
}

/// Waits for dying holders: the kernel frees a process's memory before it closes its sockets, which
/// takes some 100 ms a gigabyte.
void PeerDiscovery::outlast_the_dying(std::uint64_t now_ns) {
  if (!holders_) {
    holders_.emplace();
    for (const Rank rank : wanted_)
      if (const auto socket = shm::connect_to(address_of(access_, self_.group, rank)))
        holders_->push_back(counterpart_of(*socket, access_).pid);
  } else if (!some_are_dying_ || now_ns >= deadline_ns_) {
    throw_taken();
  }
  // Once no holder is dying, its place may be free.
  some_are_dying_ = std::any_of(holders_->begin(), holders_->end(), is_exiting);
}

/// Claims a wanted rank. It examines the holder of a name only when the dying have had their time.
bool PeerDiscovery::claim_one_of_those_wanted() {
  const Holder holder =
      read_clock_ns(CLOCK_MONOTONIC) < grace_until_ns_ ? Holder::is_trusted : Holder::is_examined;
  for (const Rank rank : wanted_) {
    std::optional<Descriptor> listener = claim(address_of(access_, self_.group, rank), holder);
    if (!listener) continue;
    listener_ = std::move(*listener);
    self_.rank = rank;
    return true;
  }
  return false;
}

void PeerDiscovery::throw_taken() const {
  std::string holders;
  for (const Rank rank : wanted_) {
    const std::optional<Descriptor> socket =
        shm::connect_to(address_of(access_, self_.group, rank));
    if (!holders.empty()) holders += ", ";
    holders += self_.who(rank) + " by ";
    const Counterpart holder = socket ? counterpart_of(*socket, access_) : Counterpart{};
    if (!socket)
      holders += "an unknown process";
    else
      holders += holder.admitted ? "pid " + std::to_string(holder.pid) : stranger(holder);
  }
  const std::string all = wanted_.size() > 1 ? "all its ranks are taken" : "this place is taken";
  const std::string other_list = self_.names_hash == 0
                                     ? ""
                                     : "; or, if it is a member of another name, give all of them "
                                       "the same names in the same order";
  throw Error(group_text() + " is already running, or others are forming it: " + all + " (" +
              holders + "). Stop those processes first, or choose another group name" + other_list);
}

void PeerDiscovery::make_base() {
  bell_ = Descriptor(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "making a doorbell"));
  base_ = shm::make_base(self_, access_, self_.members());
  Link& own = links_[self_.rank];
  own.base = base_.mapping;
  own.pid = getpid();
  own.incarnation = self_.incarnation;
  own.silence_timeout_ms = self_.silence_timeout_ms;
  own.needs_fence = !self_.has_barriers;
}

}  // namespace dunlin::shm
