#pragma once

#include <string>

/// A directory for the files of a measurement or of a server: below TMPDIR, else /tmp. Goes with
/// this object.
namespace dunlin::bench {

class Folder {
 public:
  /// Throws Error.
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// In the process that made it, removes it.
  ~Folder();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  int owner_;
};

}  // namespace dunlin::bench
