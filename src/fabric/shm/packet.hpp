#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/limits.hpp>

#include "fabric/shm/system.hpp"

/// The packets that two members exchange over their control socket (docs/formats/shm-control.md).
/// All packets have one size and travel whole; descriptors travel along.
namespace dunlin::shm {

inline constexpr std::uint32_t kPacketMagic = 0x4e4c4e44;
inline constexpr std::uint16_t kProtocolVersion = 1;

enum class PacketType : std::uint16_t {
  hello = 1,  // the sender's identity; with the base segment and the doorbell
  probe,      // the sender's identity; it only asks whether the group runs already
  refuse,     // `text` says why; the sender closes the connection
  ready,      // the sender is connected to the members whose incarnations hash to `value`
  go,         // all of these are ready: the group runs
  announce,   // the sender's region number `value`; with its segment
  withdraw,   // the sender's region number `value` is released
  leave,      // the sender is about to close its fabric
  ticket,     // at a listener: the two form a fabric of their own, with `value` in its name
  enter,      // as hello, between a newcomer and a member that has admitted it by the key `value`;
              // with the base segment, the doorbell, and the ring for the other's messages
  part        // the sender has given the receiver up, and writes to no memory of it any more
};

struct Packet {
  std::uint32_t magic = kPacketMagic;
  std::uint16_t version = kProtocolVersion;
  PacketType type = PacketType::hello;
  std::uint64_t value = 0;
  // These are used in hello, probe and enter only.
  std::uint32_t rank = 0;
  std::uint32_t members = 0;
  std::uint64_t names_hash = 0;   // 0: members are counted
  std::uint64_t incarnation = 0;  // random, never 0
  std::uint32_t silence_timeout_ms = 0;
  std::uint32_t needs_fence = 0;  // 1: a peer that writes must fence before it reads `sleeping`
  std::array<char, 48> group{};
  std::array<char, 48> member{};
  // This is used in refuse only.
  std::array<char, 368> text{};
};
static_assert(sizeof(Packet) == 512);
static_assert(offsetof(Packet, version) == 4);
static_assert(offsetof(Packet, type) == 6);
static_assert(offsetof(Packet, value) == 8);
static_assert(offsetof(Packet, rank) == 16);
static_assert(offsetof(Packet, members) == 20);
static_assert(offsetof(Packet, names_hash) == 24);
static_assert(offsetof(Packet, incarnation) == 32);
static_assert(offsetof(Packet, silence_timeout_ms) == 40);
static_assert(offsetof(Packet, needs_fence) == 44);
static_assert(offsetof(Packet, group) == 48);
static_assert(offsetof(Packet, member) == 96);
static_assert(offsetof(Packet, text) == 144);

[[nodiscard]] Packet refusal(const std::string& text);

struct Received {
  /// no_descriptors: a packet came, but this process could not take the descriptors with it.
  enum class Kind { packet, nothing_yet, closed, garbage, other_version, no_descriptors };
  Kind kind = Kind::nothing_yet;
  Packet packet = {};
  std::vector<Descriptor> descriptors = {};
};

/// The fault in messages about no_descriptors.
[[nodiscard]] std::string out_of_descriptors();

/// Reads the next packet of a non-blocking socket.
[[nodiscard]] Received receive_packet(int socket);

enum class Sent { whole, not_yet, closed };
inline constexpr std::size_t kMaxDescriptors = 3;
/// Sends a packet with some descriptors, of which those below 0 are none; never blocks.
[[nodiscard]] Sent send_packet(int socket, const Packet& packet, int first = -1, int second = -1,
                               int third = -1) noexcept;

}  // namespace dunlin::shm
