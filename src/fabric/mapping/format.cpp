#include "fabric/mapping/format.hpp"

#include <algorithm>

namespace dunlin::mapping {
namespace {

template <std::size_t Size>
bool ends(const std::array<char, Size>& name) {
  return std::find(name.begin(), name.end(), '\0') != name.end();
}

bool known(MappingKind kind) {
  return kind == MappingKind::base || kind == MappingKind::region ||
         kind == MappingKind::published || kind == MappingKind::ring;
}

}  // namespace

std::string fault_of(const MappingHeader& header, std::uint64_t file_bytes) {
  if (header.magic != kMappingMagic) return "it is not a Dunlin segment (wrong magic)";
  if (header.version != kMappingVersion)
    return "it has format version " + std::to_string(header.version) + ", this process reads " +
           std::to_string(kMappingVersion);
  if (!known(header.kind))
    return "its kind " + std::to_string(static_cast<std::uint32_t>(header.kind)) + " is unknown";
  if (!ends(header.fabric) || !ends(header.group) || !ends(header.member) || !ends(header.region))
    return "a name in its header does not end";
  if (header.members == 0 || header.members > kMaxRanks || header.owner_rank >= header.members)
    return "rank " + std::to_string(header.owner_rank) + " of " + std::to_string(header.members) +
           " members is impossible";
  if (header.layout_text_bytes > kMaxLayoutTextBytes) return "its layout text is too long";
  if (header.payload_offset != payload_offset(header.layout_text_bytes))
    return "its payload does not start behind its header";
  if (header.payload_bytes == 0 || header.payload_bytes > kMaxRegionBytes)
    return "a payload of " + std::to_string(header.payload_bytes) + " bytes is impossible";
  if (file_bytes < header.payload_offset + header.payload_bytes)
    return "it is cut short: " + std::to_string(file_bytes) + " bytes instead of " +
           std::to_string(header.payload_offset + header.payload_bytes);
  return {};
}

}  // namespace dunlin::mapping
