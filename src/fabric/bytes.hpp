#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Little-endian numbers and byte strings, written to and taken from flat memory.
namespace dunlin {

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& to) : to_(to) {}

  /// Reserves room for so many more bytes: if there are many, growing costs more than writing.
  void reserve(std::size_t more) { to_.reserve(to_.size() + more); }
  void u8(std::uint8_t value) { number(value, 1); }
  void u16(std::uint16_t value) { number(value, 2); }
  void u32(std::uint32_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }
  void bytes(std::span<const std::byte> content) {
    to_.insert(to_.end(), content.begin(), content.end());
  }
  /// Writes the text, followed by zero bytes up to `width`.
  void text(std::string_view content, std::size_t width) {
    bytes(std::as_bytes(std::span(content.data(), content.size())));
    to_.resize(to_.size() + width - content.size());
  }
  /// Writes a text of any length, behind its length.
  void text(std::string_view content) {
    u32(static_cast<std::uint32_t>(content.size()));
    bytes(std::as_bytes(std::span(content.data(), content.size())));
  }

 private:
  void number(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) to_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }

  std::vector<std::byte>& to_;
};

/// Joins `head` and `body`, whose memory is reused: for bodies of megabytes, whose memory costs
/// more than moving them.
[[nodiscard]] inline std::vector<std::byte> joined(std::span<const std::byte> head,
                                                   std::vector<std::byte> body) {
  body.insert(body.begin(), head.begin(), head.end());
  return body;
}
/// The last `count` bytes of `bytes`, whose memory is reused.
[[nodiscard]] inline std::vector<std::byte> tail_of(std::vector<std::byte> bytes,
                                                    std::size_t count) {
  bytes.erase(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(count));
  return bytes;
}

/// Reads numbers and texts. Missing bytes read as zeros, and `good()` is false from then on.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : from_(from) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::span<const std::byte> bytes(std::size_t count) {
    good_ = good_ && count <= from_.size();
    if (!good_) return {};
    const auto taken = from_.first(count);
    from_ = from_.subspan(count);
    return taken;
  }
  std::span<const std::byte> rest() { return bytes(from_.size()); }
  template <std::size_t Count>
  std::array<std::byte, Count> array() {
    std::array<std::byte, Count> taken{};
    const auto found = bytes(Count);
    std::copy(found.begin(), found.end(), taken.begin());
    return taken;
  }
  /// Reads a text of a fixed width, which must end with a zero byte and have nothing but zeros
  /// behind that.
  std::string text(std::size_t width) {
    const auto field = bytes(width);
    const auto end = std::find(field.begin(), field.end(), std::byte{});
    good_ = good_ && end != field.end() &&
            std::all_of(end, field.end(), [](std::byte b) { return b == std::byte{}; });
    return {reinterpret_cast<const char*>(field.data()),
            static_cast<std::size_t>(end - field.begin())};
  }
  /// Reads a text behind its length.
  std::string text() {
    const auto found = bytes(u32());
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const auto found = bytes(width);
    for (std::size_t i = 0; i < found.size(); ++i)
      value |= std::uint64_t{std::to_integer<std::uint8_t>(found[i])} << (8 * i);
    return value;
  }

  std::span<const std::byte> from_;
  bool good_ = true;
};

/// Removes the first `done` bytes once they are many or all; `done` is 0 then.
inline void forget_front(std::vector<std::byte>& bytes, std::size_t& done) {
  constexpr std::size_t kWorthMoving = 65'536;
  if (done < bytes.size() && done < kWorthMoving) return;
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(done));
  done = 0;
}

}  // namespace dunlin
