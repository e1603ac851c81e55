#include "support/private_shm.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

namespace dunlin::test {

std::optional<std::string> mount_private_shm(std::uint64_t bytes) {
  const auto failed = [](const char* what) {
    return std::string(what) + ": " + std::system_category().message(errno);
  };
  if (unshare(CLONE_NEWNS) != 0) return failed("no mount name space of its own");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return failed("the mounts cannot be made private");
  const std::string options = "size=" + std::to_string(bytes);
  if (mount("tmpfs", "/dev/shm", "tmpfs", 0, options.c_str()) != 0)
    return failed("no tmpfs of its own");
  return std::nullopt;
}

std::uint64_t free_shm_bytes() {
  struct statvfs space {};
  statvfs("/dev/shm", &space);
  return space.f_bavail * space.f_frsize;
}

std::string list_shm() {
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    names += entry.path().filename().string() + "\n";
  return names;
}

}  // namespace dunlin::test
