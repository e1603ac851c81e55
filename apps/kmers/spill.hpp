#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "fabric/system.hpp"

namespace dunlin::kmers {

/// Opens a new file in the folder that has no name: nothing is left of it if this process is
/// killed. An empty Descriptor, and errno, if that fails.
[[nodiscard]] Descriptor nameless_file(const std::string& folder) noexcept;

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// A Spill is data of this process that is written to a nameless file, and read again from its
/// beginning, as often as needed.
class Spill {
 public:
  /// Throws Error that names the folder, as all calls do.
  explicit Spill(const std::string& folder);

  /// Adds to the end. Requires that nothing has been read yet.
  void write(const void* from, std::size_t bytes);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  void rewind();
  /// Returns how many bytes it has read: fewer than asked for at the end only.
  [[nodiscard]] std::size_t read(void* to, std::size_t bytes);

 private:
  [[noreturn]] void fail() const;

  std::string folder_;
  std::uint64_t bytes_ = 0;
  File file_;
};

}  // namespace dunlin::kmers
