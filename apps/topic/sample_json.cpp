#include "topic/sample_json.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <dunlin/pubsub/cdr.hpp>

#include "command.hpp"

namespace dunlin::app::topic {
namespace {

using Json = nlohmann::json;

/// Calls `put(value)` with the number that the JSON is, of the type.
template <class Put>
void with_number(const TypeNode& node, const Json& json, const Put& put) {
  const auto fail = [&] {
    throw BadInput(fmt::format("member '{}': {} is no {}", node.name, json.dump(), node.type));
  };
  const auto whole = [&]<class T>(T) {
    if (json.is_null()) return put(T{});
    if (!json.is_number_integer()) fail();
    if (json.is_number_unsigned()) {
      const auto value = json.get<std::uint64_t>();
      if (value > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) fail();
      return put(static_cast<T>(value));
    }
    const auto value = json.get<std::int64_t>();
    if (value < 0 &&
        (std::is_unsigned_v<T> || value < static_cast<std::int64_t>(std::numeric_limits<T>::min())))
      fail();
    put(static_cast<T>(value));
  };
  if (node.type == "bool") {
    if (!json.is_null() && !json.is_boolean()) fail();
    return put(!json.is_null() && json.get<bool>());
  }
  if (node.type == "f32" || node.type == "f64") {
    if (!json.is_null() && !json.is_number()) fail();
    const double value = json.is_null() ? 0.0 : json.get<double>();
    return node.type == "f32" ? put(static_cast<float>(value)) : put(value);
  }
  if (node.type == "i8") return whole(std::int8_t{});
  if (node.type == "u8") return whole(std::uint8_t{});
  if (node.type == "i16") return whole(std::int16_t{});
  if (node.type == "u16") return whole(std::uint16_t{});
  if (node.type == "i32") return whole(std::int32_t{});
  if (node.type == "u32") return whole(std::uint32_t{});
  if (node.type == "i64") return whole(std::int64_t{});
  if (node.type == "u64") return whole(std::uint64_t{});
  throw BadInput(
      fmt::format("member '{}': a '{}' cannot be written by this command", node.name, node.type));
}

class SampleWriter {
 public:
  explicit SampleWriter(const TypeTree& type)
      : type_(type), encoder_(encoded_, type.root.appendable) {
    sample_.plain = type.plain;
    sample_.payload.resize(type.plain ? type.bytes : 0);
  }
  pubsub::RawSample write(const Json& json) {
    members(type_.root, json, 0);
    if (!type_.plain) {
      encoder_.finish();
      sample_.payload = encoded_;
    }
    if (!key_.empty()) sample_.key_hash = pubsub::hash_key(std::as_bytes(std::span(key_)));
    return std::move(sample_);
  }

 private:
  void members(const TypeNode& node, const Json& json, std::size_t base) {
    if (!json.is_null() && !json.is_object())
      throw BadInput(
          fmt::format("{} is no object with the members of a {}", json.dump(), node.type));
    if (json.is_object())
      for (const auto& [name, one] : json.items())
        if (std::ranges::find(node.members, name, &TypeNode::name) == node.members.end())
          throw BadInput(fmt::format("a {} has no member '{}'", node.type, name));
    const std::size_t begin =
        !type_.plain && node.appendable ? encoder_.begin_delimited() : std::size_t{0};
    for (const TypeNode& member : node.members) {
      const bool has = json.is_object() && json.contains(member.name);
      in_key_ = &node == &type_.root && member.key;
      value(member, 0, has ? json[member.name] : Json(), base + member.offset);
    }
    if (begin != 0) encoder_.end_delimited(begin);
  }

  void value(const TypeNode& node, std::size_t depth, const Json& json, std::size_t at) {
    if (depth < node.dimensions.size()) return dimension(node, depth, json, at);
    if (node.is_struct()) return members(node, json, at);
    if (node.type == "string") {
      const std::string text = text_of(node, json);
      encoder_.number(static_cast<std::uint32_t>(text.size() + 1));
      encoder_.bytes(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
      if (in_key_) append_key(text.size(), text);
      return;
    }
    if (node.type.starts_with("char*")) {
      std::string text = text_of(node, json);
      if (text.size() > node.size)
        throw BadInput(fmt::format("member '{}': '{}' has more than {} characters", node.name, text,
                                   node.size));
      text.resize(node.size);
      if (type_.plain)
        store(at, text.data(), text.size());
      else
        encoder_.bytes(std::as_bytes(std::span(text)));
      if (in_key_) key_ += text;
      return;
    }
    with_number(node, json, [&](auto number) {
      if (type_.plain)
        store(at, &number, sizeof number);
      else
        encoder_.number(number);
      if (in_key_) key_.append(reinterpret_cast<const char*>(&number), sizeof number);
    });
  }

  void dimension(const TypeNode& node, std::size_t depth, const Json& json, std::size_t at) {
    const TypeNode::Dimension& outermost = node.dimensions[depth];
    if (outermost.wrap == TypeNode::Wrap::optional) {
      encoder_.number(!json.is_null());
      if (!json.is_null()) value(node, depth + 1, json, at);
      return;
    }
    if (!json.is_null() && !json.is_array())
      throw BadInput(fmt::format("member '{}': {} is no array", node.name, json.dump()));
    const bool fixed = outermost.wrap == TypeNode::Wrap::array;
    const std::size_t count = fixed ? outermost.count : json.size();
    if (fixed && json.is_array() && json.size() > count)
      throw BadInput(
          fmt::format("member '{}' has {} elements, not {}", node.name, count, json.size()));
    const bool delimited = !type_.plain && has_delimiter(node, depth);
    const std::size_t begin = delimited ? encoder_.begin_delimited() : 0;
    if (!fixed) encoder_.number(static_cast<std::uint32_t>(count));
    std::size_t stride = node.size;
    for (std::size_t i = depth + 1; i < node.dimensions.size(); ++i)
      stride *= node.dimensions[i].count;
    for (std::size_t i = 0; i < count; ++i)
      value(node, depth + 1, json.is_array() && i < json.size() ? json[i] : Json(),
            at + i * stride);
    if (delimited) encoder_.end_delimited(begin);
  }

  void store(std::size_t at, const void* from, std::size_t bytes) {
    std::vector<std::byte>& to = sample_.payload;
    if (at > to.size() || bytes > to.size() - at) throw Error("a sample is shorter than its type");
    std::memcpy(to.data() + at, from, bytes);
  }
  static std::string text_of(const TypeNode& node, const Json& json) {
    if (json.is_null()) return {};
    if (!json.is_string())
      throw BadInput(fmt::format("member '{}': {} is no text", node.name, json.dump()));
    return json.get<std::string>();
  }
  void append_key(std::size_t length, const std::string& text) {
    key_.append(reinterpret_cast<const char*>(&length), sizeof length);
    key_ += text;
  }

  const TypeTree& type_;
  pubsub::RawSample sample_;
  std::vector<std::byte> encoded_;
  pubsub::cdr::Encoder encoder_;
  std::string key_;
  bool in_key_ = false;
};

}  // namespace

pubsub::RawSample read_sample(const TypeTree& type, const std::string& json) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded()) throw BadInput(fmt::format("'{}' is no JSON", json));
  return SampleWriter(type).write(parsed);
}

}  // namespace dunlin::app::topic
