#include "fabric/tcp/wire.hpp"

#include <array>

#include <sys/socket.h>

namespace dunlin::tcp {

void Wire::encrypt(const Security& security, Rank callee) {
  session_ = std::make_unique<SecureSession>(security, socket_.get(), callee);
  encrypted_ = true;
}

SecureSession::Handshake Wire::shake_hands() {
  if (!session_) return SecureSession::Handshake::complete;
  const SecureSession::Handshake state = session_->shake_hands();
  if (state == SecureSession::Handshake::complete && session_->in_kernel()) session_.reset();
  return state;
}

ssize_t Wire::send(std::span<const iovec> pieces) noexcept {
  if (session_) return session_->send(pieces);
  if (pieces.size() == 1)
    return ::send(socket_.get(), pieces[0].iov_base, pieces[0].iov_len,
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t Wire::receive(std::span<const iovec> pieces) noexcept {
  if (session_) return session_->receive(pieces);
  if (pieces.size() == 1)
    return ::recv(socket_.get(), pieces[0].iov_base, pieces[0].iov_len, MSG_DONTWAIT);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
}

void Wire::end_sending() noexcept {
  if (socket_) shutdown(socket_.get(), SHUT_WR);
}

void Wire::close() noexcept {
  if (!socket_) return;
  end_sending();
  constexpr int kMostRounds = 1024;
  std::array<std::byte, std::size_t{1} << 16> unread;
  for (int i = 0; i < kMostRounds; ++i)
    if (::recv(socket_.get(), unread.data(), unread.size(), MSG_DONTWAIT) <= 0) break;
  // shutdown() works even if a forked child has the socket, too.
  shutdown(socket_.get(), SHUT_RD);
  socket_.close();
}

}  // namespace dunlin::tcp
