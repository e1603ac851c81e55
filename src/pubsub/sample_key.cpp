#include "pubsub/sample_key.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/cdr.hpp>
#include <dunlin/pubsub/type_support.hpp>

namespace dunlin::pubsub {
namespace {

constexpr std::string_view kBool = "bool";

/// Walks through a sample (its memory or its XCDR2), checks it, and keeps the key members.
class KeyReader {
 public:
  KeyReader(const TypeTree& type, std::span<const std::byte> payload)
      : type_(type),
        payload_(payload),
        decoder_(type.plain ? std::span<const std::byte>() : payload) {}

  std::uint64_t hash() {
    if (!type_.plain && decoder_.delimited() != type_.root.appendable)
      throw Error("a sample has the header of another type");
    members(type_.root, 0, false);
    check_decoder();
    return hash_key(key_);
  }

 private:
  void check_decoder() const {
    if (!type_.plain && !decoder_.good()) throw Error("a sample is no XCDR2 of its type");
  }

  /// A struct within a key contributes only its own key members, if it has any.
  void members(const TypeNode& node, std::size_t base, bool in_key) {
    const bool is_root = &node == &type_.root;
    const bool counts_whole = !is_root && std::ranges::none_of(node.members, &TypeNode::key);
    const bool delimited = !type_.plain && node.appendable;
    const std::size_t outer = delimited ? decoder_.begin_delimited() : 0;
    for (const TypeNode& member : node.members) {
      if (delimited && decoder_.at_end()) break;  // further members were appended later
      const bool counts = (is_root || in_key) && (counts_whole || member.key);
      if (counts || !type_.plain || type_.has_bool) value(member, 0, base + member.offset, counts);
    }
    if (delimited) decoder_.end_delimited(outer);
  }

  void value(const TypeNode& node, std::size_t depth, std::size_t at, bool in_key) {
    if (depth < node.dimensions.size()) return dimension(node, depth, at, in_key);
    if (node.is_struct()) return members(node, at, in_key);
    scalar(node, at, in_key);
  }

  void dimension(const TypeNode& node, std::size_t depth, std::size_t at, bool in_key) {
    const TypeNode::Dimension& outermost = node.dimensions[depth];
    if (outermost.wrap == TypeNode::Wrap::optional) {
      if (decoder_.number<bool>()) value(node, depth + 1, at, in_key);
      return;
    }
    const bool delimited = !type_.plain && has_delimiter(node, depth);
    const std::size_t outer = delimited ? decoder_.begin_delimited() : 0;
    std::size_t count = outermost.count;
    if (outermost.wrap == TypeNode::Wrap::sequence) count = decoder_.number<std::uint32_t>();
    if (count > (type_.plain ? payload_.size() : decoder_.left())) decoder_.fail();
    check_decoder();
    const bool is_last = depth + 1 == node.dimensions.size();
    const bool any_value_will_do = number_bytes(node.type) > 0 && node.type != kBool;
    if (!type_.plain && !in_key && is_last && !delimited && any_value_will_do && count > 0) {
      decoder_.align(node.size);
      static_cast<void>(decoder_.bytes(count * node.size));
      return check_decoder();
    }
    std::size_t stride = node.size;
    for (std::size_t i = depth + 1; i < node.dimensions.size(); ++i)
      stride *= node.dimensions[i].count;
    for (std::size_t i = 0; i < count; ++i) value(node, depth + 1, at + i * stride, in_key);
    if (delimited) decoder_.end_delimited(outer);
  }

  void scalar(const TypeNode& node, std::size_t at, bool in_key) {
    if (node.type == "string") return text(in_key);
    if (node.size == 0) throw Error("the type has a '" + node.type + "', which is unknown");
    std::span<const std::byte> bytes;
    if (type_.plain) {
      if (at > payload_.size() || node.size > payload_.size() - at)
        throw Error("a sample is shorter than its type");
      bytes = payload_.subspan(at, node.size);
    } else {
      decoder_.align(node.type.starts_with("char*") ? 1 : node.size);
      bytes = decoder_.bytes(node.size);
      check_decoder();
    }
    if (node.type == kBool && std::to_integer<unsigned>(bytes[0]) > 1)
      throw Error("a bool of a sample is neither 0 nor 1");
    if (in_key) key_.insert(key_.end(), bytes.begin(), bytes.end());
  }

  void text(bool in_key) {
    const auto bytes = decoder_.bytes(decoder_.number<std::uint32_t>());
    if (bytes.empty() || bytes.back() != std::byte{}) decoder_.fail();
    check_decoder();
    if (!in_key) return;
    const std::size_t length = bytes.size() - 1;  // without the final zero
    const auto length_bytes = std::as_bytes(std::span(&length, 1));
    key_.insert(key_.end(), length_bytes.begin(), length_bytes.end());
    key_.insert(key_.end(), bytes.begin(), bytes.end() - 1);
  }

  const TypeTree& type_;
  std::span<const std::byte> payload_;
  cdr::Decoder decoder_;
  std::vector<std::byte> key_;
};

}  // namespace

std::uint64_t key_hash_of(const TypeTree& type, std::span<const std::byte> payload) {
  if (type.plain && payload.size() != type.bytes)
    throw Error("a sample has " + std::to_string(payload.size()) + " bytes, and its type " +
                std::to_string(type.bytes));
  if (type.plain && !type.keyed && !type.has_bool) return 0;
  const std::uint64_t hash = KeyReader(type, payload).hash();
  return type.keyed ? hash : 0;
}

}  // namespace dunlin::pubsub
