#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// The untyped core's view of a sample's type. `type_support<T>()` (topic_type.hpp) makes it of a
/// struct; a tool makes one that only knows bytes.
namespace dunlin::pubsub {

enum class Extensibility : std::uint8_t {
  // NOLINTNEXTLINE(readability-identifier-naming): `final` would read as the keyword
  final_,     // all members of a topic have the same type
  appendable  // others may have further members at its end
};

struct TypeSupport {
  std::string name = {};
  /// One line for each struct member. The members of a topic must agree on it, and a refusal shows
  /// it.
  std::string text = {};
  Extensibility extensibility = Extensibility::final_;
  bool plain = false;     // samples travel as they are; else as XCDR2 with its header
  bool raw = false;       // of RawSample: takes any type
  bool keyed = false;     // a topic of instances
  std::size_t bytes = 0;  // of an object

  // Objects, for a reader's cache.
  void* (*make)() = nullptr;
  void (*destroy)(void* object) noexcept = nullptr;
  void (*copy)(void* to, const void* from) = nullptr;

  /// Appends the values of the key members.
  void (*append_key)(const void* object, std::vector<std::byte>& to) = nullptr;
  /// Plain types: whether these bytes are an object: no bool has another value than 0 and 1. Null:
  /// any bytes are.
  bool (*valid)(const void* bytes) noexcept = nullptr;

  // Other types.
  void (*encode)(const void* object, std::vector<std::byte>& to) = nullptr;
  bool (*decode)(std::span<const std::byte> from, void* object) = nullptr;

  /// Encodes all of a struct but the elements of its last member, a sequence that is built in the
  /// ring and will have so many of them. Null: the type does not end with such a sequence.
  void (*encode_head)(const void* object, std::size_t elements,
                      std::vector<std::byte>& to) = nullptr;
  std::size_t element_bytes = 0;
};

/// A tool writes and reads this: the bytes of a sample of the topic's type. With a text, endpoints
/// of raw_type_support(text) announce that type.
struct RawSample {
  bool plain = true;           // else XCDR2 with its header
  std::uint64_t key_hash = 0;  // of keyed topics: equal for equal keys
  std::vector<std::byte> payload = {};
};
/// The type of endpoints that take RawSample. They announce no type, and match any.
[[nodiscard]] std::shared_ptr<const TypeSupport> raw_type_support();
/// Likewise, for a tool that speaks for an endpoint of this type (TypeSupport::text, name).
[[nodiscard]] std::shared_ptr<const TypeSupport> raw_type_support(std::string text,
                                                                  std::string name);

/// Marks a sample that a member writes for a program that is no member (docs/relay.md).
using ClientId = std::array<std::byte, 16>;
struct ClientStamp {
  ClientId client = {};
  std::uint64_t number = 0;  // of the client's samples in this topic, from 1 on
};

/// Whether these bytes are a sample of the type, which is then in `object`.
[[nodiscard]] bool decode_sample(const TypeSupport& type, bool plain,
                                 std::span<const std::byte> bytes, void* object);
/// Of the bytes that append_key() appends.
[[nodiscard]] std::uint64_t hash_key(std::span<const std::byte> key) noexcept;

/// Whether endpoints of these types can share a topic; both are TypeSupport::text.
[[nodiscard]] bool types_match(const std::string& one, const std::string& other);
/// Both, and the first line that differs.
[[nodiscard]] std::string show_both_types(const std::string& one, const std::string& other);

}  // namespace dunlin::pubsub
