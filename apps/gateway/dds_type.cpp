#include "gateway/dds_type.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include <dunlin/limits.hpp>

#include "command.hpp"

namespace dunlin::app::gateway {
namespace {

using topic::TypeNode;
using Wrap = TypeNode::Wrap;

constexpr std::size_t kMostOps = 0x7fff;  // a jump is a signed number of 16 bits
constexpr std::size_t kFixedKeyBytes = DDS_FIXED_KEY_MAX_SIZE;

// The header's macros mix enumerations, of which C++20 warns.
constexpr std::uint32_t op(auto... parts) { return (static_cast<std::uint32_t>(parts) | ...); }

bool is_text(const TypeNode& node) { return node.type == "string"; }
bool is_characters(const TypeNode& node) { return node.type.starts_with("char*"); }

/// The type code of one element, and the flags of a number.
struct Code {
  std::uint32_t value;
  std::uint32_t flags;
};
Code code_of(const TypeNode& node) {
  if (node.is_struct()) return {DDS_OP_VAL_STU, 0};
  if (is_text(node)) return {DDS_OP_VAL_STR, 0};
  if (is_characters(node)) return {DDS_OP_VAL_1BY, DDS_OP_FLAG_SGN};
  if (node.type == "bool") return {DDS_OP_VAL_BLN, 0};
  const std::uint32_t flags = node.type.starts_with('f')   ? DDS_OP_FLAG_FP
                              : node.type.starts_with('i') ? DDS_OP_FLAG_SGN
                                                           : 0U;
  switch (topic::number_bytes(node.type)) {
    case 1:
      return {DDS_OP_VAL_1BY, flags};
    case 2:
      return {DDS_OP_VAL_2BY, flags};
    case 4:
      return {DDS_OP_VAL_4BY, flags};
    case 8:
      return {DDS_OP_VAL_8BY, flags};
    default:
      throw BadInput(
          fmt::format("member '{}' is a '{}', which DDS does not have", node.name, node.type));
  }
}

std::size_t memory_alignment(const TypeNode& node, std::size_t depth) {
  if (depth < node.dimensions.size())
    return node.dimensions[depth].wrap == Wrap::array ? memory_alignment(node, depth + 1)
                                                      : alignof(void*);
  return is_text(node) ? alignof(void*) : node.alignment;
}

/// Where the members lie in memory, as a C compiler lays them out.
void lay_out(TypeNode& node) {
  std::size_t at = 0;
  node.alignment = 1;
  for (TypeNode& member : node.members) {
    if (member.is_struct()) lay_out(member);
    const std::size_t alignment = memory_alignment(member, 0);
    member.offset = round_up(at, alignment);
    at = member.offset + memory_bytes(member, 0);
    node.alignment = std::max(node.alignment, alignment);
  }
  node.size = round_up(at, node.alignment);
}

/// The bytes of a key of fixed size, in XCDR with this most alignment.
class KeySize {
 public:
  explicit KeySize(std::size_t most_alignment) : most_alignment_(most_alignment) {}
  void add(const TypeNode& node) {
    std::size_t count = 1;
    for (const auto& dimension : node.dimensions) count *= dimension.count;
    if (is_text(node)) fixed_ = false;
    const std::size_t unit = is_characters(node) ? 1 : node.size;
    if (unit > 0) bytes_ = round_up(bytes_, std::min(unit, most_alignment_));
    bytes_ += node.size * count;
  }
  [[nodiscard]] bool fits() const noexcept { return fixed_ && bytes_ <= kFixedKeyBytes; }

 private:
  std::size_t most_alignment_;
  std::size_t bytes_ = 0;
  bool fixed_ = true;
};

/// Writes the instructions: those of a struct, then those of what its members are made of.
class Assembler {
 public:
  struct Key {
    std::vector<std::uint32_t> path;  // instructions, each counted from its struct's first
    std::string name;
    const TypeNode* node;
  };
  std::vector<std::uint32_t> ops = {};
  std::vector<Key> keys = {};
  bool needs_xcdr2 = false;

  void assemble(const TypeNode& root) {
    pieces_.push_back({.node = &root, .depth = root.dimensions.size()});
    while (!pieces_.empty()) {
      const Piece piece = pieces_.front();
      pieces_.pop_front();
      if (ops.size() > kMostOps)
        throw BadInput("the type has too many members for Cyclone DDS (32767 instructions)");
      if (piece.jump != 0)
        ops[piece.jump] |= static_cast<std::uint32_t>(ops.size() - piece.instruction);
      if (piece.node->is_struct() && piece.depth == piece.node->dimensions.size())
        members(piece);
      else
        value(piece, *piece.node, piece.depth, 0, 0);
      ops.push_back(op(DDS_OP_RTS));
    }
    // By their place in the type.
    std::ranges::sort(keys, {}, &Key::path);
  }

