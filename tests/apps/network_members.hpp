#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "apps/multicast_member.hpp"
#include "support/fresh_group.hpp"

/// What members of `dunlin multicast` on a network have in common, and the file with their secret.
namespace dunlin::test {

class NetworkMembers {
 public:
  /// Without a silence timeout only the ends of processes are noticed.
  explicit NetworkMembers(std::string fabric, std::string silence_timeout = "0")
      : fabric_(std::move(fabric)), silence_timeout_(std::move(silence_timeout)) {
    std::ofstream(secret_) << "one of sixteen bytes or more\n";
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
  }
  NetworkMembers(const NetworkMembers&) = delete;
  NetworkMembers& operator=(const NetworkMembers&) = delete;
  ~NetworkMembers() {
    std::error_code ignored;
    std::filesystem::remove(secret_, ignored);
  }

  [[nodiscard]] const std::string& group() const noexcept { return group_; }
  [[nodiscard]] const std::string& secret_file() const noexcept { return secret_; }
  [[nodiscard]] Words words(const std::string& name, const Words& more) const {
    Words words{"--group",
                group_,
                "--name",
                name,
                "--fabric",
                fabric_,
                "--secret-file",
                secret_,
                "--silence-timeout",
                silence_timeout_,
                "--interval",
                "0",
                "--rate",
                "2000",
                "--digest-every",
                "500"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

 private:
  std::string fabric_;
  std::string silence_timeout_;
  std::string group_ = fresh_group();
  std::string secret_ = testing::TempDir() + "dunlin-secret-" + group_;
};

}  // namespace dunlin::test
