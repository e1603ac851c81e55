#include "log/segment.hpp"

#include <algorithm>

namespace dunlin::log {

std::span<const std::byte> Window::view(std::uint64_t offset, std::size_t bytes) {
  const auto here = [&] { return offset >= start_ && offset + bytes <= start_ + buffer_.size(); };
  if (offset >= bytes_) return {};
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, bytes_ - offset));
  if (!here()) {
    buffer_.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(std::max(bytes, piece_bytes_), bytes_ - offset)));
    start_ = offset;
    buffer_.resize(file_.read(offset, buffer_));
    if (!here()) bytes = buffer_.size();
  }
  return std::span(buffer_).subspan(static_cast<std::size_t>(offset - start_), bytes);
}

/// None unless the header's check fits.
std::optional<RecordHeader> SegmentCursor::header_at(std::uint64_t offset) {
  const std::span<const std::byte> bytes = window_.view(offset, RecordHeader::kBytes);
  if (bytes.size() < RecordHeader::kBytes) return std::nullopt;
  const RecordHeader header = RecordHeader::read(bytes.data());
  if (header.check != header.check_over(check_seed_)) return std::nullopt;
  return header;
}

/// None unless the header's check fits, and the payload fits the header's chain.
std::optional<RecordHeader> SegmentCursor::whole_at(std::uint64_t offset) {
  const std::optional<RecordHeader> header = header_at(offset);
  if (!header) return std::nullopt;
  const auto padded = static_cast<std::size_t>(padded_bytes(header->bytes));
  const std::span<const std::byte> payload = window_.view(offset + RecordHeader::kBytes, padded);
  if (payload.size() < padded || header->chain != header->chain_over(payload)) return std::nullopt;
  return header;
}

std::optional<Record> SegmentCursor::next() {
  const std::optional<RecordHeader> header = whole_at(offset_);
  if (!header || header->number != number_ || header->previous != chain_) return std::nullopt;
  const std::span<const std::byte> payload =
      window_.view(offset_ + RecordHeader::kBytes, header->bytes);
  offset_ += RecordHeader::kBytes + padded_bytes(header->bytes);
  chain_ = header->chain;
  return Record{number_++, header->kind, payload};
}

/// A header whose check fits says where its payload ends. The payload is passed over, because a
/// message may hold records of this very log.
std::optional<std::uint64_t> SegmentCursor::find_later_commit() {
  std::uint64_t at = offset_;
  while (at + RecordHeader::kBytes <= window_.bytes()) {
    const std::optional<RecordHeader> header = header_at(at);
    if (!header) {
      at += RecordHeader::kAlignment;
      continue;
    }
    if (header->number > number_ && header->number - header->place > number_ && whole_at(at))
      return at;
    at += RecordHeader::kBytes + padded_bytes(header->bytes);
  }
  return std::nullopt;
}

}  // namespace dunlin::log
