#include "group_name.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::app {

std::string fresh_group(std::string_view what) {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) {
    throw Error(fmt::format("getrandom: {}", std::strerror(errno)));
  }
  return fmt::format("{}-{}-{:016x}", what, getpid(), random);
}

}  // namespace dunlin::app
