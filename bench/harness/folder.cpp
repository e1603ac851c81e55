#include "bench/harness/folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::bench {

Folder::Folder() : owner_(::getpid()) {
  std::string pattern = (std::filesystem::temp_directory_path() / "dunlin-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Error("bench: no directory " + pattern + " can be made: " + std::strerror(errno) +
                "; set TMPDIR to one that can be written to");
  }
  path_ = pattern;
}

Folder::~Folder() {
  if (::getpid() != owner_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dunlin::bench
