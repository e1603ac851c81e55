#include "kmers/input.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.hpp"
#include "fabric/system.hpp"
#include "kmers/spill.hpp"
#include "text.hpp"

namespace dunlin::kmers {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw app::BadInput(fmt::format("{}: {}", app::in_quotes(name), why));
}

/// Reads a pipe until its writers have closed it, into a file without a name: nothing is left of it
/// if this process is killed.
Descriptor copy_of(const std::string& name, int from, const std::string& folder) {
  Descriptor to = nameless_file(folder);
  const auto demand = [&](bool good) {
    if (!good)
      throw Error(fmt::format("{} cannot be copied to '{}': {}; TMPDIR names another folder",
                              app::in_quotes(name), folder, error_text(errno)));
  };
  demand(static_cast<bool>(to));
  std::vector<char> buffer(std::size_t{1} << 16);
  for (;;) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(name, fmt::format("cannot be read: {}", error_text(errno)));
    if (got == 0) return to;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          ::write(to.get(), buffer.data() + done, static_cast<std::size_t>(got - done));
      demand(put >= 0 || errno == EINTR);
      done += std::max<ssize_t>(put, 0);
    }
  }
}

}  // namespace

std::vector<Input> inputs_of(const std::vector<std::string>& names, const std::string& folder) {
  std::vector<Input> inputs;
  std::set<std::pair<dev_t, ino_t>> pipes;
  for (const std::string& name : names) {
    struct stat status {};
    const bool exists = stat(name.c_str(), &status) == 0;
    if (exists && (S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode)))
      refuse(name, "is neither a file nor a pipe");
    // Opening a pipe again would wait for another writer.
    if (exists && !S_ISREG(status.st_mode) && !pipes.emplace(status.st_dev, status.st_ino).second)
      refuse(name, "is a pipe that can be read only once, and is named twice");
    const Descriptor file(exists ? open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1);
    if (!file) refuse(name, fmt::format("cannot be read: {}", error_text(errno)));
    Input input{.name = name, .path = name};
    if (S_ISREG(status.st_mode)) {
      // /dev/stdin may lead to a file, and to another one in a process that is started. A file
      // without a name, as of a shell's here-document, has only that path.
      std::error_code error;
      const auto path = std::filesystem::canonical(name, error);
      if (!error) input.path = path;
    } else if (S_ISFIFO(status.st_mode) || isatty(file.get()) == 1) {
      input.copy = std::make_shared<const Descriptor>(copy_of(name, file.get(), folder));
      input.path = fmt::format("/proc/{}/fd/{}", getpid(), input.copy->get());
    } else {
      refuse(name, "is neither a file nor a pipe");
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace dunlin::kmers
