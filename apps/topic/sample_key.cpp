#include "topic/sample_key.hpp"

#include <vector>

#include <fmt/format.h>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/cdr.hpp>
#include <dunlin/pubsub/type_support.hpp>

namespace dunlin::app::topic {
namespace {

/// Walks through a sample, memory as it is or XCDR2, and keeps the key members.
class KeyReader {
 public:
  KeyReader(const TypeTree& type, std::span<const std::byte> payload)
      : type_(type),
        payload_(payload),
        decoder_(type.plain ? std::span<const std::byte>() : payload) {}

  std::uint64_t hash() {
    members(type_.root, 0, false);
    check_decoder();
    return pubsub::hash_key(key_);
  }

 private:
  void check_decoder() const {
    if (!type_.plain && !decoder_.good()) throw Error("a sample is no XCDR2 of its type");
  }

  void members(const TypeNode& node, std::size_t base, bool in_key) {
    const bool delimited = !type_.plain && node.appendable;
    const std::size_t outer = delimited ? decoder_.begin_delimited() : 0;
    for (const TypeNode& member : node.members) {
      if (delimited && decoder_.at_end()) break;  // appended since
      value(member, 0, base + member.offset, in_key || (&node == &type_.root && member.key));
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
    std::size_t stride = node.size;
    for (std::size_t i = depth + 1; i < node.dimensions.size(); ++i)
      stride *= node.dimensions[i].count;
    for (std::size_t i = 0; i < count; ++i) value(node, depth + 1, at + i * stride, in_key);
    if (delimited) decoder_.end_delimited(outer);
  }

  void scalar(const TypeNode& node, std::size_t at, bool in_key) {
    if (node.type == "string") return text(in_key);
    if (node.size == 0)
      throw Error(fmt::format("the type has a '{}', which is unknown", node.type));
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
    if (in_key) key_.insert(key_.end(), bytes.begin(), bytes.end());
  }

  void text(bool in_key) {
    const auto bytes = decoder_.bytes(decoder_.number<std::uint32_t>());
    if (bytes.empty()) decoder_.fail();
    check_decoder();
    if (!in_key) return;
    const std::size_t length = bytes.size() - 1;  // without the zero at its end
    const auto length_bytes = std::as_bytes(std::span(&length, 1));
    key_.insert(key_.end(), length_bytes.begin(), length_bytes.end());
    key_.insert(key_.end(), bytes.begin(), bytes.end() - 1);
  }

  const TypeTree& type_;
  std::span<const std::byte> payload_;
  pubsub::cdr::Decoder decoder_;
  std::vector<std::byte> key_;
};

}  // namespace

std::uint64_t key_hash_of(const TypeTree& type, std::span<const std::byte> payload) {
  if (type.plain && payload.size() != type.bytes)
    throw Error(fmt::format("a sample has {} bytes, and its type {}", payload.size(), type.bytes));
  return type.keyed ? KeyReader(type, payload).hash() : 0;
}

}  // namespace dunlin::app::topic
