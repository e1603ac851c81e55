#include "process/pipe.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace dunlin::process {

Pipe make_pipe(int flags) {
  std::array<int, 2> ends{};
  checked(pipe2(ends.data(), O_CLOEXEC | flags), "pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void write_all(const Descriptor& to, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(to.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool read_all(const Descriptor& from, std::string& text,
              std::optional<std::chrono::milliseconds> timeout) {
  using std::chrono::steady_clock;
  const auto started = steady_clock::now();
  while (true) {
    const auto passed =
        std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - started);
    const int left =
        timeout ? static_cast<int>(std::max<long>(0, (*timeout - passed).count())) : -1;
    pollfd wait{from.get(), POLLIN, 0};
    const int ready = poll(&wait, 1, left);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 4096> part;
    const ssize_t bytes = read(from.get(), part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

}  // namespace dunlin::process
