#include "multicast/input.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::app::cast {

const std::string* Input::front() {
  if (!front_) cut();
  while (!front_ && read_more()) cut();
  return front_ ? &*front_ : nullptr;
}

void Input::cut() {
  std::size_t end = text_.find('\n', begin_);
  if (end == std::string::npos && over_ && begin_ < text_.size()) end = text_.size();
  if (end != std::string::npos) {
    front_ = text_.substr(begin_, end - begin_);
    begin_ = end + 1;
  }
  if (begin_ >= text_.size() || end == std::string::npos) {
    text_.erase(0, begin_);
    begin_ = 0;
  }
}

bool Input::read_more() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (over_ || poll(&input, 1, 0) <= 0) return false;
  std::array<char, 65'536> buffer;
  const ssize_t bytes = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (bytes < 0) throw Error(fmt::format("standard input: {}", std::strerror(errno)));
  over_ = bytes == 0;
  text_.append(buffer.data(), static_cast<std::size_t>(bytes));
  return true;
}

}  // namespace dunlin::app::cast
