#include "relay/connection.hpp"

#include <array>
#include <cerrno>

#include <sys/socket.h>

#include "fabric/bytes.hpp"

namespace dunlin::relay {
namespace {

constexpr std::size_t kReadBytes = 65'536;

bool try_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

bool Connection::read() {
  forget_front(input_, begin_);
  static thread_local std::array<std::byte, kReadBytes> arrived;
  const ssize_t got = recv(socket_.get(), arrived.data(), arrived.size(), 0);
  if (got < 0 && try_later(errno)) return true;
  if (got <= 0) {
    why_ = got == 0 ? "it has closed the connection"
                    : "the connection is broken: " + error_text(errno);
    return false;
  }
  bytes_received_ += static_cast<std::uint64_t>(got);
  const Bytes bytes = Bytes(arrived).first(static_cast<std::size_t>(got));
  if (!pipe_) input_.insert(input_.end(), bytes.begin(), bytes.end());
  if (!pipe_ || pipe_->receive(bytes, input_)) return true;
  why_ = pipe_->fault();
  return false;
}

/// The bytes for the socket; encrypts some, if there is a pipe.
Bytes Connection::next_bytes() {
  const Bytes content = Bytes(output_).subspan(sent_);
  if (!pipe_) return content;
  if (!content.empty() && pipe_->open()) {
    sent_ += pipe_->send(content);
    forget_front(output_, sent_);
  }
  return pipe_->output();
}

bool Connection::write() {
  for (;;) {
    const Bytes bytes = next_bytes();
    if (bytes.empty()) return true;
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && try_later(errno)) return true;
    if (sent < 0) {
      why_ = "the connection is broken: " + error_text(errno);
      return false;
    }
    bytes_sent_ += static_cast<std::uint64_t>(sent);
    if (pipe_) {
      pipe_->was_sent(static_cast<std::size_t>(sent));
    } else {
      sent_ += static_cast<std::size_t>(sent);
      forget_front(output_, sent_);
    }
  }
}

}  // namespace dunlin::relay
