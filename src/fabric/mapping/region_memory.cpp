#include "fabric/mapping/region_memory.hpp"

#include <optional>
#include <utility>

#include <sys/mman.h>

namespace dunlin::mapping {

RegionMemory::RegionMemory(const MappingInfo& info) {
  try {
    segment_ = std::make_shared<const OwnMapping>(create_mapping(info, std::nullopt));
    memory_ = segment_->mapping->memory();
    return;
  } catch (const Error&) {
    // Peers reach the memory all the same; only tools do not.
  }
  void* const at =
      mmap(nullptr, info.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    throw Error("no memory for " + std::to_string(info.bytes) + " bytes: " + error_text(errno));
  memory_ = {static_cast<std::byte*>(at), info.bytes};
}

RegionMemory::RegionMemory(std::shared_ptr<const OwnMapping> segment)
    : segment_(std::move(segment)), memory_(segment_->mapping->memory()) {}

RegionMemory::~RegionMemory() {
  if (!segment_) munmap(memory_.data(), memory_.size());
}

}  // namespace dunlin::mapping