 private:
  /// A struct, or an element of a sequence or array that has instructions of its own.
  struct Piece {
    const TypeNode* node;
    std::size_t depth;
    std::size_t instruction = 0;  // the one that jumps here
    std::size_t jump = 0;         // that instruction's word with the distance
    bool key = false;
    std::vector<std::uint32_t> path = {};
    std::string name = {};
  };

  void members(const Piece& piece) {
    const std::size_t begin = ops.size();
    if (piece.node->appendable) {
      ops.push_back(op(DDS_OP_DLC));
      needs_xcdr2 = true;
      if (piece.key)
        throw BadInput(
            fmt::format("key member '{}' is an appendable struct, which the keys of "
                        "Cyclone DDS cannot have",
                        piece.name));
    }
    for (const TypeNode& member : piece.node->members) {
      Piece below = piece;
      below.key |= member.key;
      below.name += (piece.name.empty() ? "" : ".") + member.name;
      below.path.push_back(static_cast<std::uint32_t>(ops.size() - begin));
      if (below.key) check_key(below, member);
      value(below, member, 0, member.offset, below.key ? op(DDS_OP_FLAG_KEY, DDS_OP_FLAG_MU) : 0U);
    }
  }

  void check_key(const Piece& at, const TypeNode& member) {
    for (const auto& dimension : member.dimensions)
      if (dimension.wrap != Wrap::array || is_text(member) || member.is_struct())
        throw BadInput(
            fmt::format("key member '{}' is a sequence, an optional member, or an array "
                        "of texts or structs, which the keys of Cyclone DDS cannot have",
                        at.name));
    if (!member.is_struct()) keys.push_back({.path = at.path, .name = at.name, .node = &member});
  }

  void value(const Piece& at, const TypeNode& node, std::size_t depth, std::size_t offset,
             std::uint32_t flags) {
    if (depth < node.dimensions.size() && node.dimensions[depth].wrap == Wrap::optional) {
      if (depth > 0)
        throw BadInput(fmt::format(
            "member '{}' has optional elements; DDS has optional members only", at.name));
      needs_xcdr2 = true;
      flags |= DDS_OP_FLAG_OPT;
      if (!(is_text(node) && node.dimensions.size() == 1)) flags |= DDS_OP_FLAG_EXT;
      ++depth;
    }
    if (depth == node.dimensions.size()) return single(at, node, offset, flags);
    if (node.dimensions[depth].wrap == Wrap::sequence)
      return collection(at, node, depth + 1, DDS_OP_VAL_SEQ, 0, offset, flags);
    std::size_t count = 1;
    for (; depth < node.dimensions.size() && node.dimensions[depth].wrap == Wrap::array; ++depth)
      count *= node.dimensions[depth].count;
    if (depth == node.dimensions.size() && is_characters(node)) count *= node.size;
    collection(at, node, depth, DDS_OP_VAL_ARR, count, offset, flags);
  }

  void single(const Piece& at, const TypeNode& node, std::size_t offset, std::uint32_t flags) {
    if (is_characters(node))
      return collection(at, node, node.dimensions.size(), DDS_OP_VAL_ARR, node.size, offset, flags);
    const Code code = code_of(node);
    const std::size_t begin = ops.size();
    const std::uint32_t type = node.is_struct() ? op(DDS_OP_VAL_EXT) : code.value;
    append({op(DDS_OP_ADR, type << 16U, flags, code.flags), static_cast<std::uint32_t>(offset)});
    if (!node.is_struct()) return;
    const bool external = (flags & DDS_OP_FLAG_EXT) != 0;
    jump(at, node, node.dimensions.size(), begin, external ? 4 : 3, (flags & DDS_OP_FLAG_KEY) != 0);
    if (external) ops.push_back(static_cast<std::uint32_t>(node.size));
  }

