#include "cluster/secret.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <sys/random.h>

#include <dunlin/error.hpp>

namespace dunlin::app {

std::string random_secret() {
  std::array<std::uint64_t, 4> random{};
  if (getrandom(random.data(), sizeof random, 0) != sizeof random) {
    throw Error(fmt::format("getrandom: {}", std::strerror(errno)));
  }
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", random[0], random[1], random[2], random[3]);
}

}  // namespace dunlin::app
