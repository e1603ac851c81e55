#include "fabric/shm/fence.hpp"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/shm/shm_backend.hpp"

/// A peer can change memory that it has mapped as long as its process exists: so the process must
/// end.
namespace dunlin::shm {
namespace {

constexpr int kPeerProcess = 77;  // SO_PEERPIDFD, which the headers of Linux 6.1 do not know
constexpr std::uint64_t kPatienceNs = 100'000'000;
constexpr std::uint64_t kPatienceWithLeaversNs = 10'000'000'000;

}  // namespace

Descriptor process_behind(int connection, pid_t pid) {
  if (pid <= 0 || pid == getpid()) return {};
  int process = -1;
  socklen_t bytes = sizeof process;
  if (getsockopt(connection, SOL_SOCKET, kPeerProcess, &process, &bytes) == 0)
    return Descriptor(process);
  if (errno != ENOPROTOOPT) return {};  // the process has ended
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

/// Kills the peer's process. Its descriptor is readable once the last thread has ended; the memory
/// is gone by then. A peer that was expelled and did not fail, such as a member that leaves its
/// group, has time to part by itself.
Fenced ShmBackend::fence(Rank peer) noexcept {
  const Contact& contact = contacts_[peer];
  if (contact.parting) hear_last_word(peer);
  if (core().touches_nothing(peer)) return Fenced::yes;
  const std::uint64_t patience = core().leaves(peer) ? kPatienceWithLeaversNs : kPatienceNs;
  if (contact.parting && now_ns() < contact.parted_ns + patience) return Fenced::not_yet;
  const pid_t pid = contact.link.pid;
  if (!contact.process) {
    const bool seen = pid > 0 && pid != getpid();
    return seen && kill(pid, 0) != 0 && errno == ESRCH ? Fenced::yes : Fenced::never;
  }
  pollfd ended{.fd = contact.process.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, 0) == 1) return Fenced::yes;
  const long killed = syscall(SYS_pidfd_send_signal, contact.process.get(), SIGKILL, nullptr, 0);
  const bool was_alive = !contact.hung_up;  // otherwise its process was ending already
  if (killed == 0 && was_alive) core().on_killed(peer, pid, now_ns() - contact.parted_ns);
  return killed == 0 || errno == ESRCH ? Fenced::not_yet : Fenced::never;
}

}  // namespace dunlin::shm
