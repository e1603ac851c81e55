#include "fabric/private_file.hpp"

#include <array>
#include <string_view>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "fabric/system.hpp"

namespace dunlin {
namespace {

[[noreturn]] void throw_unusable(const std::string& path, const std::string& what,
                                 const std::string& why) {
  throw Error("the file '" + path + "' (" + what + ") " + why);
}

}  // namespace

std::string read_private_file(const std::string& path, const std::string& what,
                              std::size_t max_bytes) {
  // O_NONBLOCK, because a named pipe would keep us waiting for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0)
    throw_unusable(path, what, "cannot be read: " + error_text(errno));
  if (!S_ISREG(status.st_mode)) throw_unusable(path, what, "is not a regular file");
  if ((status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0)
    throw_unusable(path, what,
                   "is open to users who should not know or change it: chmod 600 " + path);
  std::string content(max_bytes + 1, '\0');
  const ssize_t got = ::read(file.get(), content.data(), content.size());
  if (got < 0) throw_unusable(path, what, "cannot be read: " + error_text(errno));
  content.resize(static_cast<std::size_t>(got));
  if (content.size() > max_bytes)
    throw_unusable(path, what, "is longer than it may be, " + std::to_string(max_bytes) + " bytes");
  return content;
}

std::string read_secret(const std::string& path, const std::string& what) {
  std::string secret = read_private_file(path, what, kMaxSecretBytes);
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  if (secret.size() < kMinSecretBytes)
    throw_unusable(path, what,
                   (secret.empty() ? "is empty" : "is too short") + std::string(": a secret has ") +
                       std::to_string(kMinSecretBytes) + " to " + std::to_string(kMaxSecretBytes) +
                       " bytes. A good one: openssl rand -hex 32");
  return secret;
}

std::string random_secret() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, 32> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    throw Error("drawing a random secret failed: " + error_text(errno));
  std::string text;
  for (const unsigned char byte : random) (text += kDigits[byte >> 4U]) += kDigits[byte & 15U];
  return text;
}

}  // namespace dunlin
