#include "fabric/mixed/host.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/bytes.hpp"
#include "fabric/hash.hpp"
#include "fabric/mapping/mapping.hpp"
#include "fabric/shm/packet.hpp"

namespace dunlin::mixed {
namespace {

constexpr std::array<char, 8> kMagic{'D', 'N', 'L', 'N', 'A', 'U', 'T', 'O'};
constexpr std::size_t kMaxNetworks = 8;

/// Reads "0f7c2d8e-...": 32 digits, and hyphens that are skipped. Zeros if the kernel has none.
std::array<std::byte, 16> boot_of_kernel() {
  std::array<std::byte, 16> boot{};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  std::erase(text, '-');
  if (text.size() != 2 * boot.size()) return boot;
  for (std::size_t i = 0; i < boot.size(); ++i)
    boot[i] = static_cast<std::byte>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return boot;
}

std::array<std::byte, 16> boot_named(std::string_view name) {
  const std::uint64_t hash = fnv1a(name) | 1;  // never zero
  std::array<std::byte, 16> boot{};
  std::memcpy(boot.data(), &hash, sizeof hash);
  return boot;
}

/// A namespace of this thread, because sockets are made in the namespaces of the thread. 0:
/// unknown.
std::uint64_t own_namespace(const char* kind) {
  struct stat status {};
  const std::string path = std::string("/proc/thread-self/ns/") + kind;
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    checked(static_cast<int>(getrandom(&number, sizeof number, 0)), "drawing a random number");
  return number;
}

}  // namespace

// --- what is told --------------------------------------------------------------------------------

const NetworkEndpoint* Endpoint::find(std::string_view network) const noexcept {
  const auto at = std::ranges::find(networks, network, &NetworkEndpoint::network);
  return at == networks.end() ? nullptr : &*at;
}

std::vector<std::byte> encode(const Endpoint& endpoint) {
  std::vector<std::byte> bytes;
  bytes.reserve(kMaxEndpointBytes);
  Writer writer(bytes);
  writer.bytes(std::as_bytes(std::span(kMagic)));
  writer.bytes(endpoint.host.boot);
  writer.u64(endpoint.host.network_namespace);
  writer.u64(endpoint.host.process_namespace);
  writer.u64(endpoint.host.user_namespace);
  writer.u64(endpoint.host.listener);
  writer.u32(endpoint.host.user);
  writer.u16(endpoint.host.shares ? 1 : 0);
  writer.u16(static_cast<std::uint16_t>(endpoint.networks.size()));
  for (const NetworkEndpoint& reach : endpoint.networks) {
    writer.text(reach.network, kMaxNetworkNameBytes + 1);
    writer.u16(static_cast<std::uint16_t>(reach.endpoint.size()));
    writer.bytes(reach.endpoint);
  }
  return bytes;
}

std::optional<Endpoint> decode(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto magic = reader.array<kMagic.size()>();
  Endpoint endpoint;
  endpoint.host.boot = reader.array<16>();
  endpoint.host.network_namespace = reader.u64();
  endpoint.host.process_namespace = reader.u64();
  endpoint.host.user_namespace = reader.u64();
  endpoint.host.listener = reader.u64();
  endpoint.host.user = reader.u32();
  const std::uint16_t shares = reader.u16();
  endpoint.host.shares = shares == 1;
  const std::size_t networks = reader.u16();
  if (!reader.good() || !std::ranges::equal(magic, std::as_bytes(std::span(kMagic))) ||
      shares > 1 || networks > kMaxNetworks)
    return std::nullopt;
  for (std::size_t i = 0; i < networks; ++i) {
    NetworkEndpoint& reach = endpoint.networks.emplace_back();
    reach.network = reader.text(kMaxNetworkNameBytes + 1);
    const auto content = reader.bytes(reader.u16());
    reach.endpoint.assign(content.begin(), content.end());
  }
  if (!reader.good() || !reader.rest().empty()) return std::nullopt;
  return endpoint;
}

// --- this process --------------------------------------------------------------------------------

OwnHost::OwnHost(std::string_view pretended) : access_(shm::access_for({})) {
  host_.boot = pretended.empty() ? boot_of_kernel() : boot_named(pretended);
  host_.network_namespace = own_namespace("net");
  host_.process_namespace = own_namespace("pid");
  host_.user_namespace = own_namespace("user");
  host_.user = access_.user;
  fault_ = try_to_share();
  host_.shares = fault_.empty();
}

shm::Address OwnHost::address_of(const Host& other) const {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(other.listener));
  return shm::address_of(access_, std::string("auto.") + digits.data(), 0);
}

/// Why sharing would fail, tried out on itself: sends memory through its listener's socket.
std::string OwnHost::try_to_share() {
  if (host_.boot == std::array<std::byte, 16>{} || host_.network_namespace == 0 ||
      host_.process_namespace == 0 || host_.user_namespace == 0)
    return "/proc does not say on which host this process is";
  try {
    host_.listener = random_number();
    std::optional<shm::Descriptor> listener =
        shm::claim(address_of(host_), shm::Holder::is_examined);
    if (!listener) return "another process listens at its socket";
    const mapping::OwnMapping memory =
        mapping::create_mapping({.kind = mapping::MappingKind::ring,
                                 .owner_pid = static_cast<std::uint32_t>(getpid()),
                                 .owner_uid = geteuid(),
                                 .members = 1,
                                 .incarnation = host_.listener,
                                 .bytes = kCacheLineBytes,
                                 .fabric = "auto",
                                 .group = "auto"},
                                std::nullopt);
    const std::optional<shm::Descriptor> there = shm::connect_to(address_of(host_));
    const shm::Descriptor here = shm::take_connection(*listener);
    if (!there || !here) return "it cannot connect to its own socket";
    if (shm::send_packet(there->get(), {}, memory.file.get()) != shm::Sent::whole)
      return "it cannot send memory through a socket";
    const shm::Received received = shm::receive_packet(here.get());
    if (received.descriptors.size() != 1) return "no memory arrives through its sockets";
    static_cast<void>(mapping::map_peer(received.descriptors[0]));
    listener_ = std::move(*listener);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

// --- others --------------------------------------------------------------------------------------

Way compare(const Host& own, const Host& other) {
  if (own.boot != other.boot) return {false, "on another host"};
  if (own.network_namespace != other.network_namespace)
    return {false, "on this host, in another network namespace"};
  if (own.process_namespace != other.process_namespace)
    return {false, "on this host, in another process namespace"};
  if (own.user_namespace != other.user_namespace || own.user != other.user)
    return {false, "on this host, of another user"};
  if (!other.shares) return {false, "on this host, but it cannot share memory"};
  return {true, "on this host"};
}

/// Whether and how the two share memory. Copies of a running machine describe themselves alike;
/// then no listener answers.
Way way_to(const OwnHost& own, const Host& other) {
  Way way = compare(own.host(), other);
  if (!way.here) return way;
  if (!own.host().shares)
    return {false, "on this host, but this member cannot share memory: " + own.fault()};
  if (!shm::connect_to(own.address_of(other)))
    return {false, "it seems to be on this host, but does not answer at its socket"};
  return way;
}

}  // namespace dunlin::mixed
