#include <sys/random.h>

#include <dunlin/fabric/rendezvous.hpp>

#include "fabric/system.hpp"

namespace dunlin {

bool Rendezvous::has_later_members(std::uint32_t /*founders*/) { return false; }

std::array<std::byte, kAdmissionKeyBytes> Rendezvous::new_key() {
  std::array<std::byte, kAdmissionKeyBytes> key{};
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    throw Error("drawing a random key failed: " + error_text(errno));
  return key;
}

}  // namespace dunlin
