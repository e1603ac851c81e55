#include "gateway/dds_sample.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/cdr.hpp>

#include "topic/sample_key.hpp"

namespace dunlin::app::gateway {
namespace {

using topic::TypeNode;
using Wrap = TypeNode::Wrap;

template <class T>
T load_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void store_as(std::byte* at, const T& value) {
  std::memcpy(at, &value, sizeof value);
}

std::size_t cdr_alignment(const TypeNode& node) {
  return node.type.starts_with("char*") ? 1 : node.size;
}
bool is_optional_text(const TypeNode& node, std::size_t depth) {
  return node.type == "string" && depth + 1 == node.dimensions.size();
}

/// No value that lies below `depth` dimensions of the member is encoded in less.
std::size_t least_encoded_bytes(const TypeNode& node, std::size_t depth) {
  std::size_t bytes = node.type == "string" ? sizeof(std::uint32_t) + 1 : node.size;
  if (node.is_struct()) {
    bytes = node.appendable ? sizeof(std::uint32_t) : 0;
    for (const TypeNode& member : node.members)
      if (!node.appendable) bytes += least_encoded_bytes(member, 0);
  }
  for (std::size_t at = node.dimensions.size(); at-- > depth;) {
    const TypeNode::Dimension& dimension = node.dimensions[at];
    bytes = dimension.wrap == Wrap::array      ? dimension.count * bytes
            : dimension.wrap == Wrap::optional ? 1
                                               : sizeof(std::uint32_t);
  }
  return std::max<std::size_t>(bytes, 1);
}

/// Loads XCDR2 into memory of zeros.
class Loader {
 public:
  explicit Loader(std::span<const std::byte> payload) : decoder_(payload) {}

  void load(const TypeNode& root, std::byte* memory) {
    members(root, memory);
    if (!decoder_.good()) throw Error("a sample is no XCDR2 of its type");
  }

 private:
  void members(const TypeNode& node, std::byte* base) {
    const std::size_t outer = node.appendable ? decoder_.begin_delimited() : 0;
    for (const TypeNode& member : node.members) {
      if (node.appendable && decoder_.at_end()) break;  // appended since
      value(member, 0, base + member.offset);
    }
    if (node.appendable) decoder_.end_delimited(outer);
  }

  void value(const TypeNode& node, std::size_t depth, std::byte* at) {
    if (depth < node.dimensions.size()) return dimension(node, depth, at);
    if (node.is_struct()) return members(node, at);
    if (node.type == "string") return text(node, at);
    decoder_.align(cdr_alignment(node));
    const auto bytes = decoder_.bytes(node.size);
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  }

  void dimension(const TypeNode& node, std::size_t depth, std::byte* at) {
    const TypeNode::Dimension& outermost = node.dimensions[depth];
    if (outermost.wrap == Wrap::optional) {
      if (!decoder_.number<bool>() || !decoder_.good()) return;
      if (is_optional_text(node, depth)) return text(node, at);
      const std::size_t bytes = memory_bytes(node, depth + 1);
      if (decoder_.reserve(1, bytes, least_encoded_bytes(node, depth + 1)))
        value(node, depth + 1, allocate(at, bytes));
      return;
    }
    const bool delimited = topic::has_delimiter(node, depth);
    const std::size_t outer = delimited ? decoder_.begin_delimited() : 0;
    const bool sequence = outermost.wrap == Wrap::sequence;
    const std::size_t count = sequence ? decoder_.number<std::uint32_t>() : outermost.count;
    const std::size_t stride = memory_bytes(node, depth + 1);
    if (sequence && !decoder_.reserve(count, stride, least_encoded_bytes(node, depth + 1))) return;
    if (sequence && count > 0) {
      dds_sequence_t made{};
      made._maximum = made._length = static_cast<std::uint32_t>(count);
      made._buffer = static_cast<std::uint8_t*>(dds_alloc(count * stride));
      made._release = true;
      store_as(at, made);
      at = reinterpret_cast<std::byte*>(made._buffer);
    }
    for (std::size_t i = 0; i < count && decoder_.good(); ++i)
      value(node, depth + 1, at + i * stride);
    if (delimited) decoder_.end_delimited(outer);
  }

  static std::byte* allocate(std::byte* at, std::size_t bytes) {
    void* const made = dds_alloc(bytes);
    store_as(at, made);
    return static_cast<std::byte*>(made);
  }

