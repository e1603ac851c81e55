#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fabric/ofi/provider.hpp"
#include "fabric/system.hpp"

/// TCP: addresses are those of IP. It orders frames by its nature, moves them only when a
/// completion queue is read (both sides'), and reports a closed connection at once, but no silent
/// one.
namespace dunlin::ofi {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

/// The address that the kernel would send from; connecting a datagram socket sends nothing.
std::string source_towards(const addrinfo& target) {
  const Descriptor probe(socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || connect(probe.get(), target.ai_addr, target.ai_addrlen) != 0) return {};
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return {};
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(reinterpret_cast<sockaddr*>(&own), bytes, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

/// Members of one machine meet at a Unix socket, and then talk over loopback.
std::string local_address(const std::string& meeting) {
  if (meeting.starts_with("unix:")) return kLoopback;
  const std::size_t colon = meeting.rfind(':');
  std::string host = meeting.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string port = colon == std::string::npos ? "" : meeting.substr(colon + 1);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    std::string source = source_towards(*next);
    if (!source.empty()) return source;
  }
  return {};
}

/// Cards are socket addresses; members of one host differ in the port only.
template <class Address, class Part>
bool alike(std::span<const std::byte> one, std::span<const std::byte> other, Part part) {
  if (one.size() < sizeof(Address) || other.size() < sizeof(Address)) return false;
  Address first{};
  Address second{};
  std::memcpy(&first, one.data(), sizeof first);
  std::memcpy(&second, other.data(), sizeof second);
  return std::memcmp(&(first.*part), &(second.*part), sizeof(first.*part)) == 0;
}

bool same_host(std::span<const std::byte> one, std::span<const std::byte> other) {
  const auto family = [](std::span<const std::byte> card) {
    sa_family_t is = AF_UNSPEC;
    if (card.size() >= offsetof(sockaddr, sa_family) + sizeof is)
      std::memcpy(&is, card.data() + offsetof(sockaddr, sa_family), sizeof is);
    return is;
  };
  if (family(one) != family(other)) return false;
  if (family(one) == AF_INET) return alike<sockaddr_in>(one, other, &sockaddr_in::sin_addr);
  if (family(one) == AF_INET6) return alike<sockaddr_in6>(one, other, &sockaddr_in6::sin6_addr);
  return false;
}

}  // namespace

const Provider kTcp{.name = "tcp", .local_address = local_address, .same_host = same_host};

}  // namespace dunlin::ofi
