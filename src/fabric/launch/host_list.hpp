#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dunlin::launch {

/// Slurm's short way to write many host names: "node[01-03,07],gpu-[1-2]-ib0,login".
struct HostList {
  std::string first;
  std::uint64_t hosts;
};
/// Throws Error that says where the text is no such list.
[[nodiscard]] HostList parse_host_list(std::string_view text);

}  // namespace dunlin::launch
