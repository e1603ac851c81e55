#include "cluster/secret.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <sys/random.h>

#include "command.hpp"
#include "fabric/private_file.hpp"

namespace dunlin::app {
namespace {

constexpr std::size_t kLeastBytes = 16;
constexpr std::size_t kMostBytes = 4096;

}  // namespace

std::string read_secret(const std::string& option, const std::string& file) {
  std::string secret;
  try {
    secret = read_private_file(file, option, kMostBytes);
  } catch (const Error& error) {
    throw BadInput(error.what());
  }
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() < kLeastBytes || secret.size() > kMostBytes) {
    throw BadInput(fmt::format("{}: a secret has {} to {} bytes; a good one: openssl rand -hex 32",
                               option, kLeastBytes, kMostBytes));
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
