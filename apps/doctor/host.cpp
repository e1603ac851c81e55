#include "doctor/host.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <sstream>

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/membarrier.h>
#include <net/if.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dunlin/join.hpp>

namespace dunlin::doctor {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") + 1 - first);
}

std::optional<Space> shm_space() {
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0) return std::nullopt;
  // As segments are made: without a name, so nothing is left.
  const int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  const int error = file < 0 ? errno : 0;
  const bool of_the_place = error != ENOSPC && error != EMFILE && error != ENFILE;
  if (file >= 0) close(file);
  return Space{space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize,
               of_the_place ? error : 0};
}

std::vector<Interface> interfaces() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(all, &freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const Interface& old) { return old.name == one->ifa_name; });
    if (known) continue;
    found.push_back({.name = one->ifa_name,
                     .up = (one->ifa_flags & IFF_UP) != 0,
                     .loopback = (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

bool has_barriers() {
  const long commands = syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
}

}  // namespace

std::optional<std::string> Host::text(const std::string& path) const {
  std::ifstream file(root / path);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf())) return std::nullopt;
  return trimmed(content.str());
}

std::optional<std::string> Host::line(const std::string& path, const std::string& beginning) const {
  std::ifstream file(root / path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(beginning)) return trimmed(line.substr(beginning.size()));
  return std::nullopt;
}

bool Host::exists(const std::string& path) const {
  std::error_code error;
  return std::filesystem::exists(root / path, error);
}

std::vector<std::string> Host::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(root / folder, error), end; !error && at != end;
       at.increment(error))
    names.push_back(at->path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

Host this_host() {
  return {.root = "/",
          .shm_space = shm_space,
          .has_barriers = has_barriers,
          .has_tcp = DUNLIN_HAS_TCP,
          .has_ofi = DUNLIN_HAS_OFI,
          .has_verbs = DUNLIN_HAS_VERBS,
          .interfaces = interfaces,
          .addresses = [] { return devices_of("tcp"); },
          .ranking = [] { return devices_of("auto"); },
          .networks = [] { return devices_of("ofi"); },
          .unfit_networks = [] { return unfit_devices_of("ofi"); }};
}

}  // namespace dunlin::doctor
