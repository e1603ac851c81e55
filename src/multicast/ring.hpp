#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <dunlin/fabric/memory.hpp>

/// A sender's ring of records, and the slots that they belong to. Pure: the caller carries the
/// memory to the readers. docs/multicast.md ("Memory") gives the bytes. One thread at a time.
///
///     RingWriter writer({memory, 1 << 20});
///     if (std::byte* at = writer.prepare(5)) {
///       std::memcpy(at, "hello", 5);
///       writer.commit();
///     }
///     RingCursor cursor({memory, 1 << 20});
///     while (cursor.next(writer.real()) != kNoSlot) use(cursor.take().message);
///
/// Invariants:
///  MC-R1  A position counts bytes and never goes back; its place is the position modulo the size.
///      A record begins at a multiple of 8 and never wraps.
///  MC-R2  Nothing is overwritten that a reader may look at, even if it is done with the freed
///      slots: the records that follow, and the skip before them.
///  MC-R3  A cursor reads a record only if `real` says that there is one, and never outside the
///      ring, whatever a peer has written there.
namespace dunlin::multicast {

inline constexpr std::uint64_t kNoSlot = UINT64_MAX;

/// Where a ring is and how records lie in it.
struct RingShape {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;       // a power of two
  std::size_t slot_bytes = 0;  // the least that a record takes; a multiple of 8

  [[nodiscard]] std::size_t record_bytes(std::size_t message_bytes) const noexcept {
    const std::size_t used = round_up(message_bytes, kWordBytes);
    const std::size_t all = used + kWordBytes;
    return all < slot_bytes ? slot_bytes : all;
  }
  /// The longest message of a record: the record takes at most a quarter of the ring.
  [[nodiscard]] std::size_t most_message_bytes() const noexcept { return bytes / 4 - kWordBytes; }
  [[nodiscard]] std::size_t place(std::uint64_t position) const noexcept {
    return static_cast<std::size_t>(position) & (bytes - 1);
  }
};

/// The first word of a record.
struct RecordHeader {
  static constexpr std::uint32_t kContinues = 0x8000'0000;
  static constexpr std::uint32_t kSkip = 0xffff'ffff;       // the reader goes on at the beginning
  static constexpr std::uint32_t kOnlyNulls = 0xffff'fffe;  // no message and no slot of its own

  std::uint32_t length;
  std::uint32_t nulls;

  [[nodiscard]] static RecordHeader load(const std::byte* at) noexcept {
    const auto word = memory::load(*reinterpret_cast<const std::uint64_t*>(at));
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  void store(std::byte* at) const noexcept {
    memory::store(*reinterpret_cast<std::uint64_t*>(at),
                  std::uint64_t{length} | std::uint64_t{nulls} << 32);
  }
};

// docs/formats/multicast-ring.md
static_assert(sizeof(RecordHeader) == kWordBytes && kWordBytes == 8);
static_assert(offsetof(RecordHeader, length) == 0 && offsetof(RecordHeader, nulls) == 4);

struct Record {
  std::span<const std::byte> message;
  std::uint64_t slot;
  bool continues;  // the sender's next record goes on with the message
};

/// Goes from record to record.
class RingCursor {
 public:
  explicit RingCursor(RingShape shape, std::uint64_t position = 0, std::uint64_t slots = 0,
                      std::uint64_t records = 0) noexcept
      : shape_(shape), position_(position), slots_(slots), records_(records) {}

  /// The slot of the next record, if the sender's slots below `real` are all in the ring; slots
  /// from slots() up to it are nulls. kNoSlot: there is no record.
  [[nodiscard]] std::uint64_t next(std::uint64_t real) noexcept {
    if (slots_ >= real) return kNoSlot;
    header_ = RecordHeader::load(shape_.memory + shape_.place(position_));
    if (header_.length < RecordHeader::kOnlyNulls) [[likely]]
      return slots_ + header_.nulls;
    return pass_to_record(real);
  }
  /// Takes the record that next() has found; the cursor is behind it then.
  Record take() noexcept {
    const std::size_t place = shape_.place(position_);
    std::size_t length = header_.length & ~RecordHeader::kContinues;
    const std::size_t room = shape_.bytes - place - kWordBytes;
    if (length > room) [[unlikely]]  // MC-R3: a peer has spoilt the length
      length = room;
    const std::uint64_t slot = slots_ + header_.nulls;
    slots_ = slot + 1;
    position_ += shape_.record_bytes(length);
    ++records_;
    return {.message = {shape_.memory + place + kWordBytes, length},
            .slot = slot,
            .continues = (header_.length & RecordHeader::kContinues) != 0};
  }

