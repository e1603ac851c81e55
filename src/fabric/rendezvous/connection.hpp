#pragma once

#include "fabric/rendezvous/channel.hpp"
#include "fabric/system.hpp"

namespace dunlin::rendezvous {

/// A channel over a socket that never blocks.
class Connection {
 public:
  Connection(Descriptor socket, Side self, const Tls& tls);

  [[nodiscard]] Channel& channel() noexcept { return channel_; }
  [[nodiscard]] const Channel& channel() const noexcept { return channel_; }
  [[nodiscard]] const Descriptor& socket() const noexcept { return socket_; }

  /// Hands the channel a limited number of the bytes that have arrived, so that no connection is
  /// served for long. False if the other side has hung up.
  [[nodiscard]] bool read();
  /// Takes what arrives and ignores it. False if the other side has hung up.
  [[nodiscard]] bool discard();
  /// Sends what can be sent. False if the connection is broken.
  [[nodiscard]] bool write();
  /// Whether nothing more can be sent before something arrives.
  [[nodiscard]] bool all_is_sent() const noexcept { return channel_.output().empty(); }
  /// Ends sending: the other side gets no more than the bytes sent so far.
  void stop_writing() const;

 private:
  Descriptor socket_;
  Channel channel_;
};

}  // namespace dunlin::rendezvous
