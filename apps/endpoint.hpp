#pragma once

#include <cstdint>
#include <string>

namespace dunlin::app {

/// Where clients connect.
struct Endpoint {
  std::string address;     // this host's address, as a number
  std::uint16_t port = 0;  // 0: the kernel chooses one

  /// "127.0.0.1:6390", "[::1]:6390", "localhost:6390". Throws BadInput that
  /// names the option, and ends with the example.
  [[nodiscard]] static Endpoint parse(const std::string& option, const std::string& text,
                                      const char* example);
  [[nodiscard]] bool is_loopback() const noexcept;
  [[nodiscard]] std::string text() const;
};

}  // namespace dunlin::app
