#include <array>

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
    const std::string source = source_towards(*next);
    if (!source.empty()) return source;
  }
  return {};
}

}  // namespace

const Provider kTcp{.name = "tcp", .local_address = local_address};

}  // namespace dunlin::ofi
