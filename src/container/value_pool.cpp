#include "container/value_pool.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/map.hpp"

/// The pool of a map's long values.
namespace dunlin::container {

namespace {

constexpr std::size_t kLeastSlabBytes = 16'384, kMostSlabBytes = 262'144;
constexpr std::size_t kSlabsOfAPool = 256;  // or fewer, so that a search for a free one is short

/// Each is the double or one and a half of one before, but for the last.
std::vector<std::size_t> block_sizes(std::uint32_t longest_value) {
  const std::size_t last = round_up(block_shape(longest_value).slot_bytes, kCacheLineBytes);
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = kCacheLineBytes; bytes < last; bytes *= 2) {
    sizes.push_back(bytes);
    if (bytes > kCacheLineBytes && bytes / 2 * 3 < last) sizes.push_back(bytes / 2 * 3);
  }
  sizes.push_back(last);
  return sizes;
}

/// At least some of the largest blocks without much rest.
std::size_t slab_bytes(const MapSpec& spec) {
  const std::size_t largest = block_sizes(spec.longest_value).back();
  const std::size_t wanted = std::clamp(round_up(spec.pool_bytes / kSlabsOfAPool, kCacheLineBytes),
                                        kLeastSlabBytes, kMostSlabBytes);
  return largest <= wanted / 4 ? wanted : round_up(wanted, largest);
}

remote::SlabPoolOptions options_of(const MapSpec& spec, bool has_part) {
  return {.name = "container:" + spec.name,
          .slab_bytes = slab_bytes(spec),
          .block_bytes = block_sizes(spec.longest_value),
          .own_bytes = has_part ? spec.pool_bytes : 0};
}

}  // namespace

std::uint32_t inline_bytes(std::uint32_t key_bytes, std::uint32_t wanted) noexcept {
  if (wanted != 0) return std::max(wanted, kReferenceBytes);
  const SlotShape shape = shape_of(std::size_t{key_bytes} + kLengthBytes + kReferenceBytes);
  return shape.lines * shape.line_payload - key_bytes - kLengthBytes;
}

std::span<const std::byte> value_in(const std::byte* cell, std::uint32_t cell_bytes) noexcept {
  std::uint16_t length = 0;
  std::memcpy(&length, cell, kLengthBytes);
  return {cell + kLengthBytes, std::min<std::size_t>(length, cell_bytes - kLengthBytes)};
}

bool is_block_of(const ValueReference& reference, const std::byte* image) noexcept {
  return word_at(image) == reference.stamp && is_whole(block_shape(reference.bytes), image);
}

void ValuePool::check(const MapSpec& spec) {
  const std::size_t least = slab_bytes(spec) + slab_bytes(spec) / 256 + kCacheLineBytes;
  if (spec.pool_bytes < least)
    throw Error("map '" + spec.name + "': the option pool_bytes must be at least " +
                std::to_string(least) + ", one slab, for values of up to " +
                std::to_string(spec.longest_value) + " bytes");
}

ValuePool::ValuePool(MapState& map)
    : map_(map),
      slabs_(map.hub.progress, options_of(map.spec, map.has_part())),
      rank_(map.self),
      protocols_(map.hub.progress) {
  map_.hub.progress.add(*this);
}

ValuePool::~ValuePool() { map_.hub.progress.remove(*this); }

remote::Progress& ValuePool::its_progress() const noexcept { return map_.hub.progress; }

bool ValuePool::is_sound(const ValueReference& reference) const noexcept {
  if (reference.bytes <= kReferenceBytes || reference.bytes > map_.spec.longest_value) return false;
  const auto size_class = slabs_.class_of(block_shape(reference.bytes).slot_bytes);
  return size_class && slabs_.is_block(reference.offset, *size_class, map_.spec.pool_bytes);
}

void ValuePool::free(Rank home, const ValueReference& reference) noexcept {
  if (!is_sound(reference)) return;
  free({home, *slabs_.class_of(block_shape(reference.bytes).slot_bytes), reference.offset});
}

void ValuePool::free(remote::SlabBlock block) noexcept {
  if (map_.hub.fabric.post(slabs_.free(block)).all()) return;
  DUNLIN_ASSERT(to_free_.size() < to_free_.capacity(), "CON-V5: to free a block needs no memory");
  to_free_.push_back(block);
  map_.hub.look_again_soon();
}

bool ValuePool::fetch(Rank home, const ValueReference& reference, std::byte* image) const noexcept {
  const std::size_t bytes = block_shape(reference.bytes).slot_bytes;
  const std::span<const std::byte> memory =
      home == rank_ ? slabs_.own_memory() : map_.hub.fabric.reach(home, slabs_.region());
  if (memory.size() < reference.offset + bytes) return false;
  memory::fetch(image, memory.data() + reference.offset, bytes);
  return is_block_of(reference, image);
}

bool ValuePool::resolve(Rank home, std::vector<std::byte>& room,
                        std::span<const std::byte>& value) const {
  const auto reference = reference_in(value.data());
  if (!reference) {
    value = value_in(value.data(), static_cast<std::uint32_t>(value.size()));
    return true;
  }
  if (!is_sound(*reference)) return false;
  const SlotShape shape = block_shape(reference->bytes);
  std::vector<CacheLine> image(shape.lines);
  std::byte* const to = std::as_writable_bytes(std::span(image)).data();
  if (!fetch(home, *reference, to)) return false;
  room.resize(reference->bytes);
  decode(shape, to, 0, reference->bytes, room.data());
  value = room;
  return true;
}

std::size_t ValuePool::poll_part() {
  std::size_t done = 0;
  while (!to_free_.empty()) {
    const remote::SlabBlock block = to_free_.back();
    std::size_t accepted = 0;
    const Operation free = slabs_.free(block);
    if (map_.first.site.post(block.home, std::span(&free, 1), accepted) == Site::Posted::later)
      break;
    to_free_.pop_back();
    ++done;
  }
  done += protocols_.advance(map_.hub.progress.was_stopped());
  return done;
}

remote::PoolUse pool_use(const MapCore& map) noexcept {
  return map.values() != nullptr ? map.values()->slabs().use() : remote::PoolUse{};
}

}  // namespace dunlin::container
