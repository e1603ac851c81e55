#include "fabric/rendezvous/connection.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace dunlin::rendezvous {
namespace {

constexpr std::size_t kReadBytes = 4096;

bool try_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Connection::Connection(Descriptor socket, Side self, const Tls& tls)
    : socket_(std::move(socket)), channel_(self, tls) {}

bool Connection::read() {
  std::array<std::byte, kReadBytes> arrived;
  const ssize_t got = recv(socket_.get(), arrived.data(), arrived.size(), 0);
  if (got < 0) return try_later(errno);
  channel_.receive(Bytes(arrived).first(static_cast<std::size_t>(got)));
  return got > 0;
}

bool Connection::discard() {
  std::array<std::byte, kReadBytes> arrived;
  const ssize_t got = recv(socket_.get(), arrived.data(), arrived.size(), 0);
  return got > 0 || (got < 0 && try_later(errno));
}

bool Connection::write() {
  while (!all_is_sent()) {
    const Bytes bytes = channel_.output();
    const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return try_later(errno);
    channel_.was_sent(static_cast<std::size_t>(sent));
  }
  return true;
}

void Connection::stop_writing() const { shutdown(socket_.get(), SHUT_WR); }

}  // namespace dunlin::rendezvous
