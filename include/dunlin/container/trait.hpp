#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dunlin/container/limits.hpp>

/// A ContainerTrait says how values of variable size become bytes in a container, and the reverse.
/// Trivially copyable types need none. A type of your own gets one like this:
///
///     template <>
///     struct dunlin::ContainerTrait<Address> {
///       static constexpr bool kIsKey = true;
///       static std::span<const std::byte> bytes(const Address& address);
///       static Address value(std::span<const std::byte> bytes);
///     };
///
///  CON-V1  Equal keys have equal bytes, also those of variable size: a length, the bytes, zeros.
///  CON-V2  A value is read back as it was written, or the call that writes it ends `too_long`.
namespace dunlin {

/// Types of which equal values have equal bytes: no padding, and no -0.0 beside 0.0.
template <class K>
concept PlainKey = std::is_trivially_copyable_v<K> && std::has_unique_object_representations_v<K>;

/// `bytes(value)` are the bytes of the value, and stay as long as it does. `value(bytes)` takes any
/// bytes that a peer has written there. `kIsKey` says whether equal values have equal bytes.
template <class T>
struct ContainerTrait;

template <>
struct ContainerTrait<std::string> {
  static constexpr bool kIsKey = true;
  static std::span<const std::byte> bytes(const std::string& text) noexcept {
    return std::as_bytes(std::span(text));
  }
  static std::string value(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

template <class E>
requires std::is_trivially_copyable_v<E> &&
    (!std::same_as<E, bool>)struct ContainerTrait<std::vector<E>> {
  static constexpr bool kIsKey = PlainKey<E>;
  static std::span<const std::byte> bytes(const std::vector<E>& elements) noexcept {
    return std::as_bytes(std::span(elements));
  }
  static std::vector<E> value(std::span<const std::byte> bytes) {
    std::vector<E> elements(bytes.size() / sizeof(E));
    if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(E));
    return elements;
  }
};

/// Types with a ContainerTrait.
template <class T>
concept VariableSize = requires(const T& value, std::span<const std::byte> bytes) {
  { ContainerTrait<T>::bytes(value) } -> std::same_as<std::span<const std::byte>>;
  { ContainerTrait<T>::value(bytes) } -> std::same_as<T>;
  { ContainerTrait<T>::kIsKey } -> std::convertible_to<bool>;
};

namespace container {
template <class T>
concept VariableKey = VariableSize<T> && ContainerTrait<T>::kIsKey;
}

/// Types that a container can hold, and types of its keys.
template <class T>
concept Containable = VariableSize<T> || std::is_trivially_copyable_v<T>;
template <class K>
concept ContainerKey = PlainKey<K> || container::VariableKey<K>;

namespace container {

/// The value of a Set's key: no bytes.
struct Nothing {};

/// How many bytes a value takes in a slot; `most` is the length of the longest value.
template <Containable T>
[[nodiscard]] constexpr std::uint32_t packed_bytes(std::uint32_t most) noexcept {
  if constexpr (std::is_same_v<T, Nothing>)
    return 0;
  else if constexpr (VariableSize<T>)
    return kLengthBytes + most;
  else
    return static_cast<std::uint32_t>(sizeof(T));
}

/// Writes a value into its place of that many bytes; returns whether it fits.
template <Containable T>
[[nodiscard]] bool pack(const T& value, std::byte* to, std::uint32_t bytes) noexcept {
  if constexpr (std::is_same_v<T, Nothing>) {
    return true;
  } else if constexpr (VariableSize<T>) {
    const std::span<const std::byte> content = ContainerTrait<T>::bytes(value);
    if (content.size() > bytes - kLengthBytes) return false;
    const auto length = static_cast<std::uint16_t>(content.size());
    std::memcpy(to, &length, kLengthBytes);
    if (length > 0) std::memcpy(to + kLengthBytes, content.data(), length);
    std::memset(to + kLengthBytes + length, 0, bytes - kLengthBytes - length);
    return true;
  } else {
    std::memcpy(to, &value, sizeof(T));
    return true;
  }
}

/// The value in its place; an invalid length is cut.
template <Containable T>
[[nodiscard]] T unpack(const std::byte* from, std::uint32_t bytes) {
  if constexpr (std::is_same_v<T, Nothing>) {
    return {};
  } else if constexpr (VariableSize<T>) {
    std::uint16_t length = 0;
    std::memcpy(&length, from, kLengthBytes);
    const std::size_t most = bytes - kLengthBytes;
    return ContainerTrait<T>::value({from + kLengthBytes, std::min<std::size_t>(length, most)});
  } else {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
}

/// Returns the option `most`; throws Error if T needs it and it is 0, or T does not and it is
/// given.
[[nodiscard]] std::uint32_t checked_most(const std::string& container, const char* option,
                                         bool is_variable, std::uint32_t most,
                                         std::uint32_t limit = kMaxElementBytes - kLengthBytes);
/// Whether the options ask for a pool; throws Error if its values do not vary in size.
[[nodiscard]] bool checked_pool(const std::string& container, bool is_variable,
                                std::size_t pool_bytes, std::uint32_t inline_bytes);

}  // namespace container
}  // namespace dunlin
