#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

#include "fabric/forking.hpp"
#include "fabric/mapping/format.hpp"
#include "fabric/system.hpp"

/// Memory segments in /dev/shm without a name: a process that holds the descriptor or a mapping
/// keeps them alive, and nothing is left when the last holder has ended, however it ended.
namespace dunlin::mapping {

/// The contents of a segment's header, except the layout of its bytes.
struct MappingInfo {
  MappingKind kind = MappingKind::region;
  std::uint32_t owner_pid = 0;
  std::uint32_t owner_uid = 0;
  std::uint32_t owner_rank = 0;
  std::uint32_t members = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t generation = 0;
  std::uint64_t layout_hash = 0;
  std::uint64_t bytes = 0;
  std::string fabric = {};
  std::string group = {};
  std::string member = {};
  std::string region = {};
  std::string layout_text = {};
};

/// A part of a file in this process's address space, shared with others, but not with children: a
/// child has zeros of its own in its place, for destructors that run there. A child that is made
/// without fork(), by the system call alone, has nothing there.
///
/// The child inherits the memory for the moment until its handler replaces it. Else the handlers of
/// others, which may run before, could get this place for memory of theirs.
class Mapping final : private ForkAware {
 public:
  Mapping(const Descriptor& file, std::uint64_t offset, std::uint64_t bytes, int protection);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() override;
  [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }

 private:
  void before_fork() noexcept override;
  void in_parent() noexcept override;
  void in_child() noexcept override;

  std::span<std::byte> memory_;
};

/// A segment of this process. Its descriptor stays open, so that observers find it in /proc.
struct OwnMapping {
  Descriptor file;
  std::shared_ptr<Mapping> mapping;
};

/// A peer's segment, checked and mapped.
struct PeerMapping {
  MappingInfo info;
  std::shared_ptr<Mapping> mapping;
};

/// Makes a zeroed segment, with all its memory reserved. Throws Error if there is not enough. With
/// an access group, that Unix group may open the segment, too.
[[nodiscard]] OwnMapping create_mapping(const MappingInfo& info, std::optional<gid_t> access_group);

/// Reads and checks the header of any file. Throws Error that says what is wrong with it.
[[nodiscard]] MappingInfo read_mapping_info(const Descriptor& file);

/// Maps a segment that another member has sent. If that member is in this process (members may be
/// threads), both get the same addresses.
[[nodiscard]] PeerMapping map_peer(const Descriptor& file);

}  // namespace dunlin::mapping
