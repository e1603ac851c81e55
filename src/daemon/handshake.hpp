#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

#include <dunlin/limits.hpp>

#include "daemon/layout.hpp"
#include "fabric/mapping/mapping.hpp"
#include "fabric/shm/address.hpp"
#include "fabric/system.hpp"

/// How a daemon and a client find each other, and the memory that they share. The daemon accepts a
/// connection, asks the kernel for the client's user and groups, and sends one packet. From then on
/// a packet of one byte rings the other side, and the end of the connection is its end.
namespace dunlin::attached {

inline constexpr std::uint32_t kPacketMagic = 0x444e4c44;
inline constexpr std::uint16_t kProtocolVersion = 2;

enum class PacketType : std::uint16_t {
  welcome = 1,  // comes with the shared memory
  refuse = 2    // `text` says why; the daemon hangs up
};

struct Packet {
  std::uint32_t magic = kPacketMagic;
  std::uint16_t version = kProtocolVersion;
  PacketType type = PacketType::welcome;
  std::uint16_t slots = 0;
  std::uint16_t needs_fence = 0;  // 1: a client must fence before it reads `daemon_rests`
  std::uint32_t rank = 0;         // the daemon's rank
  std::uint64_t transfer_bytes = 0;
  std::uint32_t members = 0;
  std::uint32_t beat_ms = 0;  // the client must poll so often; 0: whenever it likes
  std::array<char, 48> group{};
  std::array<char, 48> space{};
  std::array<char, 128> text{};  // for refuse
};
static_assert(offsetof(Packet, type) == 6);
static_assert(offsetof(Packet, slots) == 8);
static_assert(offsetof(Packet, needs_fence) == 10);
static_assert(offsetof(Packet, rank) == 12);
static_assert(offsetof(Packet, transfer_bytes) == 16);
static_assert(offsetof(Packet, members) == 24);
static_assert(offsetof(Packet, beat_ms) == 28);
static_assert(offsetof(Packet, group) == 32);
static_assert(offsetof(Packet, space) == 80);
static_assert(offsetof(Packet, text) == 128);
static_assert(sizeof(Packet) == 256);
static_assert(kMaxGroupNameBytes < sizeof(Packet::group));
static_assert(kMaxSpaceNameBytes < sizeof(Packet::space));

/// Where clients find a daemon.
struct DaemonAddress {
  std::string group;
  std::string socket;
  std::string access_group;
};
/// The address as text, for messages.
[[nodiscard]] std::string describe(const DaemonAddress& daemon);
/// Throws Error if the address is invalid.
void check(const DaemonAddress& daemon);

/// Listens at the address. Throws Error, also if another daemon is there.
[[nodiscard]] Descriptor listen_at(const DaemonAddress& daemon, std::uint32_t mode);
/// Removes a daemon's socket from the file system.
void remove_socket(const DaemonAddress& daemon) noexcept;
/// Accepts a client; none if no client is there now.
[[nodiscard]] std::optional<Descriptor> connect_to(const DaemonAddress& daemon);

/// The process at the other end. A socket in the file system has checked it by its mode.
[[nodiscard]] shm::Counterpart counterpart_of(const Descriptor& socket,
                                              const DaemonAddress& daemon);

/// Sends a packet; false if it could not be sent.
[[nodiscard]] bool send(const Descriptor& socket, const Packet& packet, int memory) noexcept;
struct Welcome {
  Packet packet;
  Descriptor memory;
  bool hung_up = false;
};
/// Receives the welcome; none if nothing has come yet. Throws Error if the packet is not a
/// daemon's, or is a refusal.
[[nodiscard]] std::optional<Welcome> receive(const Descriptor& socket, const DaemonAddress& daemon);

/// Wakes the other side. The packet may get lost if many are under way already.
void ring(const Descriptor& socket) noexcept;
/// Ends the connection, which the other side sees, even if a forked child has the descriptor open,
/// too.
void hang_up(const Descriptor& socket) noexcept;
/// Takes the wake-up packets that have come; false if the other side is gone.
[[nodiscard]] bool take_rings(const Descriptor& socket) noexcept;

/// Makes memory without a name, whose size no process can change any more.
[[nodiscard]] Descriptor make_memory(std::uint64_t bytes);

class SharedMemory {
 public:
  /// Throws Error if the file has another size.
  SharedMemory(const Descriptor& file, std::uint64_t bytes);
  [[nodiscard]] std::span<std::byte> memory() const noexcept { return mapping_.memory(); }

 private:
  mapping::Mapping mapping_;
};

}  // namespace dunlin::attached
