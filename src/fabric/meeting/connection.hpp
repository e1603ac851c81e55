#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/meeting/channel.hpp"
#include "fabric/meeting/tls.hpp"
#include "fabric/system.hpp"

namespace dunlin::meeting {

/// A channel over a socket that never blocks, within TLS if there is one.
class Connection {
 public:
  /// `tls` is null if there is none.
  Connection(Descriptor socket, Side self, std::string_view secret, const Tls* tls);

  [[nodiscard]] Channel& channel() noexcept { return channel_; }
  [[nodiscard]] const Channel& channel() const noexcept { return channel_; }
  [[nodiscard]] const Descriptor& socket() const noexcept { return socket_; }

  /// Hands the channel a limited amount of what has arrived, so that nobody is served for long.
  /// False if the other side has hung up.
  [[nodiscard]] bool read();
  /// Takes what arrives and looks at none of it. False if the other side has hung up.
  [[nodiscard]] bool discard();
  /// Sends what can be sent. False if the connection is broken.
  [[nodiscard]] bool write();
  /// Nothing more can be sent before something arrives.
  [[nodiscard]] bool all_is_sent() const noexcept;
  /// What is wrong with the other side's TLS, or that it has it, or not: "speaks no TLS, and we
  /// do"; empty if nothing is. Then nothing more is taken from it.
  [[nodiscard]] const std::string& tls_fault() const noexcept { return tls_fault_; }
  /// The other side will hear no more than what has been sent.
  void stop_writing() const;

 private:
  void take(Bytes arrived);
  void take_first(std::byte first);
  void prepare_output();
  [[nodiscard]] Bytes output() const noexcept;
  void was_sent(std::size_t bytes);

  Descriptor socket_;
  Side self_;
  Channel channel_;
  std::optional<TlsSession> tls_;
  bool heard_ = false;  // anything
  std::string tls_fault_;
  std::vector<std::byte> last_words_;  // to whom we do not understand
};

}  // namespace dunlin::meeting
