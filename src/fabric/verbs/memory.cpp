#include <algorithm>

#include <sys/mman.h>
#include <sys/resource.h>

#include "fabric/verbs/verbs_transport.hpp"

/// Registers memory that devices may touch, each piece with the least rights. No ordering is
/// relaxed, because the memory is polled.
namespace dunlin::verbs {
namespace {

std::string locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "none";
  return std::to_string(limit.rlim_cur) + " bytes";
}

}  // namespace

void FreePages::operator()(std::byte* pages) const noexcept { munmap(pages, bytes); }

Memory VerbsTransport::register_memory(std::span<std::byte> memory, int rights,
                                       const char* what) const {
  ibv_mr* const registration = ibv_reg_mr(domain_.get(), memory.data(), memory.size(), rights);
  if (registration != nullptr) return Memory(registration);
  throw Error("registering " + std::to_string(memory.size()) + " bytes (" + what + ") with " +
              network_.place.device + " failed: " + error_text(errno) +
              "; the limit of locked memory is " + locked_memory_limit() +
              ", and is raised by 'ulimit -l unlimited' as root, or LimitMEMLOCK=infinity of "
              "systemd");
}

/// Opens whole words, because reads fetch whole words (the pages are ours to their end).
stream::Key VerbsTransport::open(std::span<std::byte> memory) {
  int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (abilities_.atomics) rights |= IBV_ACCESS_REMOTE_ATOMIC;
  const std::span<std::byte> words(memory.data(), stream::whole_words(memory.size()));
  opened_.push_back({memory, register_memory(words, rights, "a region")});
  return {reinterpret_cast<std::uintptr_t>(memory.data()), opened_.back().registration->rkey};
}

void VerbsTransport::close(std::span<std::byte> memory) noexcept {
  std::erase_if(opened_, [&](const Opened& one) { return one.memory.data() == memory.data(); });
}

const VerbsTransport::Opened* VerbsTransport::opened(const void* from,
                                                     std::size_t bytes) const noexcept {
  const auto* const first = static_cast<const std::byte*>(from);
  const auto found = std::find_if(opened_.begin(), opened_.end(), [&](const Opened& one) {
    const std::byte* const end = one.memory.data() + one.memory.size();
    return first >= one.memory.data() && first <= end &&
           bytes <= static_cast<std::size_t>(end - first);
  });
  return found == opened_.end() ? nullptr : &*found;
}

}  // namespace dunlin::verbs
