#include "registered.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::python {

SharedPages::SharedPages(std::span<std::byte> memory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  const std::size_t bytes = round_up(before + memory.size(), page);
  // With an old size of 0, mremap maps shared pages once more (mremap(2)).
  void* const at = mremap(memory.data() - before, 0, bytes, MREMAP_MAYMOVE);
  if (at == MAP_FAILED)
    throw Error("memory: cannot map " + std::to_string(memory.size()) + " bytes for Python: " +
                std::strerror(errno) + "; /dev/shm may have no room for them");
  pages_ = {static_cast<std::byte*>(at), bytes};
  memory_ = pages_.subspan(before, memory.size());
}
SharedPages::~SharedPages() { munmap(pages_.data(), pages_.size()); }

std::unique_ptr<SharedPages> RegisteredMemories::allocate(std::size_t bytes) {
  Region region = engine_.fabric().allocate({.name = "python/memory", .bytes = bytes});
  engine_.fabric().announce(region, {});  // this registers it; no peer reaches it
  auto pages = std::make_unique<SharedPages>(region.memory());
  const std::lock_guard lock(mutex_);
  regions_.emplace(pages->memory().data(), std::move(region));
  return pages;
}

void RegisteredMemories::release(const SharedPages& pages) noexcept {
  const std::lock_guard lock(mutex_);
  regions_.erase(pages.memory().data());
}

std::span<std::byte> RegisteredMemories::registered(std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  auto behind = regions_.upper_bound(bytes.data());
  if (behind == regions_.begin()) return bytes;
  const auto& [begin, region] = *--behind;
  const auto at = static_cast<std::size_t>(bytes.data() - begin);
  const std::size_t whole = region.memory().size();
  if (at > whole || bytes.size() > whole - at) return bytes;
  return region.memory().subspan(at, bytes.size());
}

void RegisteredMemories::end() noexcept {
  const std::lock_guard lock(mutex_);
  regions_.clear();
}

RegisteredMemory::RegisteredMemory(std::shared_ptr<node::Engine> engine,
                                   std::shared_ptr<RegisteredMemories> all, std::size_t bytes)
    : engine_(std::move(engine)), all_(std::move(all)) {
  pages_ = engine_->with_lock([&] { return all_->allocate(bytes); });
}

RegisteredMemory::~RegisteredMemory() {
  try {
    engine_->with_lock([&] { all_->release(*pages_); });
  } catch (const Error&) {
    // The node has ended, and its registrations with it.
  }
}

}  // namespace dunlin::python
