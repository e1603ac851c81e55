#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace dunlin::app::resp {

/// The name of a script: the SHA-1 of its text, in hexadecimal digits.
[[nodiscard]] std::string script_name(std::string_view text);

/// The scripts that clients have sent to this server, by their names. The oldest ones go when there
/// are too many; clients send a script again that is not there.
class Scripts {
 public:
  /// Returns its name.
  std::string add(std::string_view text);
  /// Null if it is not there.
  [[nodiscard]] const std::string* find(std::string_view name) const;
  void clear() noexcept;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
  std::deque<std::string> order_;
  std::size_t bytes_ = 0;
};

}  // namespace dunlin::app::resp
