#include "topic_type.hpp"

#include <algorithm>
#include <array>

#include <nanobind/stl/string.h>

#include <dunlin/limits.hpp>
#include <dunlin/pubsub/limits.hpp>

#include "numbers.hpp"
#include "pubsub/sample_key.hpp"

namespace dunlin::python {
namespace {

using Kind = TopicNode::Kind;

TopicNode parse(nb::handle description, const std::string& name);

void measure(TopicNode& node) {
  node.plain = std::ranges::all_of(node.inner, &TopicNode::plain) && !node.appendable;
  if (!node.plain) return;
  for (TopicNode& member : node.inner) {
    member.offset = round_up(node.bytes, member.alignment);
    node.bytes = member.offset + member.bytes;
    node.alignment = std::max(node.alignment, member.alignment);
  }
  node.bytes = round_up(node.bytes, node.alignment);
}

void parse_struct(nb::tuple description, TopicNode& node) {
  node.kind = Kind::structure;
  node.type = nb::cast<std::string>(description[1]);
  node.appendable = nb::cast<bool>(description[2]);
  const nb::list members = nb::cast<nb::list>(description[3]);
  node.make = nb::borrow(description[4]);
  if (members.empty() || members.size() > kMaxColumns)
    throw nb::type_error((node.type + " has " + std::to_string(members.size()) +
                          " fields; a type of a topic has 1 to " + std::to_string(kMaxColumns) +
                          " (kMaxColumns)")
                             .c_str());
  nb::list names;
  for (nb::handle member : members) {
    const auto parts = nb::cast<nb::tuple>(member);
    node.inner.push_back(parse(parts[1], nb::cast<std::string>(parts[0])));
    node.inner.back().is_key = nb::cast<bool>(parts[2]);
    names.append(parts[0]);
  }
  node.names = nb::tuple(names);
  measure(node);
}

void parse_numbers(nb::tuple description, TopicNode& node) {
  node.kind = Kind::numbers;
  node.number = number_named(nb::cast<std::string>(description[1]));
  const auto shape = nb::cast<nb::tuple>(description[2]);
  node.alignment = number_bytes(node.number);
  node.plain = !shape.empty();
  for (nb::handle length : shape) {
    node.dimensions.push_back(nb::cast<std::size_t>(length));
    node.count *= node.dimensions.back();
  }
  node.bytes = node.count * node.alignment;
  node.shape = shape;
  node.dtype = nb::borrow(description[3]);
}

TopicNode parse(nb::handle description, const std::string& name) {
  TopicNode node;
  node.name = name;
  const auto parts = nb::cast<nb::tuple>(description);
  const std::string kind = nb::cast<std::string>(parts[0]);
  if (kind == "struct") {
    parse_struct(parts, node);
  } else if (kind == "numbers") {
    parse_numbers(parts, node);
  } else if (kind == "number") {
    node.number = number_named(nb::cast<std::string>(parts[1]));
    node.bytes = node.alignment = number_bytes(node.number);
    if (!parts[2].is_none()) node.make = nb::borrow(parts[2]);
  } else if (kind == "text") {
    node.kind = Kind::text;
    node.bytes = node.count = nb::cast<std::size_t>(parts[1]);
  } else if (kind == "array") {
    node.kind = Kind::array;
    node.count = nb::cast<std::size_t>(parts[1]);
    node.inner.push_back(parse(parts[2], name));
    node.plain = node.inner[0].plain;
    node.alignment = node.inner[0].alignment;
    node.bytes = node.count * node.inner[0].bytes;
  } else {
    node.plain = false;
    node.kind = kind == "string"     ? Kind::string
                : kind == "bytes"    ? Kind::bytes
                : kind == "sequence" ? Kind::sequence
                                     : Kind::optional;
    if (parts.size() > 1) node.inner.push_back(parse(parts[1], name));
  }
  return node;
}

// --- the text, as describe_type() of the C++ struct makes it -------------------------------------

void describe_members(const TopicNode& node, const std::string& path, std::string& to);

void describe_node(const TopicNode& node, std::string path, const std::string& note,
                   std::string& to) {
  switch (node.kind) {
    case Kind::numbers:
      for (const std::size_t length : node.dimensions) path += "[" + std::to_string(length) + "]";
      if (node.dimensions.empty()) path += "[]";
      [[fallthrough]];
    case Kind::number:
      to += path + " " + std::string(describe(node.number)) + note + "\n";
      return;
    case Kind::string:
      to += path + " string" + note + "\n";
      return;
    case Kind::text:
      to += path + " char*" + std::to_string(node.count) + note + "\n";
      return;
    case Kind::bytes:
      to += path + "[] u8" + note + "\n";
      return;
    case Kind::array:
      return describe_node(node.inner[0], path + "[" + std::to_string(node.count) + "]", note, to);
    case Kind::sequence:
      return describe_node(node.inner[0], path + "[]", note, to);
    case Kind::optional:
      return describe_node(node.inner[0], path + "?", note, to);
    case Kind::structure:
      to += path + " " + node.type + (node.appendable ? " appendable" : " final") + note + "\n";
      return describe_members(node, path + ".", to);
  }
}

void describe_members(const TopicNode& node, const std::string& path, std::string& to) {
  for (const TopicNode& member : node.inner) {
    std::string note;
    if (node.plain) note = " @" + std::to_string(member.offset);
    if (member.is_key) note += " key";
    describe_node(member, path + member.name, note, to);
  }
}

}  // namespace

bool is_bare(const TopicNode& collection) noexcept {
  switch (collection.kind) {
    case Kind::numbers:
    case Kind::text:
    case Kind::bytes:
      return true;
    case Kind::array: {
      const TopicNode& inner = collection.inner[0];
      const bool is_sequence = inner.kind == Kind::numbers && inner.dimensions.empty();
      return (inner.kind == Kind::array || inner.kind == Kind::numbers ||
              inner.kind == Kind::text) &&
             !is_sequence && is_bare(inner);
    }
    case Kind::sequence:
      return collection.inner[0].kind == Kind::number;
    default:
      return false;
  }
}

TopicType::TopicType(nb::handle description) : root_(parse(description, {})) {
  if (root_.kind != Kind::structure) throw nb::type_error("the type of a topic is a dataclass");
  text_ = root_.type + (root_.appendable ? " appendable" : " final");
  if (root_.plain) text_ += " plain " + std::to_string(root_.bytes);
  text_ += '\n';
  describe_members(root_, {}, text_);
  if (text_.size() > pubsub::kMaxTypeTextBytes)
    throw nb::type_error((root_.type + " is described by more than " +
                          std::to_string(pubsub::kMaxTypeTextBytes) + " bytes (kMaxTypeTextBytes)")
                             .c_str());
  tree_ = pubsub::parse_type(text_);
}

pubsub::RawSample TopicType::sample_of(nb::handle object) const {
  if (!PyObject_IsInstance(object.ptr(), root_.make.ptr()))
    throw nb::type_error(
        ("expected a " + root_.type + ", not " + nb::inst_name(object).c_str()).c_str());
  pubsub::RawSample sample{.plain = root_.plain};
  if (root_.plain) {
    sample.payload.resize(root_.bytes);
    store_plain(root_, object, sample.payload.data());
  } else {
    pubsub::cdr::Encoder encoder(sample.payload, root_.appendable);
    encode(root_, object, encoder);
    encoder.finish();
  }
  if (tree_.keyed) sample.key_hash = pubsub::key_hash_of(tree_, sample.payload);
  return sample;
}

std::optional<nb::object> TopicType::object_of(bool plain, std::span<const std::byte> bytes) const {
  if (plain != root_.plain) return std::nullopt;
  if (plain) {
    if (bytes.size() != root_.bytes) return std::nullopt;
    return load_plain(root_, bytes.data());
  }
  pubsub::cdr::Decoder decoder(bytes);
  if (!decoder.good() || decoder.delimited() != root_.appendable) return std::nullopt;
  nb::object object = decode(root_, decoder);
  if (!decoder.good() || !object.is_valid()) return std::nullopt;
  return object;
}

}  // namespace dunlin::python
