#include <cstring>
#include <string_view>
#include <utility>

#include <dunlin/pubsub/type_support.hpp>

#include "fabric/hash.hpp"

namespace dunlin::pubsub {

std::uint64_t hash_key(std::span<const std::byte> key) noexcept {
  return fnv1a(std::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
}

bool decode_sample(const TypeSupport& type, bool plain, std::span<const std::byte> bytes,
                   void* object) {
  if (!type.plain) return (type.raw || !plain) && type.decode(bytes, object);
  if (!plain || bytes.size() != type.bytes) return false;
  if (type.valid != nullptr && !type.valid(bytes.data())) return false;
  std::memcpy(object, bytes.data(), bytes.size());
  return true;
}

std::shared_ptr<const TypeSupport> raw_type_support() {
  static const auto type = raw_type_support({}, {});
  return type;
}

namespace {

TypeSupport make_raw_type(std::string text, std::string name) {
  return TypeSupport{
      .name = std::move(name),
      .text = std::move(text),
      .raw = true,
      .bytes = sizeof(RawSample),
      .make = []() -> void* { return new RawSample; },
      .destroy = [](void* object) noexcept { delete static_cast<RawSample*>(object); },
      .copy =
          [](void* to, const void* from) {
            *static_cast<RawSample*>(to) = *static_cast<const RawSample*>(from);
          },
      .encode =
          [](const void* object, std::vector<std::byte>& to) {
            const auto& payload = static_cast<const RawSample*>(object)->payload;
            to.insert(to.end(), payload.begin(), payload.end());
          },
      .decode =
          [](std::span<const std::byte> from, void* object) {
            static_cast<RawSample*>(object)->payload.assign(from.begin(), from.end());
            return true;
          }};
}

}  // namespace

std::shared_ptr<const TypeSupport> raw_type_support(std::string text, std::string name) {
  return std::make_shared<const TypeSupport>(make_raw_type(std::move(text), std::move(name)));
}

std::shared_ptr<const TypeSupport> raw_keyed_type_support(std::string text, std::string name) {
  TypeSupport type = make_raw_type(std::move(text), std::move(name));
  type.keyed = true;
  type.append_key = [](const void* object, std::vector<std::byte>& to) {
    const auto hash = std::as_bytes(std::span(&static_cast<const RawSample*>(object)->key_hash, 1));
    to.insert(to.end(), hash.begin(), hash.end());
  };
  return std::make_shared<const TypeSupport>(std::move(type));
}

}  // namespace dunlin::pubsub
