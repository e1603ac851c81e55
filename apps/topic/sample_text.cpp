#include "topic/sample_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/cdr.hpp>

#include "text.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::size_t kMostCharacters = 1'000;  // those shown of a text
constexpr std::size_t kMostElements = 128;      // those shown of a sequence; the others are "..."

template <class T>
[[nodiscard]] T load(std::span<const std::byte> from) {
  T value{};
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

[[nodiscard]] std::string number_text(std::string_view type, std::span<const std::byte> from) {
  if (type == "bool") return load<std::uint8_t>(from) != 0 ? "true" : "false";
  if (type == "i8") return fmt::to_string(static_cast<int>(load<std::int8_t>(from)));
  if (type == "u8") return fmt::to_string(static_cast<unsigned>(load<std::uint8_t>(from)));
  if (type == "i16") return fmt::to_string(load<std::int16_t>(from));
  if (type == "u16") return fmt::to_string(load<std::uint16_t>(from));
  if (type == "i32") return fmt::to_string(load<std::int32_t>(from));
  if (type == "u32") return fmt::to_string(load<std::uint32_t>(from));
  if (type == "i64") return fmt::to_string(load<std::int64_t>(from));
  if (type == "u64") return fmt::to_string(load<std::uint64_t>(from));
  if (type == "f32") return fmt::to_string(load<float>(from));
  if (type == "f64") return fmt::to_string(load<double>(from));
  throw Error(fmt::format("the topic's type has a '{}', which this release cannot show", type));
}

[[nodiscard]] std::string quoted(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return "'" + printable(text.substr(0, text.find('\0')), kMostCharacters) + "'";
}

/// Where the next value comes from: memory as it is, or XCDR2.
class Printer {
 public:
  Printer(const TypeTree& type, std::span<const std::byte> payload)
      : type_(type),
        payload_(payload),
        decoder_(type.plain ? std::span<const std::byte>() : payload) {}

  std::string print() {
    if (type_.plain && payload_.size() != type_.bytes)
      throw Error(
          fmt::format("a sample has {} bytes, and its type {}", payload_.size(), type_.bytes));
    struct_members(type_.root, 0, 0);
    if (!type_.plain && !decoder_.good()) throw Error("a sample is no XCDR2 of the topic's type");
    return text_;
  }

 private:
  void struct_members(const TypeNode& node, std::size_t base, std::size_t indent) {
    const bool delimited = !type_.plain && node.appendable;
    const std::size_t outer = delimited ? decoder_.begin_delimited() : 0;
    for (const TypeNode& member : node.members) {
      if (delimited && decoder_.at_end()) break;  // appended since
      text_ += std::string(indent, ' ') + member.name + ":";
      value(member, 0, base + member.offset, indent);
    }
    if (delimited) decoder_.end_delimited(outer);
  }

  /// Prints the value at `depth` dimensions inside the member.
  void value(const TypeNode& node, std::size_t depth, std::size_t at, std::size_t indent) {
    if (depth < node.dimensions.size()) return dimension(node, depth, at, indent);
    if (node.is_struct()) {
      text_ += "\n";
      return struct_members(node, at, indent + 2);
    }
    text_ += " " + scalar(node, at) + "\n";
  }

  void dimension(const TypeNode& node, std::size_t depth, std::size_t at, std::size_t indent) {
    const TypeNode::Dimension& outermost = node.dimensions[depth];
    if (outermost.wrap == TypeNode::Wrap::optional) {
      if (decoder_.number<bool>()) return value(node, depth + 1, at, indent);
      text_ += " null\n";
      return;
    }
    const bool numbers = depth + 1 == node.dimensions.size() && number_bytes(node.type) > 0;
    const bool delimited = !type_.plain && has_delimiter(node, depth);
    const std::size_t outer = delimited ? decoder_.begin_delimited() : 0;
    std::size_t count = outermost.count;
    if (outermost.wrap == TypeNode::Wrap::sequence) count = decoder_.number<std::uint32_t>();
    if (!type_.plain && count > decoder_.left()) return decoder_.fail();
    std::size_t stride = node.size;
    for (std::size_t i = depth + 1; i < node.dimensions.size(); ++i)
      stride *= node.dimensions[i].count;
    if (numbers) {
      text_ += " [";
      for (std::size_t i = 0; i < count; ++i) {
        const std::string one = scalar(node, at + i * stride);
        if (i < kMostElements) text_ += (i > 0 ? ", " : "") + one;
        if (i == kMostElements) text_ += ", ...";
      }
      text_ += "]\n";
    } else {
      text_ += count == 0 ? " []\n" : "\n";
      for (std::size_t i = 0; i < count && (type_.plain || decoder_.good()); ++i) {
        text_ += std::string(indent, ' ') + "-";
        value(node, depth + 1, at + i * stride, indent);
      }
    }
    if (delimited) decoder_.end_delimited(outer);
  }

  std::string scalar(const TypeNode& node, std::size_t at) {
    if (node.type == "string") {
      const auto bytes = decoder_.bytes(decoder_.number<std::uint32_t>());
      return quoted(bytes);
    }
    const bool is_text = node.type.starts_with("char*");
    if (node.size == 0) return number_text(node.type, {});  // throws
    std::span<const std::byte> bytes;
    if (type_.plain) {
      if (at > payload_.size() || node.size > payload_.size() - at)
        throw Error("a sample is shorter than its type");
      bytes = payload_.subspan(at, node.size);
    } else {
      decoder_.align(is_text ? 1 : node.size);
      bytes = decoder_.bytes(node.size);
      if (bytes.empty()) return "?";
    }
    return is_text ? quoted(bytes) : number_text(node.type, bytes);
  }

  const TypeTree& type_;
  std::span<const std::byte> payload_;
  pubsub::cdr::Decoder decoder_;
  std::string text_;
};

}  // namespace

std::string print_sample(const TypeTree& type, std::span<const std::byte> payload) {
  return Printer(type, payload).print();
}

}  // namespace dunlin::app::topic
