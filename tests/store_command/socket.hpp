#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fabric/system.hpp"

namespace dunlin::test {

/// A plain client: sends, and reads so many bytes.
class Socket {
 public:
  explicit Socket(const std::string& port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  [[nodiscard]] bool connected() const { return connected_; }
  bool send(const std::string& bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  void end() const { shutdown(socket_.get(), SHUT_WR); }
  /// Up to so many bytes, or until the server closes.
  [[nodiscard]] std::string receive(std::size_t bytes = SIZE_MAX) const {
    std::string text;
    std::array<char, 65536> part;
    while (text.size() < bytes) {
      const ssize_t count =
          recv(socket_.get(), part.data(), std::min(part.size(), bytes - text.size()), 0);
      if (count <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(count));
    }
    return text;
  }
  /// Up to the end of a line.
  [[nodiscard]] std::string receive_line() const {
    std::string line;
    do {
      const std::string next = receive(1);
      if (next.empty()) break;
      line += next;
    } while (line.back() != '\n');
    return line;
  }

 private:
  Descriptor socket_;
  bool connected_ = false;
};

}  // namespace dunlin::test
