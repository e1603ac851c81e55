#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <dunlin/pubsub/cdr.hpp>
#include <dunlin/pubsub/type_support.hpp>
#include <dunlin/table/entry_type.hpp>

#include "numbers.hpp"
#include "pubsub/type_tree.hpp"

/// The type of a topic that is a dataclass: its text, which is that of the C++ struct with the same
/// members (pubsub/topic_type.hpp), and the way from an object to the bytes of a sample and back.
/// dunlin/_types.py makes the description of a dataclass. All functions require the GIL.
namespace dunlin::python {

namespace nb = nanobind;

/// A member of a type, or an element of one.
struct TopicNode {
  enum class Kind : std::uint8_t {
    number,
    string,     // std::string
    text,       // std::array<char, count>
    bytes,      // std::vector<std::uint8_t>, given as bytes
    numbers,    // an array of numbers, of all its dimensions; without any, std::vector
    array,      // count other elements
    sequence,   // std::vector of other elements
    optional,   // std::optional
    structure,  // a dataclass
  };
  Kind kind = Kind::number;
  EntryType number = EntryType::i32;
  bool appendable = false;
  bool is_key = false;
  std::size_t count = 1;  // of elements, or of the characters of a text
  std::vector<std::size_t> dimensions = {};
  std::string name = {};              // of a member
  std::string type = {};              // of a struct
  std::vector<TopicNode> inner = {};  // the element, or the members of a struct

  // The memory of a plain type.
  bool plain = true;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t alignment = 1;

  nb::object make = {};   // the dataclass, or the enum of a number; null: a plain number
  nb::object names = {};  // the members' names: a tuple
  nb::object dtype = {};  // of numbers
  nb::object shape = {};
};

class TopicType {
 public:
  /// Throws TypeError or ValueError for a description that is no type of a topic.
  explicit TopicType(nb::handle description);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::string& name() const noexcept { return root_.type; }
  [[nodiscard]] const pubsub::TypeTree& tree() const noexcept { return tree_; }
  [[nodiscard]] const TopicNode& root() const noexcept { return root_; }
  /// Throws TypeError, ValueError or OverflowError for an object that does not fit the type.
  [[nodiscard]] pubsub::RawSample sample_of(nb::handle object) const;
  /// The object of a sample's bytes; nothing: they are no sample of the type.
  [[nodiscard]] std::optional<nb::object> object_of(bool plain,
                                                    std::span<const std::byte> bytes) const;

 private:
  TopicNode root_;
  std::string text_;
  pubsub::TypeTree tree_;
};

/// Whether XCDR2 has no delimiter before the elements of an array or sequence.
[[nodiscard]] bool is_bare(const TopicNode& collection) noexcept;
/// Writes an object to the memory of a plain type, which holds zeros.
void store_plain(const TopicNode& node, nb::handle object, std::byte* at);
[[nodiscard]] nb::object load_plain(const TopicNode& node, const std::byte* at);
void encode(const TopicNode& node, nb::handle object, pubsub::cdr::Encoder& to);
/// Null if the bytes end too early.
[[nodiscard]] nb::object decode(const TopicNode& node, pubsub::cdr::Decoder& from);

}  // namespace dunlin::python
