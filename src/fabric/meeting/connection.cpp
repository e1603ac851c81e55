#include "fabric/meeting/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/socket.h>

namespace dunlin::meeting {
namespace {

constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kRecordBytes = 16'384;

bool try_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Connection::Connection(Descriptor socket, Side self, std::string_view secret, const Tls* tls)
    : socket_(std::move(socket)), self_(self), channel_(self, secret, random_digest()) {
  if (tls != nullptr) tls_.emplace(*tls, self);
}

bool Connection::read() {
  std::array<std::byte, kReadBytes> arrived;
  const ssize_t got = recv(socket_.get(), arrived.data(), arrived.size(), 0);
  if (got < 0) return try_later(errno);
  take(Bytes(arrived).first(static_cast<std::size_t>(got)));
  return got > 0;
}

void Connection::take(Bytes arrived) {
  if (arrived.empty()) return;
  if (!heard_) take_first(arrived.front());
  heard_ = true;
  if (!tls_fault_.empty()) return;
  if (!tls_) return channel_.receive(arrived);
  tls_->receive(arrived);
  channel_.receive(tls_->take_content());
  tls_fault_ = tls_->fault();
}

/// One of us has TLS and the other has not: told from the first byte, and said in the language of
/// the other side.
void Connection::take_first(std::byte first) {
  const std::vector<std::byte> turn_away = encode(FrameType::turn_away, 0, {});
  if (!tls_ && begins_tls(first)) {
    tls_fault_ = "speaks TLS, and we have none";
    if (self_ == Side::host) last_words_ = turn_away;
  } else if (tls_ && first == turn_away.front()) {
    tls_fault_ = "speaks no TLS, and we do";
    if (self_ == Side::host) last_words_ = tls_refusal();
  }
}

bool Connection::discard() {
  std::array<std::byte, kReadBytes> arrived;
  const ssize_t got = recv(socket_.get(), arrived.data(), arrived.size(), 0);
  return got > 0 || (got < 0 && try_later(errno));
}

/// A record of TLS at a time: what is encrypted can only wait.
void Connection::prepare_output() {
  if (!tls_ || !tls_->output().empty() || !tls_->established()) return;
  const Bytes plain = channel_.output();
  const Bytes part = plain.first(std::min(plain.size(), kRecordBytes));
  tls_->send(part);
  channel_.was_sent(part.size());
}

Bytes Connection::output() const noexcept {
  if (!last_words_.empty()) return last_words_;
  return tls_ ? tls_->output() : channel_.output();
}

void Connection::was_sent(std::size_t bytes) {
  if (!last_words_.empty())
    last_words_.erase(last_words_.begin(),
                      last_words_.begin() + static_cast<std::ptrdiff_t>(bytes));
  else
    tls_ ? tls_->was_sent(bytes) : channel_.was_sent(bytes);
}

bool Connection::all_is_sent() const noexcept {
  if (!output().empty()) return false;
  return !tls_ || !tls_->established() || channel_.output().empty();
}

bool Connection::write() {
  for (prepare_output(); !output().empty(); prepare_output()) {
    const Bytes bytes = output();
    const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return try_later(errno);
    was_sent(static_cast<std::size_t>(sent));
  }
  return true;
}

void Connection::stop_writing() const { shutdown(socket_.get(), SHUT_WR); }

}  // namespace dunlin::meeting
