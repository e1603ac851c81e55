#include "fabric/launch/secret.hpp"

#include <array>

#include <fcntl.h>
#include <sys/stat.h>

#include "fabric/system.hpp"

namespace dunlin::launch {
namespace {

constexpr std::size_t kMaxSecretBytes = 4096;

[[noreturn]] void throw_unusable(const std::string& path, const std::string& what,
                                 const std::string& why) {
  throw Error("the file '" + path + "' (" + what + ") " + why);
}

}  // namespace

std::string read_secret_file(const std::string& path, const std::string& what) {
  // Not blocking: a named pipe would keep us waiting for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0)
    throw_unusable(path, what, "cannot be read: " + error_text(errno));
  if (!S_ISREG(status.st_mode)) throw_unusable(path, what, "is not a regular file");
  if ((status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0)
    throw_unusable(path, what,
                   "is open to users who should not know or change it: chmod 600 " + path);
  std::array<char, kMaxSecretBytes + 1> content{};
  const ssize_t got = read(file.get(), content.data(), content.size());
  if (got < 0) throw_unusable(path, what, "cannot be read: " + error_text(errno));
  std::string secret(content.data(), static_cast<std::size_t>(got));
  if (secret.size() > kMaxSecretBytes)
    throw_unusable(path, what,
                   "is longer than a secret may be, " + std::to_string(kMaxSecretBytes) + " bytes");
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) throw_unusable(path, what, "is empty. A good secret: openssl rand -hex 32");
  return secret;
}

}  // namespace dunlin::launch
