#include "cluster/secret.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "command.hpp"
#include "routing/text.hpp"

namespace dunlin::app {
namespace {

constexpr std::size_t kLeastBytes = 16;
constexpr std::size_t kMostBytes = 4096;

}  // namespace

std::string read_secret(const std::string& option, const std::string& file) {
  const std::string place = fmt::format("{} {}", option, routing::in_quotes(file));
  struct stat status {};
  std::ifstream in(file, std::ios::binary);
  if (!in || stat(file.c_str(), &status) != 0) {
    throw BadInput(fmt::format("{}: {}", place, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    throw BadInput(fmt::format("{}: it is no file", place));
  }
  std::string secret;
  for (std::istreambuf_iterator<char> at(in), end; at != end && secret.size() <= kMostBytes; ++at) {
    secret += *at;
  }
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() < kLeastBytes || secret.size() > kMostBytes) {
    throw BadInput(fmt::format("{}: a secret has {} to {} bytes; a good one: openssl rand -hex 32",
                               place, kLeastBytes, kMostBytes));
  }
  return secret;
}

std::string random_secret() {
  std::array<std::uint64_t, 4> random{};
  if (getrandom(random.data(), sizeof random, 0) != sizeof random) {
    throw Error(fmt::format("getrandom: {}", std::strerror(errno)));
  }
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", random[0], random[1], random[2], random[3]);
}

}  // namespace dunlin::app
