#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dds/dds.h>

#include "topic/type_tree.hpp"

namespace dunlin::app::gateway {

/// A topic's type as Cyclone DDS knows it: the instructions that its serializer follows, made at
/// run time of the text of the type, as `idlc` would make them of IDL. Immutable.
///
/// A sample in memory is what `idlc` would declare: texts are `char*`, sequences are
/// `dds_sequence_t`, an optional member is a pointer. A plain type's sample is its payload.
class DdsType {
 public:
  /// Throws BadInput that names the member which DDS, or Cyclone, cannot have.
  DdsType(const topic::TypeTree& type, std::string name);

  [[nodiscard]] const dds_topic_descriptor_t& descriptor() const noexcept { return *descriptor_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The type; the members' offsets and the structs' sizes are those of a sample in memory.
  [[nodiscard]] const topic::TypeTree& tree() const noexcept { return tree_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return tree_.root.size; }
  [[nodiscard]] bool keyed() const noexcept { return !keys_.empty(); }
  /// It has appendable or optional parts, which need XCDR version 2.
  [[nodiscard]] bool needs_xcdr2() const noexcept { return needs_xcdr2_; }

 private:
  std::string name_;
  topic::TypeTree tree_;
  bool needs_xcdr2_ = false;
  std::vector<std::uint32_t> ops_;
  std::vector<std::string> key_names_;
  std::vector<dds_key_descriptor_t> keys_;
  std::unique_ptr<const dds_topic_descriptor_t> descriptor_;
};

/// The bytes in memory of what lies below `depth` dimensions of the member.
[[nodiscard]] std::size_t memory_bytes(const topic::TypeNode& node, std::size_t depth);

}  // namespace dunlin::app::gateway
