#include "container/piece_values.hpp"

#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"

/// Scans of maps with a pool.
namespace dunlin::container {

using remote::Status;

void PieceValues::begin() noexcept {
  std::fill(values_.begin(), values_.end(), Value{});
  batch_.clear();
  lines_ = posted_ = 0;
}

/// A block that is freed is in no slot any more: the same reference again is damage.
bool PieceValues::want(std::uint32_t place, const ValueReference& reference) noexcept {
  Value& value = values_[place];
  if (!pool_.is_sound(reference) || reference.stamp == value.reference.stamp) return false;
  value.reference = reference;
  value.line = lines_;
  lines_ += lines_for(block_shape(reference.bytes).slot_bytes);
  batch_.push_back(place);
  return true;
}

void PieceValues::begin_batch() noexcept {
  if (blocks_.size() < lines_) blocks_.resize(lines_);
  posted_ = 0;
}

std::byte* PieceValues::at(const Value& value) noexcept {
  return std::as_writable_bytes(std::span(blocks_)).data() + value.line * kCacheLineBytes;
}

std::optional<PieceValues::Block> PieceValues::next() noexcept {
  if (posted_ == batch_.size()) return std::nullopt;
  const std::uint32_t place = batch_[posted_];
  return Block{place, values_[place].reference, at(values_[place])};
}

std::vector<std::uint32_t> PieceValues::end_batch() noexcept {
  std::vector<std::uint32_t> stale;
  for (const std::uint32_t place : batch_) {
    Value& value = values_[place];
    value.is_read = is_block_of(value.reference, at(value));
    if (!value.is_read) stale.push_back(place);
  }
  batch_.clear();
  return stale;
}

std::span<const std::byte> PieceValues::value(std::uint32_t place) noexcept {
  const Value& value = values_[place];
  if (content_.size() < value.reference.bytes) content_.resize(value.reference.bytes);
  decode(block_shape(value.reference.bytes), at(value), 0, value.reference.bytes, content_.data());
  return std::span(content_).first(value.reference.bytes);
}

void MapScan::ValuesDeleter::operator()(PieceValues* values) const noexcept { delete values; }

/// The blocks of all elements that were found, in one batch; then the slots again whose blocks have
/// been used anew since. Whether the next step can follow at once.
bool MapScan::read_values() noexcept {
  PieceValues& values = *values_;
  if (!values.has_batch()) {
    std::erase_if(found_, [&](std::uint32_t place) {
      if (values.is_read(place)) return false;
      const std::byte* const slot =
          std::as_bytes(std::span(window_)).data() + std::size_t{place} * map_.shape.slot_bytes;
      decode(map_.shape, slot, 0, map_.shape.payload_bytes, payload_.data());
      const auto reference = reference_in(payload_.data() + map_.spec.key_bytes);
      if (!reference || values.want(place, *reference)) return false;
      half_ = true;
      return true;
    });
    values.begin_batch();
  }
  while (const auto block = values.next()) {
    if (home_ == hub_.fabric.rank()) {
      static_cast<void>(values.pool().fetch_own(block->reference, block->to));
    } else {
      const Operation get =
          dunlin::read(home_, values.pool().slabs().region(), block->reference.offset, block->to,
                       block_shape(block->reference.bytes).slot_bytes)
              .notify(completion_);
      const Site::Posted posted = map_.first.site.post(home_, std::span(&get, 1), posted_);
      if (posted == Site::Posted::later) return false;
      if (posted == Site::Posted::never) {
        hub_.fabric.abandon(completion_);
        finish(Status::lost);
        return false;
      }
    }
    values.posted();
  }
  if (!completion_.finished()) return false;
  const std::vector<std::uint32_t> stale = values.end_batch();
  for (const std::uint32_t place : stale) {
    std::erase(found_, place);
    pending_.push_back(place);
  }
  stage_ = stale.empty() ? Stage::count : Stage::reread;
  return true;
}

std::span<const std::byte> MapScan::value_of(std::size_t i) noexcept {
  const std::uint32_t place = found_[i];
  if (values_->is_read(place)) return values_->value(place);
  return value_in(payload_of(i) + map_.spec.key_bytes, map_.spec.value_bytes);
}

}  // namespace dunlin::container
