#include "output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "command.hpp"
#include "text.hpp"

namespace dunlin::app {

namespace fs = std::filesystem;

namespace {

/// Terminals, pipes and /dev/null: to be written, but not to be replaced or tried.
bool is_stream(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (is_stream(a)) return false;
  if (fs::equivalent(a, b, ignored)) return true;
  const fs::path path = fs::weakly_canonical(fs::absolute(a), ignored);  // neither may be there yet
  return !path.empty() && path == fs::weakly_canonical(fs::absolute(b), ignored);
}

/// Where a link leads, too, if to a file that is not there yet.
int open_new(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  std::error_code ignored;
  if (file >= 0) fs::remove(fs::canonical(path, ignored), ignored);
  return file;
}

}  // namespace

void demand_writable(const NamedFile& named) {
  const char* path = named.path.c_str();
  int error = 0;
  if (is_stream(named.path)) {
    error = access(path, W_OK) == 0 ? 0 : errno;
  } else {
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) file = open_new(named.path);
    error = file < 0 ? errno : 0;
    if (file >= 0) close(file);
  }
  if (error == 0) return;
  throw BadInput(fmt::format("{} {}: cannot write it: {}", named.option, in_quotes(named.path),
                             std::strerror(error)));
}

void demand_distinct(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
  std::vector<NamedFile> others = read;
  for (const NamedFile& file : written) {
    for (const NamedFile& other : others) {
      if (!same_file(file.path, other.path)) continue;
      throw BadInput(fmt::format("{} and {}: both are {}, and one would overwrite the other",
                                 other.option, file.option, in_quotes(file.path)));
    }
    others.push_back(file);
  }
}

void write_file(const std::string& path, std::string_view content) {
  const auto refuse = [&path] {
    throw Error(fmt::format("{}: cannot write it: {}", in_quotes(path), std::strerror(errno)));
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wbe"),
                                                       &std::fclose);
  if (!file) refuse();
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size()) refuse();
  if (std::fclose(file.release()) != 0) refuse();
}

}  // namespace dunlin::app