  void text(const TypeNode& node, std::byte* at) {
    const auto bytes = decoder_.bytes(decoder_.number<std::uint32_t>());
    if (bytes.empty() || bytes.back() != std::byte{}) return decoder_.fail();
    if (std::ranges::find(bytes, std::byte{}) != bytes.end() - 1)
      throw Error(fmt::format("member '{}' has a text with a zero byte, which DDS cannot carry",
                              node.name));
    std::memcpy(allocate(at, bytes.size()), bytes.data(), bytes.size());
  }

  pubsub::cdr::Decoder decoder_;
};

/// Saves memory as XCDR2.
class Saver {
 public:
  Saver(std::vector<std::byte>& to, const TypeNode& root) : encoder_(to, root.appendable) {}

  void save(const TypeNode& root, const std::byte* memory) {
    members(root, memory);
    encoder_.finish();
  }

 private:
  void members(const TypeNode& node, const std::byte* base) {
    const std::size_t begin = node.appendable ? encoder_.begin_delimited() : 0;
    for (const TypeNode& member : node.members) value(member, 0, base + member.offset);
    if (node.appendable) encoder_.end_delimited(begin);
  }

  void value(const TypeNode& node, std::size_t depth, const std::byte* at) {
    if (depth < node.dimensions.size()) return dimension(node, depth, at);
    if (node.is_struct()) return members(node, at);
    if (node.type == "string") return text(load_as<const char*>(at));
    encoder_.align(cdr_alignment(node));
    encoder_.bytes({at, node.size});
  }

  void dimension(const TypeNode& node, std::size_t depth, const std::byte* at) {
    const TypeNode::Dimension& outermost = node.dimensions[depth];
    if (outermost.wrap == Wrap::optional) {
      const auto* const there = load_as<const std::byte*>(at);
      encoder_.number(there != nullptr);
      if (there == nullptr) return;
      return value(node, depth + 1, is_optional_text(node, depth) ? at : there);
    }
    const bool delimited = topic::has_delimiter(node, depth);
    const std::size_t begin = delimited ? encoder_.begin_delimited() : 0;
    std::size_t count = outermost.count;
    if (outermost.wrap == Wrap::sequence) {
      const auto sequence = load_as<dds_sequence_t>(at);
      count = sequence._length;
      encoder_.number(sequence._length);
      at = reinterpret_cast<const std::byte*>(sequence._buffer);
    }
    const std::size_t stride = memory_bytes(node, depth + 1);
    if (depth + 1 == node.dimensions.size() && topic::number_bytes(node.type) > 0 && count > 0) {
      encoder_.align(cdr_alignment(node));  // numbers lie as in XCDR2
      encoder_.bytes({at, count * stride});
    } else {
      for (std::size_t i = 0; i < count; ++i) value(node, depth + 1, at + i * stride);
    }
    if (delimited) encoder_.end_delimited(begin);
  }

  void text(const char* text) {
    if (text == nullptr) text = "";  // beside the key of a disposed instance
    const std::size_t bytes = std::strlen(text) + 1;
    encoder_.number(static_cast<std::uint32_t>(bytes));
    encoder_.bytes(std::as_bytes(std::span(text, bytes)));
  }

  pubsub::cdr::Encoder encoder_;
};

}  // namespace

DdsSample::DdsSample(const DdsType& type) : type_(type), memory_(dds_alloc(type.bytes())) {}

DdsSample::~DdsSample() {
  clear();
  dds_free(memory_);
}

void DdsSample::clear() noexcept {
  if (type_.tree().plain) return;
  dds_sample_free(memory_, &type_.descriptor(), DDS_FREE_CONTENTS);
  std::memset(memory_, 0, type_.bytes());
}

void DdsSample::load(std::span<const std::byte> payload) {
  clear();
  const topic::TypeTree& tree = type_.tree();
  if (!tree.plain) return Loader(payload).load(tree.root, static_cast<std::byte*>(memory_));
  if (payload.size() != tree.bytes)
    throw Error(fmt::format("a sample has {} bytes, and its type {}", payload.size(), tree.bytes));
  std::memcpy(memory_, payload.data(), payload.size());
}

pubsub::RawSample raw_sample_of(const DdsType& type, const void* memory) {
  const topic::TypeTree& tree = type.tree();
  const auto* const bytes = static_cast<const std::byte*>(memory);
  pubsub::RawSample sample{.plain = tree.plain};
  if (tree.plain)
    sample.payload.assign(bytes, bytes + tree.bytes);
  else
    Saver(sample.payload, tree.root).save(tree.root, bytes);
  sample.key_hash = topic::key_hash_of(tree, sample.payload);
  return sample;
}

}  // namespace dunlin::app::gateway
