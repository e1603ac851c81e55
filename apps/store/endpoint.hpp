#pragma once

#include <cstdint>
#include <string>

namespace dunlin::app::resp {

/// Where clients connect.
struct Endpoint {
  std::string address;     // of this host, as a number
  std::uint16_t port = 0;  // 0: the kernel chooses one

  /// "127.0.0.1:6390", "[::1]:6390", "localhost:6390". Throws BadInput that names the option.
  [[nodiscard]] static Endpoint parse(const std::string& option, const std::string& text);
  [[nodiscard]] bool is_loopback() const noexcept;
  [[nodiscard]] std::string text() const;
};

inline constexpr const char* kDefaultEndpoint = "127.0.0.1:6390";

}  // namespace dunlin::app::resp
