#include "kmers/spill.hpp"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "text.hpp"

namespace dunlin::kmers {

Descriptor nameless_file(const std::string& folder) noexcept {
  const Descriptor where(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!where) return {};
  Descriptor file(openat(where.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file || errno != EOPNOTSUPP) return file;
  const std::string name = "spill-" + std::to_string(getpid());
  file = Descriptor(openat(where.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file && unlinkat(where.get(), name.c_str(), 0) != 0) file.close();
  return file;
}

Spill::Spill(const std::string& folder) : folder_(folder) {
  Descriptor file = nameless_file(folder);
  file_.reset(file ? fdopen(fcntl(file.get(), F_DUPFD_CLOEXEC, 0), "w+") : nullptr);
  if (file_ == nullptr) fail();
}

void Spill::fail() const {
  throw Error(fmt::format("cannot write to '{}': {}; TMPDIR names another folder", folder_,
                          error_text(errno)));
}

void Spill::write(const void* from, std::size_t bytes) {
  if (fwrite_unlocked(from, 1, bytes, file_.get()) != bytes) fail();
  bytes_ += bytes;
}

void Spill::rewind() {
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail();
}

std::size_t Spill::read(void* to, std::size_t bytes) {
  const std::size_t got = fread_unlocked(to, 1, bytes, file_.get());
  if (got < bytes && std::ferror(file_.get()) != 0) fail();
  return got;
}

}  // namespace dunlin::kmers
