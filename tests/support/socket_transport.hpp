#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <dunlin/fabric.hpp>

#include "fabric/stream/transport.hpp"

/// A Transport over Unix sockets, for tests of the streams without a network: frames are packets,
/// addresses are in the abstract name space and vanish with their processes.
namespace dunlin::test {

struct SocketOptions {
  std::string group;
  Rank rank = 0;
  std::uint32_t members = 0;
  std::size_t frame_bytes = 32'768;
  std::uint32_t buffers = 4;  // for each peer
};

/// Returns when all members are connected.
[[nodiscard]] std::unique_ptr<stream::Transport> connect_sockets(const SocketOptions& options);

/// A fabric over a socket transport.
[[nodiscard]] std::unique_ptr<Fabric> join_over_sockets(const SocketOptions& options,
                                                        std::uint32_t silence_timeout_ms);

}  // namespace dunlin::test
