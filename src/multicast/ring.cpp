#include "multicast/ring.hpp"

#include "assert.hpp"

namespace dunlin::multicast {

std::uint64_t RingCursor::pass_to_record(std::uint64_t real) noexcept {
  // A ring has no more records than this, unless a peer has spoilt it (MC-R3).
  for (std::size_t left = shape_.bytes / kWordBytes; left > 0 && slots_ < real; --left) {
    const std::size_t place = shape_.place(position_);
    header_ = RecordHeader::load(shape_.memory + place);
    if (header_.length < RecordHeader::kOnlyNulls) return slots_ + header_.nulls;
    const bool skip = header_.length == RecordHeader::kSkip;
    position_ += skip ? shape_.bytes - place : kWordBytes;
    slots_ += skip ? 0 : header_.nulls;
  }
  return kNoSlot;
}

bool RingWriter::has_room(std::size_t message_bytes) const noexcept {
  if (message_bytes > shape_.most_message_bytes()) return false;
  if (window_ != 0 && in_use() >= window_) return false;
  const std::size_t bytes = shape_.record_bytes(message_bytes);
  return room_for(skip_before(bytes) + bytes);
}

std::byte* RingWriter::prepare(std::size_t message_bytes) noexcept {
  prepared_.reset();
  if (!has_room(message_bytes)) return nullptr;
  const std::size_t skip = skip_before(shape_.record_bytes(message_bytes));
  prepared_ = {.bytes = message_bytes, .skip = skip};
  return shape_.memory + (skip == 0 ? shape_.place(head_) : 0) + kWordBytes;
}

std::size_t RingWriter::commit(bool continues) noexcept {
  if (!prepared_) return 0;
  if (prepared_->skip != 0) {
    RecordHeader{RecordHeader::kSkip, 0}.store(shape_.memory + shape_.place(head_));
    head_ += prepared_->skip;
  }
  const std::size_t bytes = prepared_->bytes;
  const auto length = static_cast<std::uint32_t>(bytes);
  RecordHeader{length | (continues ? RecordHeader::kContinues : 0),
               static_cast<std::uint32_t>(taken_ - real_)}
      .store(shape_.memory + shape_.place(head_));
  DUNLIN_ASSERT(taken_ - real_ <= UINT32_MAX, "MC-R1: a record counts the nulls before it");
  DUNLIN_ASSERT(shape_.place(head_) % kWordBytes == 0, "MC-R1: a record begins at a multiple of 8");
  DUNLIN_ASSERT(shape_.place(head_) + shape_.record_bytes(bytes) <= shape_.bytes,
                "MC-R1: a record never wraps");
  head_ += shape_.record_bytes(bytes);
  ++records_;
  real_ = ++taken_;
  prepared_.reset();
  return bytes;
}

std::uint64_t RingWriter::pass_to(std::uint64_t slot) noexcept {
  const std::uint64_t before = taken_;
  while (taken_ < slot) {
    const std::uint64_t left = real_ + UINT32_MAX - taken_;
    taken_ += slot - taken_ < left ? slot - taken_ : left;
    if (taken_ == slot || prepared_ || !room_for(kWordBytes)) break;
    write_nulls();
  }
  return taken_ - before;
}

/// Writes a record of nulls only, as a record counts at most 2^32 - 1 nulls before it.
void RingWriter::write_nulls() noexcept {
  DUNLIN_ASSERT(!prepared_, "MC-R1: nothing is written between prepare() and commit()");
  RecordHeader{RecordHeader::kOnlyNulls, static_cast<std::uint32_t>(taken_ - real_)}.store(
      shape_.memory + shape_.place(head_));
  head_ += kWordBytes;
  real_ = taken_;
}

}  // namespace dunlin::multicast