  /// How many slots lie before the cursor, how many bytes, and how many records.
  [[nodiscard]] std::uint64_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  std::uint64_t pass_to_record(std::uint64_t real) noexcept;

  RingShape shape_;
  RecordHeader header_{};  // belongs to the record that next() has found
  std::uint64_t position_ = 0;
  std::uint64_t slots_ = 0;
  std::uint64_t records_ = 0;
};

/// Builds records, takes slots, and knows what is still in use.
class RingWriter {
 public:
  /// Keeps at most `window` records in use (0: as many as there is room for).
  explicit RingWriter(RingShape shape, std::uint32_t window = 0) noexcept
      : shape_(shape), window_(window), tail_(shape) {}

  /// Whether there is room for a message of so many bytes.
  [[nodiscard]] bool has_room(std::size_t message_bytes) const noexcept;
  /// Where to build a message; null if there is no room. A later call replaces it.
  [[nodiscard]] std::byte* prepare(std::size_t message_bytes) noexcept;
  [[nodiscard]] bool prepared() const noexcept { return prepared_.has_value(); }
  /// Gives the prepared message the next slot. Returns its bytes.
  std::size_t commit(bool continues = false) noexcept;
  /// Takes nulls up to this slot. Returns how many were taken: fewer only while a message is
  /// prepared whose record could not count them.
  std::uint64_t pass_to(std::uint64_t slot) noexcept;
  /// Frees the slots below this one, with which all readers are done.
  void free_below(std::uint64_t slot) noexcept {
    while (tail_.next(real_) < slot) {
      tail_.take();
      free_position_ = tail_.position();
    }
  }

  /// The slots taken up to the last record.
  [[nodiscard]] std::uint64_t real() const noexcept { return real_; }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  /// The position behind the last record.
  [[nodiscard]] std::uint64_t head() const noexcept { return head_; }
  /// Where the next record will be.
  [[nodiscard]] RingCursor end() const noexcept {
    return RingCursor(shape_, head_, real_, records_);
  }
  /// The oldest record in use.
  [[nodiscard]] const RingCursor& tail() const noexcept { return tail_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t in_use() const noexcept { return records_ - tail_.records(); }

 private:
  struct Prepared {
    std::size_t bytes;
    std::uint64_t skip;  // the rest of the ring, if the record does not fit there
  };
  /// The bytes at the end of the ring that a record of so many bytes would leave out.
  [[nodiscard]] std::size_t skip_before(std::size_t record_bytes) const noexcept {
    const std::size_t to_the_end = shape_.bytes - shape_.place(head_);
    return record_bytes <= to_the_end ? 0 : to_the_end;
  }
  [[nodiscard]] bool room_for(std::uint64_t bytes) const noexcept {
    return head_ + bytes - free_position_ <= shape_.bytes;
  }
  void write_nulls() noexcept;

  RingShape shape_;
  std::uint32_t window_;
  std::optional<Prepared> prepared_;
  std::uint64_t head_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t real_ = 0;
  std::uint64_t taken_ = 0;
  RingCursor tail_;
  // The tail's own position may be behind a skip that a reader has yet to see.
  std::uint64_t free_position_ = 0;
};

/// Bytes of a ring from one position to another, as at most two runs of memory.
struct RingRun {
  std::size_t place;
  std::size_t bytes;
};
/// The first run; call again from its end for the second one.
[[nodiscard]] inline RingRun first_run(const RingShape& shape, std::uint64_t from,
                                       std::uint64_t to) noexcept {
  const std::size_t place = shape.place(from);
  const std::size_t to_the_end = shape.bytes - place;
  const auto bytes = static_cast<std::size_t>(to - from);
  return {place, bytes < to_the_end ? bytes : to_the_end};
}

}  // namespace dunlin::multicast
