#include "read_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "command.hpp"
#include "fabric/private_file.hpp"
#include "text.hpp"

namespace dunlin::app {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

std::string read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) throw BadInput(fmt::format("{}: {}", printable(path, 300), std::strerror(errno)));
  std::string content;
  char part[65536];
  while (const std::size_t bytes = std::fread(part, 1, sizeof part, file.get())) {
    content.append(part, bytes);
    if (content.size() > kMaxFileBytes) {
      throw BadInput(fmt::format("{}: larger than the {} MB that a file may have",
                                 printable(path, 300), kMaxFileBytes >> 20));
    }
  }
  if (std::ferror(file.get()) != 0) {
    throw BadInput(fmt::format("{}: {}", printable(path, 300), std::strerror(errno)));
  }
  return content;
}

std::string read_secret_file(const std::string& path, const std::string& what) {
  if (path.empty()) return {};
  try {
    return read_secret(path, what);
  } catch (const Error& error) {
    throw BadInput(error.what());
  }
}

}  // namespace dunlin::app
