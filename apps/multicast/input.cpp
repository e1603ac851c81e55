#include "multicast/input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::app::cast {

namespace {
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
}

const std::string* Input::front() {
  if (!front_) cut();
  if (!front_ && read_more()) cut();
  return front_ ? &*front_ : nullptr;
}

void Input::cut() {
  std::size_t end = text_.find('\n', searched_);
  searched_ = text_.size();
  if (std::min(end, text_.size()) - begin_ > most_bytes_)
    throw Error(
        fmt::format("standard input: a line has more than {} bytes, the most that a "
                    "message can have (kMaxCastBytes)",
                    most_bytes_));
  if (end == std::string::npos && over_ && begin_ < text_.size()) end = text_.size();
  if (end != std::string::npos) {
    front_ = text_.substr(begin_, end - begin_);
    begin_ = searched_ = end + 1;
  }
  if (begin_ >= text_.size() || end == std::string::npos) {
    text_.erase(0, begin_);
    begin_ = 0;
    searched_ = text_.size();
  }
}

bool Input::read_more() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (over_ || poll(&input, 1, 0) <= 0) return false;
  const std::size_t had = text_.size();
  text_.resize(had + kPieceBytes);
  const ssize_t bytes = ::read(STDIN_FILENO, text_.data() + had, kPieceBytes);
  const int error = errno;
  text_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  if (bytes < 0 && (error == EAGAIN || error == EINTR)) return false;
  if (bytes < 0) throw Error(fmt::format("standard input: {}", std::strerror(error)));
  over_ = bytes == 0;
  return true;
}

}  // namespace dunlin::app::cast
