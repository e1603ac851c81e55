#include "fabric/mapping/process_registry.hpp"

#include <utility>

#include <sys/random.h>
#include <unistd.h>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::mapping {
namespace {

std::uint64_t random_incarnation() {
  std::uint64_t number = 0;
  checked(static_cast<int>(getrandom(&number, sizeof number, 0)), "drawing a random number");
  return number | 1;
}

MappingInfo base_of(MappingInfo member) {
  member.kind = MappingKind::base;
  member.owner_pid = static_cast<std::uint32_t>(getpid());
  member.owner_uid = geteuid();
  member.incarnation = random_incarnation();
  member.bytes = sizeof(Base);
  return member;
}

}  // namespace

ProcessRegistry::ProcessRegistry(MappingInfo member)
    : member_(base_of(std::move(member))),
      memory_(member_),
      base_(reinterpret_cast<Base*>(memory_.memory().data())) {}

MappingInfo ProcessRegistry::segment(MappingKind kind, const RegionSpec& spec) const {
  MappingInfo info = member_;
  info.kind = kind;
  info.generation = spec.generation;
  info.layout_hash = spec.layout_hash;
  info.bytes = spec.bytes;
  info.region = spec.name;
  info.layout_text = spec.layout_text;
  return info;
}

void ProcessRegistry::publish_poll(std::uint64_t now_ns) noexcept {
  memory::store(base_->last_watch_ns, now_ns);
}

void ProcessRegistry::publish_asleep(bool asleep) noexcept {
  if (std::exchange(asleep_, asleep) == asleep) return;
  memory::store(base_->sleeping, asleep ? 1U : 0U);
}

void ProcessRegistry::publish_failed(Rank peer) noexcept {
  if (peer >= kMarkWords * 64) return;  // there is no mark for this newcomer
  memory::fetch_or(&base_->failed_peers[peer / 64], std::uint64_t{1} << peer % 64);
}

}  // namespace dunlin::mapping
