#include "fabric/client_listener.hpp"

#include <cerrno>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace dunlin {
namespace {

constexpr int kQueuedClients = 4096;

struct ListenAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

std::optional<ListenAddress> listen_address_of(const std::string& text, std::uint16_t port) {
  ListenAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.bytes = sizeof v4;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.bytes = sizeof v6;
  } else {
    return std::nullopt;
  }
  return address;
}

std::uint16_t port_of_socket(int socket) {
  ListenAddress address;
  address.bytes = sizeof address.storage;
  checked(getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes),
          "getsockname");
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return ntohs(address.storage.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // if refused, fewer clients fit
}

Descriptor open_spare() noexcept { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

ClientListener::ClientListener(const std::string& text, std::uint16_t port,
                               const std::string& advice) {
  raise_descriptor_limit();
  const std::string where = "cannot listen at " + text + " port " + std::to_string(port) + ": ";
  const auto address = listen_address_of(text, port);
  if (!address) throw Error(where + "not an address; " + advice);
  listener_ = Descriptor(checked(
      socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
  const int yes = 1;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const auto* const raw = reinterpret_cast<const sockaddr*>(&address->storage);
  if (bind(listener_.get(), raw, address->bytes) != 0 ||
      listen(listener_.get(), kQueuedClients) != 0)
    throw Error(where + error_text(errno) + "; " + advice);
  port_ = port_of_socket(listener_.get());
  spare_ = open_spare();
}

std::optional<ClientListener::Arrival> ClientListener::accept() {
  const int socket = accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket >= 0) {
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return Arrival{.socket = Descriptor(socket)};
  }
  if (errno != EMFILE && errno != ENFILE) return std::nullopt;
  spare_.close();
  Arrival excess{.socket = Descriptor(::accept(listener_.get(), nullptr, nullptr)), .excess = true};
  if (!excess.socket) {
    spare_ = open_spare();
    return std::nullopt;
  }
  return excess;
}

bool is_loopback_address(const std::string& address) noexcept {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace dunlin
