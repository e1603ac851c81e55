#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <dunlin/limits.hpp>

/// XCDR version 2, little-endian, as OMG DDS-XTypes 1.3 defines it (7.4): numbers are aligned to
/// their size but at most to 4, a delimiter (DHEADER) stands before appendable structs and before
/// collections whose elements are not numbers. The payload begins with the RTPS header of 4 bytes.
/// docs/formats/pubsub.md has an example.
namespace dunlin::pubsub::cdr {

inline constexpr std::size_t kHeaderBytes = 4;
inline constexpr std::byte kPlainCdr2Le{0x07};
inline constexpr std::byte kDelimitedCdr2Le{0x09};
inline constexpr std::size_t kMostAlignment = 4;
/// The most memory that a decoded sample takes beside its object: a few bytes can stand for many
/// absent values of a large type.
inline constexpr std::size_t kDecodedBytes = std::size_t{1} << 20;
inline constexpr std::size_t kDecodedBytesPerByte = 64;  // for each payload byte, in addition

template <class T>
concept Primitive = std::is_arithmetic_v<T> || std::is_enum_v<T>;

static_assert(std::endian::native == std::endian::little, "samples are little-endian");

class Encoder {
 public:
  /// The constructor appends the RTPS header.
  Encoder(std::vector<std::byte>& to, bool delimited) : to_(to) {
    // The header is pushed byte by byte: g++ 12 takes an inserted list or array for one that
    // overflows.
    to_.push_back(std::byte{0});
    to_.push_back(delimited ? kDelimitedCdr2Le : kPlainCdr2Le);
    to_.push_back(std::byte{0});
    to_.push_back(std::byte{0});
    begin_ = to_.size();
  }
  template <Primitive T>
  void number(T value) {
    align(sizeof(T));
    const std::size_t at = to_.size();
    to_.resize(at + sizeof(T));
    std::memcpy(to_.data() + at, &value, sizeof(T));
  }
  /// Appends what as many single put() calls would append: behind the first one, no padding is
  /// between them.
  template <Primitive T>
  void numbers(std::span<const T> values) {
    if (values.empty()) return;
    align(sizeof(T));
    bytes(std::as_bytes(values));
  }
  void bytes(std::span<const std::byte> content) {
    to_.insert(to_.end(), content.begin(), content.end());
  }
  void align(std::size_t bytes) {
    const std::size_t unit = bytes < kMostAlignment ? bytes : kMostAlignment;
    to_.resize(begin_ + round_up(to_.size() - begin_, unit));
  }
  /// Begins an object with a delimiter, which end_delimited() fills in.
  [[nodiscard]] std::size_t begin_delimited() {
    number(std::uint32_t{0});
    return to_.size();
  }
  void end_delimited(std::size_t begin) {
    const auto length = static_cast<std::uint32_t>(to_.size() - begin);
    std::memcpy(to_.data() + begin - sizeof length, &length, sizeof length);
  }
  /// Ends the payload as RTPS wants: padded to a multiple of 4 bytes; the header says how many
  /// bytes were added.
  void finish() {
    std::uint8_t added = 0;
    for (; (to_.size() - begin_) % kHeaderBytes != 0; ++added) to_.push_back(std::byte{});
    to_[begin_ - 1] = std::byte{added};
  }

 private:
  std::vector<std::byte>& to_;
  std::size_t begin_ = 0;
};

/// Decodes a payload. Missing bytes read as zeros, and good() is false from then on.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> payload) {
    good_ = payload.size() >= kHeaderBytes && payload[0] == std::byte{0} &&
            (payload[1] == kPlainCdr2Le || payload[1] == kDelimitedCdr2Le);
    if (!good_) return;
    delimited_ = payload[1] == kDelimitedCdr2Le;
    const auto added = std::to_integer<std::size_t>(payload[3]) & 3U;
    from_ = payload.subspan(kHeaderBytes);
    memory_left_ = kDecodedBytes + kDecodedBytesPerByte * from_.size();
    good_ = added <= from_.size();
    if (good_) end_ = from_.size() - added;
  }
  template <Primitive T>
  [[nodiscard]] T number() {
    align(sizeof(T));
    T value{};
    if (!has(sizeof(T))) return value;
    if constexpr (std::is_same_v<T, bool>) {
      const std::byte byte = from_[at_];
      good_ = good_ && (byte == std::byte{0} || byte == std::byte{1});
      value = byte == std::byte{1};
    } else {
      std::memcpy(&value, from_.data() + at_, sizeof(T));
    }
    at_ += sizeof(T);
    return value;
  }
  /// Not for bool, because each byte of a bool must be checked.
  template <Primitive T>
  requires(!std::is_same_v<T, bool>) void numbers(std::span<T> values) {
    if (values.empty()) return;
    align(sizeof(T));
    const auto from = bytes(values.size_bytes());
    if (good_) std::memcpy(values.data(), from.data(), from.size());
  }
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t count) {
    if (!has(count)) return {};
    at_ += count;
    return from_.subspan(at_ - count, count);
  }
  void align(std::size_t bytes) {
    const std::size_t unit = bytes < kMostAlignment ? bytes : kMostAlignment;
    at_ = round_up(at_, unit);
  }
  /// Enters the object behind a delimiter; returns the end of the object around it.
  [[nodiscard]] std::size_t begin_delimited() {
    const std::size_t outer = end_;
    const std::size_t length = number<std::uint32_t>();
    if (has(length)) end_ = at_ + length;
    return outer;
  }
  /// Skips what is left of the delimited object: members that were appended to its type.
  void end_delimited(std::size_t outer) {
    at_ = end_;
    end_ = outer;
  }
  /// Whether the delimited struct ends here: its further members were appended to the type later.
  [[nodiscard]] bool at_end() const noexcept { return at_ >= end_; }
  [[nodiscard]] std::size_t left() const noexcept { return at_ < end_ ? end_ - at_ : 0; }
  [[nodiscard]] bool delimited() const noexcept { return delimited_; }
  [[nodiscard]] bool good() const noexcept { return good_; }
  void fail() noexcept { good_ = false; }
  /// To be called before that many elements are allocated. Returns false, and good() is false from
  /// then on, if the payload is too small for so many elements, or for their memory.
  [[nodiscard]] bool reserve(std::size_t count, std::size_t element_bytes,
                             std::size_t least_encoded_bytes) noexcept {
    good_ = good_ && count <= left() / least_encoded_bytes &&
            (element_bytes == 0 || count <= memory_left_ / element_bytes);
    if (good_) memory_left_ -= count * element_bytes;
    return good_;
  }

 private:
  [[nodiscard]] bool has(std::size_t count) noexcept {
    good_ = good_ && at_ <= end_ && count <= end_ - at_;
    return good_;
  }

  std::span<const std::byte> from_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::size_t memory_left_ = 0;
  bool delimited_ = false;
  bool good_ = false;
};

}  // namespace dunlin::pubsub::cdr