  /// An array or a sequence; its elements lie below `depth` dimensions.
  void collection(const Piece& at, const TypeNode& node, std::size_t depth, std::uint32_t kind,
                  std::size_t count, std::size_t offset, std::uint32_t flags) {
    const bool array = kind == op(DDS_OP_VAL_ARR);
    Code element = {};
    bool simple = false;
    if (depth < node.dimensions.size()) {
      if (node.dimensions[depth].wrap == Wrap::optional)
        throw BadInput(fmt::format(
            "member '{}' has optional elements; DDS has optional members only", at.name));
      element.value =
          op(node.dimensions[depth].wrap == Wrap::array ? DDS_OP_VAL_ARR : DDS_OP_VAL_SEQ);
    } else if (is_characters(node) && !array) {
      element.value = op(DDS_OP_VAL_ARR);  // each text is an array of characters
    } else {
      element = code_of(node);
      simple = !node.is_struct();
    }
    const std::size_t begin = ops.size();
    append({op(DDS_OP_ADR, kind << 16U, element.value << 8U, flags, element.flags),
            static_cast<std::uint32_t>(offset)});
    if (array) ops.push_back(static_cast<std::uint32_t>(count));
    if (simple) return;
    const auto bytes = static_cast<std::uint32_t>(memory_bytes(node, depth));
    if (!array) ops.push_back(bytes);
    jump(at, node, depth, begin, array ? 5 : 4, false);
    if (array) ops.push_back(bytes);
  }

  /// The next instruction is `words` on; the one for the parts of this, where they will be.
  void jump(const Piece& at, const TypeNode& node, std::size_t depth, std::size_t begin,
            std::uint32_t words, bool key) {
    Piece piece = at;
    piece.node = &node;
    piece.depth = depth;
    piece.instruction = begin;
    piece.jump = ops.size();
    piece.key = key;
    pieces_.push_back(std::move(piece));
    ops.push_back(words << 16U);
  }

  void append(std::initializer_list<std::uint32_t> words) {
    ops.insert(ops.end(), words.begin(), words.end());
  }

  std::deque<Piece> pieces_;
};

}  // namespace

std::size_t memory_bytes(const TypeNode& node, std::size_t depth) {
  if (depth < node.dimensions.size()) switch (node.dimensions[depth].wrap) {
      case Wrap::array:
        return node.dimensions[depth].count * memory_bytes(node, depth + 1);
      case Wrap::sequence:
        return sizeof(dds_sequence_t);
      case Wrap::optional:
        return sizeof(void*);
    }
  return is_text(node) ? sizeof(char*) : node.size;
}

DdsType::DdsType(const topic::TypeTree& type, std::string name)
    : name_(std::move(name)), tree_(type) {
  if (!tree_.plain) lay_out(tree_.root);
  Assembler assembler;
  assembler.assemble(tree_.root);
  needs_xcdr2_ = assembler.needs_xcdr2;
  ops_ = std::move(assembler.ops);
  KeySize xcdr1(8);
  KeySize xcdr2(4);
  std::vector<std::uint32_t> places;
  for (const Assembler::Key& key : assembler.keys) {
    places.push_back(static_cast<std::uint32_t>(ops_.size()));
    ops_.push_back(op(DDS_OP_KOF, key.path.size()));
    ops_.insert(ops_.end(), key.path.begin(), key.path.end());
    key_names_.push_back(key.name);
    xcdr1.add(*key.node);
    xcdr2.add(*key.node);
  }
  for (std::size_t i = 0; i < places.size(); ++i)
    keys_.push_back({.m_name = key_names_[i].c_str(),
                     .m_offset = places[i],
                     .m_idx = static_cast<std::uint32_t>(i)});
  const std::uint32_t flags = keys_.empty() ? 0U
                                            : (xcdr1.fits() ? DDS_TOPIC_FIXED_KEY : 0U) |
                                                  (xcdr2.fits() ? DDS_TOPIC_FIXED_KEY_XCDR2 : 0U);
  descriptor_ = std::make_unique<const dds_topic_descriptor_t>(
      dds_topic_descriptor_t{.m_size = static_cast<std::uint32_t>(bytes()),
                             .m_align = static_cast<std::uint32_t>(tree_.root.alignment),
                             .m_flagset = flags,
                             .m_nkeys = static_cast<std::uint32_t>(keys_.size()),
                             .m_typename = name_.c_str(),
                             .m_keys = keys_.empty() ? nullptr : keys_.data(),
                             .m_nops = static_cast<std::uint32_t>(ops_.size()),
                             .m_ops = ops_.data(),
                             .m_meta = "",
                             .type_information = {},
                             .type_mapping = {},
                             .restrict_data_representation = 0});
}

}  // namespace dunlin::app::gateway
