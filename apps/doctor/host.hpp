#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The host that the doctor looks at: files below a root, and values that only the system can tell.
/// A test makes its own of both.
namespace dunlin::doctor {

struct Space {
  std::uint64_t size_bytes;
  std::uint64_t free_bytes;
  int fault = 0;  // errno: why nothing can be made there
};

/// A network device.
struct Interface {
  std::string name;
  bool up;
  bool loopback;
};

struct Host {
  std::filesystem::path root;
  std::function<std::optional<Space>()> shm_space;  // of /dev/shm
  std::function<bool()> has_barriers;               // membarrier, expedited
  bool has_tcp;                                     // this build
  bool has_ofi;
  bool has_verbs;
  std::function<std::vector<Interface>()> interfaces;
  std::function<std::vector<std::string>()> addresses;  // as devices_of("tcp") says
  std::function<std::vector<std::string>()> ranking;    // as devices_of("auto") says
  std::function<std::vector<std::string>()> networks;   // libfabric's, as devices_of("ofi") says
  std::function<std::vector<std::string>()> unfit_networks;  // libfabric's that we cannot use

  /// Its content without the line's end; none if it cannot be read.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
  /// The rest of the line that begins so, without blanks around it; none if there is none.
  [[nodiscard]] std::optional<std::string> line(const std::string& path,
                                                const std::string& beginning) const;
  [[nodiscard]] bool exists(const std::string& path) const;
  /// The names in a folder, sorted.
  [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;
};

[[nodiscard]] Host this_host();

}  // namespace dunlin::doctor
