#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <dunlin/limits.hpp>

namespace dunlin {

/// A StoreKey is the key of a call on a Store: a byte string of up to kMaxStoreKeyBytes, or a
/// 64-bit word, which is the same as its eight bytes in little-endian order. It refers to the
/// caller's bytes; the call copies them.
class StoreKey {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a key is written as what it is.
  StoreKey(std::string_view text) noexcept : bytes_(std::as_bytes(std::span(text))) {}
  StoreKey(const char* text) noexcept : StoreKey(std::string_view(text)) {}
  StoreKey(const std::string& text) noexcept : StoreKey(std::string_view(text)) {}
  StoreKey(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  StoreKey(std::uint64_t word) noexcept : is_word_(true) {
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(word_.data(), &word, sizeof word);
  }
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return is_word_ ? std::span<const std::byte>(word_) : bytes_;
  }

 private:
  std::span<const std::byte> bytes_;
  bool is_word_ = false;
  std::array<std::byte, 8> word_{};
};

}  // namespace dunlin
