#include "support/own_hosts_file.hpp"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include "fabric/system.hpp"

namespace dunlin::test {

std::optional<std::string> give_own_hosts_file(const std::string& content) {
  const auto failed = [](const char* what) { return what + (": " + error_text(errno)); };
  if (unshare(CLONE_NEWNS) != 0) return failed("no mount name space of its own");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return failed("the mounts cannot be made private");
  std::string path = testing::TempDir() + "hosts-XXXXXX";
  const Descriptor file(mkstemp(path.data()));
  std::ofstream(path) << content;
  std::optional<std::string> fault;
  if (mount(path.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0)
    fault = failed("no /etc/hosts of its own");
  unlink(path.c_str());
  return fault;
}

}  // namespace dunlin::test
