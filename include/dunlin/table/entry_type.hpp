#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace dunlin {

/// The type of a row's entry, for tools and other languages.
enum class EntryType : std::uint8_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f32,
  f64,
  text,  // std::array<char, N>
  bytes  // anything else
};
[[nodiscard]] std::string_view describe(EntryType type) noexcept;

namespace detail {

template <class T>
consteval EntryType entry_type() {
  using enum EntryType;
  if constexpr (std::is_enum_v<T>) {
    return entry_type<std::underlying_type_t<T>>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return boolean;
  } else if constexpr (std::is_same_v<T, float>) {
    return f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return f64;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr std::array<EntryType, 4> is_signed{i8, i16, i32, i64};
    constexpr std::array<EntryType, 4> is_unsigned{u8, u16, u32, u64};
    constexpr std::size_t size = std::bit_width(sizeof(T)) - 1;
    return std::is_signed_v<T> ? is_signed[size] : is_unsigned[size];
  } else {
    return bytes;
  }
}
template <>
consteval EntryType entry_type<long double>() {
  return EntryType::bytes;
}

}  // namespace detail
}  // namespace dunlin
