#include "fabric/client_listener.hpp"

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

namespace dunlin {
namespace {

constexpr int kQueuedClients = 4096;

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
  std::string fault;
  const std::vector<SocketAddress> found =
      find_addresses(text, std::to_string(port), AI_NUMERICHOST, fault);
  if (found.empty()) throw Error(where + "not an address (" + fault + "); " + advice);
  const SocketAddress& at = found.front();
  listener_ = new_stream_socket(at);
  checked(listener_.get(), "socket");
  set_option(listener_, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(listener_.get(), at.generic(), at.bytes) != 0 ||
      listen(listener_.get(), kQueuedClients) != 0)
    throw Error(where + error_text(errno) + "; " + advice);
  address_ = own_address_of(listener_);
  spare_ = open_spare();
}

std::optional<ClientListener::Arrival> ClientListener::accept() {
  if (!spare_) spare_ = open_spare();  // the caller has closed the client that was turned away
  Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    return Arrival{.socket = std::move(socket)};
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

void finish_sending(int socket) noexcept {
  shutdown(socket, SHUT_WR);
  std::array<std::byte, 4096> unread;
  for (int i = 0; i < 64 && recv(socket, unread.data(), unread.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

bool is_loopback_address(const std::string& address) noexcept {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace dunlin
