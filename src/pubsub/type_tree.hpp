#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The type of a topic, parsed from its text (dunlin/pubsub/topic_type.hpp). With it a tool reads
/// samples without their struct, and a relay checks its clients' samples.
namespace dunlin::pubsub {

struct TypeNode {
  enum class Wrap : std::uint8_t { array, sequence, optional };
  struct Dimension {
    Wrap wrap;
    std::size_t count;  // the length of an array
  };
  std::string name = {};
  std::string type = {};                   // "i32", "string", "char*16", or a struct's name
  std::vector<Dimension> dimensions = {};  // from the outside in
  std::size_t offset = 0;                  // for plain types
  std::size_t size = 0;                    // for plain types: size of one element
  std::size_t alignment = 1;
  bool key = false;
  bool appendable = false;
  std::vector<TypeNode> members = {};  // the members of a struct

  [[nodiscard]] bool is_struct() const noexcept { return !members.empty(); }
};

struct TypeTree {
  TypeNode root;
  bool plain = false;
  std::size_t bytes = 0;  // for plain types
  bool keyed = false;
  bool has_bool = false;
};

/// Whether XCDR2 has a delimiter before this dimension of a member.
[[nodiscard]] bool has_delimiter(const TypeNode& node, std::size_t depth) noexcept;
/// Throws Error for a text that describes no valid type; all members of a plain type must lie
/// within its bytes.
[[nodiscard]] TypeTree parse_type(std::string_view text);
/// The size of a number's type, such as 4 for "i32"; 0 for a type that is no number.
[[nodiscard]] std::size_t number_bytes(std::string_view type) noexcept;

}  // namespace dunlin::pubsub
