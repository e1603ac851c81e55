#include "bench/topic/roudi.hpp"

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "process/pipe.hpp"
#include "process/program.hpp"

namespace dunlin::bench {
namespace {

constexpr const char* kName = "iox-roudi";
constexpr std::string_view kReady = "ready for clients";
constexpr int kPatienceMs = 20'000;

/// For this process and its children.
void mount_own_memory() {
  checked(::unshare(CLONE_NEWNS), "unshare");
  checked(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount");
  for (const char* const place : {"/dev/shm", "/tmp"})
    checked(::mount("tmpfs", place, "tmpfs", 0, "mode=1777"), "mount");
}

bool can_mount() {
  process::Child trial([] {
    try {
      mount_own_memory();
    } catch (const Error&) {
      return 1;
    }
    return 0;
  });
  return trial.wait().well();
}

int become_daemon(const Descriptor& output) {
  mount_own_memory();
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    checked(::dup2(output.get(), stream), "dup2");
  ::execlp(kName, kName, "--monitoring-mode", "off", nullptr);
  throw Error(std::string("bench: cannot start ") + kName + ": " + error_text(errno));
}

}  // namespace

std::string RouDi::missing() {
  const std::string what = "Cyclone DDS was not measured with shared memory: ";
  if (!process::program_exists(kName)) return what + "there is no iox-roudi (Debian: iceoryx)";
  return can_mount() ? "" : what + "the daemon gets no /dev/shm of its own; be root";
}

RouDi::RouDi() {
  process::Pipe pipe = process::make_pipe();
  daemon_ = process::Child([&] { return become_daemon(pipe.in); });
  pipe.in.close();
  output_ = std::move(pipe.out);
  std::string said;
  while (said.find(kReady) == std::string::npos) {
    pollfd readable{.fd = output_.get(), .events = POLLIN, .revents = 0};
    std::array<char, 4'096> part{};
    if (::poll(&readable, 1, kPatienceMs) <= 0)
      throw Error(std::string("bench: ") + kName + " is not ready, but says: " + said);
    const ssize_t got = ::read(output_.get(), part.data(), part.size());
    if (got <= 0) throw Error(std::string("bench: ") + kName + " has ended: " + said);
    said.append(part.data(), static_cast<std::size_t>(got));
  }
}

void RouDi::enter() const {
  const std::string mounts = "/proc/" + std::to_string(daemon_.pid()) + "/ns/mnt";
  const Descriptor space(checked(::open(mounts.c_str(), O_RDONLY | O_CLOEXEC), "open"));
  checked(::setns(space.get(), CLONE_NEWNS), "setns");
}

}  // namespace dunlin::bench
