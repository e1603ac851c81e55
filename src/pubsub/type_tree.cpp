#include "pubsub/type_tree.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

namespace dunlin::pubsub {
namespace {

constexpr std::string_view kText = "char*";
constexpr std::size_t kMostDimensions = 32;
constexpr std::size_t kMostBytes = kMaxCastBytes;  // a sample in memory
/// The most memory that a text, a sequence, or an optional member takes itself.
constexpr std::size_t kHandleBytes = 32;

[[noreturn]] void refuse(const std::string& why) {
  throw Error("the type of the topic cannot be read: " + why);
}

/// Reads a number of a type: at most kMostBytes, so that sums of two cannot overflow.
[[nodiscard]] std::size_t number_of(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    refuse("'" + std::string(digits) + "' is no number");
  if (value > kMostBytes)
    refuse(std::to_string(value) + " is more than a sample can have (" +
           std::to_string(kMostBytes) + " bytes)");
  return value;
}

[[nodiscard]] std::size_t times(std::size_t bytes, std::size_t count, const std::string& name) {
  if (count != 0 && bytes > kMostBytes / count)
    refuse("member '" + name + "' takes more than a sample can have (" +
           std::to_string(kMostBytes) + " bytes)");
  return bytes * count;
}

/// The most memory that a value takes, without what texts, sequences and optionals point to.
struct Memory {
  std::size_t bytes;
  std::size_t alignment;
};

/// The memory of a type that is not plain; refuses a type that is too large.
[[nodiscard]] Memory memory_of(const TypeNode& node) {
  constexpr Memory kHandle{kHandleBytes, kWordBytes};
  Memory all{node.size, node.alignment};
  if (node.is_struct()) {
    all = {0, 1};
    for (const TypeNode& member : node.members) {
      const Memory one = memory_of(member);
      all.alignment = std::max(all.alignment, one.alignment);
      all.bytes = times(round_up(all.bytes, one.alignment) + one.bytes, 1, member.name);
    }
    all.bytes = round_up(all.bytes, all.alignment);
  } else if (node.size == 0) {
    all = kHandle;
  }
  for (std::size_t at = node.dimensions.size(); at-- > 0;) {
    const TypeNode::Dimension& dimension = node.dimensions[at];
    if (dimension.wrap == TypeNode::Wrap::array)
      all.bytes = times(all.bytes, dimension.count, node.name);
    else
      all = kHandle;
  }
  return all;
}

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Reads a name such as "ps[2]?", which is `ps` with two dimensions, optional.
void read_name(std::string_view name, TypeNode& node) {
  const std::size_t end = std::min(name.find_first_of("[?"), name.size());
  node.name = std::string(name.substr(0, end));
  name.remove_prefix(end);
  while (!name.empty()) {
    if (node.dimensions.size() == kMostDimensions)
      refuse("member '" + node.name + "' has more than " + std::to_string(kMostDimensions) +
             " dimensions");
    if (name.front() == '?') {
      node.dimensions.push_back({TypeNode::Wrap::optional, 0});
      name.remove_prefix(1);
      continue;
    }
    const std::size_t close = name.find(']');
    if (name.front() != '[' || close == std::string_view::npos)
      refuse("'" + std::string(name) + "' is no dimension of member '" + node.name + "'");
    const std::string_view count = name.substr(1, close - 1);
    // With arrays of no elements, a sample without bytes could take long to walk through.
    if (!count.empty() && number_of(count) == 0)
      refuse("member '" + node.name + "' is an array without elements");
    node.dimensions.push_back(count.empty()
                                  ? TypeNode::Dimension{TypeNode::Wrap::sequence, 0}
                                  : TypeNode::Dimension{TypeNode::Wrap::array, number_of(count)});
    name.remove_prefix(close + 1);
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lines_(split(text, '\n')) {}

  TypeTree parse() {
    if (lines_.empty()) throw Error("the topic has no type yet: no member reads or writes it");
    const auto words = split(lines_[at_++], ' ');
    if (words.size() < 2) refuse("'" + std::string(lines_[0]) + "' is no name and kind");
    TypeTree tree;
    tree.root.type = std::string(words[0]);
    tree.root.appendable = words[1] == "appendable";
    tree.plain = words.size() > 3 && words[2] == "plain";
    if (tree.plain) tree.bytes = number_of(words[3]);
    plain_ = tree.plain;
    read_members(tree.root, "");
    if (!tree.plain) {
      static_cast<void>(memory_of(tree.root));
    } else {
      if (tree.root.size > tree.bytes || tree.bytes % tree.root.alignment != 0)
        refuse("its members take " + std::to_string(tree.root.size) + " bytes, and it has " +
               std::to_string(tree.bytes));
      tree.root.size = tree.bytes;  // larger if it is aligned to more than its members
    }
    tree.has_bool = has_bool_;
    tree.keyed = std::ranges::any_of(tree.root.members, &TypeNode::key);
    return tree;
  }

 private:
  void read_members(TypeNode& parent, const std::string& prefix) {
    while (at_ < lines_.size() && lines_[at_].starts_with(prefix)) {
      const auto words = split(lines_[at_], ' ');
      if (words.size() < 2) refuse("'" + std::string(lines_[at_]) + "' is no member");
      const std::string_view path = words[0].substr(prefix.size());
      ++at_;
      TypeNode node;
      read_name(path, node);
      node.type = std::string(words[1]);
      const bool is_struct = words.size() > 2 && (words[2] == "final" || words[2] == "appendable");
      node.appendable = is_struct && words[2] == "appendable";
      // A member, or its type, may itself be called "key".
      for (const std::string_view word : std::span(words).subspan(2)) {
        if (word.starts_with('@')) node.offset = number_of(word.substr(1));
        node.key |= word == "key";
      }
      has_bool_ |= node.type == "bool";
      const bool is_text = node.type.starts_with(kText);
      if (is_struct) {
        if (is_text || node.type == "string" || number_bytes(node.type) > 0)
          refuse("member '" + node.name + "' is a struct with the name of another type");
        read_members(node, std::string(words[0]) + ".");
      } else {
        node.size = is_text ? number_of(std::string_view(node.type).substr(kText.size()))
                            : number_bytes(node.type);
        if (is_text && node.size == 0) refuse("member '" + node.name + "' has no characters");
        node.alignment = is_text ? 1 : std::max<std::size_t>(node.size, 1);
      }
      parent.members.push_back(std::move(node));
    }
    if (parent.members.empty()) refuse("struct '" + parent.type + "' has no members");
    if (plain_) measure(parent);
  }

  /// Lays out a plain struct; refuses a member that cannot be part of one, or not at that offset.
  static void measure(TypeNode& node) {
    for (const TypeNode& member : node.members) {
      std::size_t bytes = member.size;
      for (const auto& dimension : member.dimensions) {
        if (dimension.wrap != TypeNode::Wrap::array)
          refuse("member '" + member.name + "' of a plain type is a sequence or optional");
        bytes = times(bytes, dimension.count, member.name);
      }
      if (member.type == "string")
        refuse("member '" + member.name + "' of a plain type is a string");
      if (member.offset % member.alignment != 0)
        refuse("member '" + member.name + "' cannot lie at " + std::to_string(member.offset));
      node.alignment = std::max(node.alignment, member.alignment);
      node.size = std::max(node.size, member.offset + bytes);
    }
    node.size = round_up(node.size, node.alignment);
  }

  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
  bool plain_ = false;
  bool has_bool_ = false;
};

}  // namespace

std::size_t number_bytes(std::string_view type) noexcept {
  constexpr std::array<std::pair<std::string_view, std::size_t>, 11> kNumbers{{{"bool", 1},
                                                                               {"i8", 1},
                                                                               {"u8", 1},
                                                                               {"i16", 2},
                                                                               {"u16", 2},
                                                                               {"i32", 4},
                                                                               {"u32", 4},
                                                                               {"f32", 4},
                                                                               {"i64", 8},
                                                                               {"u64", 8},
                                                                               {"f64", 8}}};
  const auto* const found =
      std::ranges::find(kNumbers, type, &std::pair<std::string_view, std::size_t>::first);
  return found == kNumbers.end() ? 0 : found->second;
}

bool has_delimiter(const TypeNode& node, std::size_t depth) noexcept {
  const auto is_array = [&](std::size_t at) {
    return node.dimensions[at].wrap == TypeNode::Wrap::array;
  };
  const bool number = number_bytes(node.type) > 0;
  if (!is_array(depth)) return !(number && depth + 1 == node.dimensions.size());
  if (depth > 0 && is_array(depth - 1)) return false;  // the inner dimension of an array
  for (std::size_t at = depth; at < node.dimensions.size(); ++at)
    if (!is_array(at)) return true;
  return !number && !node.type.starts_with(kText);
}

TypeTree parse_type(std::string_view text) { return Parser(text).parse(); }

}  // namespace dunlin::pubsub
