#pragma once

#include <memory>
#include <string>

#include "fabric/system.hpp"
#include "relay/pipe.hpp"

/// A socket that never blocks, and the bytes that wait on both sides of it.
namespace dunlin::relay {

class Connection {
 public:
  /// Without a pipe, the bytes are sent and taken as they are.
  Connection(Descriptor socket, std::unique_ptr<Pipe> pipe)
      : socket_(std::move(socket)), pipe_(std::move(pipe)) {}

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  /// Takes some of the bytes that have arrived. False if the connection is over: why() says why.
  [[nodiscard]] bool read();
  /// Gives the socket the bytes that it takes. False if the connection is over.
  [[nodiscard]] bool write();

  /// Bytes that have arrived, and were not consumed.
  [[nodiscard]] Bytes input() const noexcept { return Bytes(input_).subspan(begin_); }
  void consume(std::size_t bytes) noexcept { begin_ += bytes; }
  /// The buffer to which the caller appends what is to be sent.
  [[nodiscard]] Buffer& output() noexcept { return output_; }
  [[nodiscard]] std::size_t waiting() const noexcept {
    return output_.size() - sent_ + (pipe_ ? pipe_->output().size() : 0);
  }
  /// Whether write() must be called once the socket is writable.
  [[nodiscard]] bool wants_to_write() const noexcept {
    return (pipe_ && !pipe_->output().empty()) || (open() && sent_ < output_.size());
  }
  [[nodiscard]] bool open() const noexcept { return !pipe_ || pipe_->open(); }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// How many bytes the output has given away since the beginning.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  [[nodiscard]] std::uint64_t bytes_received() const noexcept { return bytes_received_; }

 private:
  [[nodiscard]] Bytes next_bytes();

  Descriptor socket_;
  std::unique_ptr<Pipe> pipe_;
  Buffer input_;
  std::size_t begin_ = 0;
  Buffer output_;
  std::size_t sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  std::string why_;
};

}  // namespace dunlin::relay
