#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// The untyped core's view of a sample's type. `type_support<T>()` (topic_type.hpp) makes one for a
/// struct; a tool makes one that only knows bytes.
namespace dunlin::pubsub {

enum class Extensibility : std::uint8_t {
  // NOLINTNEXTLINE(readability-identifier-naming): `final` would read as the keyword
  final_,     // all members of a topic have the same type
  appendable  // others may have further members at its end
};

struct TypeSupport {
  std::string name = {};
  /// A description with one line for each struct member. The members of a topic must agree on it,
  /// and a refusal shows it.
  std::string text = {};
  Extensibility extensibility = Extensibility::final_;
  bool plain = false;     // samples travel as they are; else as XCDR2 with its header
  bool raw = false;       // the type of RawSample: takes any type
  bool keyed = false;     // the topic has instances
  std::size_t bytes = 0;  // size of an object

  // Functions that make and change the objects in a reader's cache.
  void* (*make)() = nullptr;
  void (*destroy)(void* object) noexcept = nullptr;
  void (*copy)(void* to, const void* from) = nullptr;

  /// Appends the values of the key members to `to`.
  void (*append_key)(const void* object, std::vector<std::byte>& to) = nullptr;
  /// For plain types: whether these bytes are a valid object, in which no bool is other than 0 or
  /// 1. Null: any bytes are valid.
  bool (*valid)(const void* bytes) noexcept = nullptr;

  // Functions for types that are not plain.
  void (*encode)(const void* object, std::vector<std::byte>& to) = nullptr;
  bool (*decode)(std::span<const std::byte> from, void* object) = nullptr;

  /// Encodes a struct except for the elements of its last member, a sequence of so many elements
  /// that is built in the ring. Null: the type does not end with such a sequence.
  void (*encode_head)(const void* object, std::size_t elements,
                      std::vector<std::byte>& to) = nullptr;
  std::size_t element_bytes = 0;
};

/// The bytes of a sample of the topic's type, which a tool writes and reads. Endpoints of
/// raw_type_support(text, name) announce the type of that text.
struct RawSample {
  bool plain = true;           // false: XCDR2 with its header
  std::uint64_t key_hash = 0;  // keyed topics only: equal for equal keys
  std::vector<std::byte> payload = {};
};
/// The type of endpoints that take RawSample. They announce no type, and match any.
[[nodiscard]] std::shared_ptr<const TypeSupport> raw_type_support();
/// The type of endpoints that take RawSample and announce this type (TypeSupport::text, name), for
/// a tool that speaks for another endpoint.
[[nodiscard]] std::shared_ptr<const TypeSupport> raw_type_support(std::string text,
                                                                  std::string name);
/// As raw_type_support(text, name), for a type with keys: a reader tells instances apart by
/// RawSample::key_hash, and gives the end of an instance as a sample without data.
[[nodiscard]] std::shared_ptr<const TypeSupport> raw_keyed_type_support(std::string text,
                                                                        std::string name);

/// Marks a sample that a member writes for a program that is no member (docs/relay.md).
using ClientId = std::array<std::byte, 16>;
struct ClientStamp {
  ClientId client = {};
  std::uint64_t number = 0;  // counts the client's samples in this topic, from 1 on
};

/// Whether these bytes are a sample of the type; if so, `object` has the sample.
[[nodiscard]] bool decode_sample(const TypeSupport& type, bool plain,
                                 std::span<const std::byte> bytes, void* object);
/// The hash of the bytes that append_key() appends.
[[nodiscard]] std::uint64_t hash_key(std::span<const std::byte> key) noexcept;

/// Whether endpoints of these types can share a topic; both arguments are a TypeSupport::text.
[[nodiscard]] bool types_match(const std::string& one, const std::string& other);
/// A text with both types, and the first line that differs.
[[nodiscard]] std::string show_both_types(const std::string& one, const std::string& other);

}  // namespace dunlin::pubsub
