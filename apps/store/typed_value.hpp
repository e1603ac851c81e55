#pragma once

#include <cstddef>
#include <string_view>

/// The types of values (docs/formats/typed-values.md).
namespace dunlin::app::resp {

// Values with a type begin with a mark; all others are strings.
inline constexpr std::size_t kMarkBytes = 8;
inline constexpr std::string_view kStringMark{};
inline constexpr std::string_view kHashMark{"\x9e\xd0\x4c\x1a\x00\xf7\x62h", kMarkBytes};
inline constexpr std::string_view kSortedSetMark{"\x9e\xd0\x4c\x1a\x00\xf7\x62z", kMarkBytes};

[[nodiscard]] inline bool has_mark(std::string_view value) noexcept {
  return value.starts_with(kHashMark.substr(0, kMarkBytes - 1));
}
/// Whether the value is of the type that has this mark.
[[nodiscard]] inline bool has_type(std::string_view value, std::string_view mark) noexcept {
  return mark.empty() ? !has_mark(value) : value.starts_with(mark);
}
/// "string", "hash" or "zset".
[[nodiscard]] inline std::string_view type_of(std::string_view value) noexcept {
  if (value.starts_with(kHashMark)) return "hash";
  return value.starts_with(kSortedSetMark) ? "zset" : "string";
}

inline constexpr const char* kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

}  // namespace dunlin::app::resp
