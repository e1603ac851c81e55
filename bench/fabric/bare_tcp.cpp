#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "bench/fabric/bare.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kConnections = 8;

int checked(int result, const char* what) {
  if (result >= 0) return result;
  throw Error(std::string("bench: ") + what + " failed: " + std::strerror(errno));
}

class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_ = -1;
};

/// Both ends of a connection over loopback; a process uses the one of its rank.
using Connection = std::array<Socket, 2>;

Connection connect_to_ourselves() {
  const Socket listener(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  checked(::bind(listener.get(), any, length), "bind");
  checked(::getsockname(listener.get(), any, &length), "getsockname");
  checked(::listen(listener.get(), 1), "listen");
  Connection made;
  made[0] = Socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  checked(::connect(made[0].get(), any, length), "connect");
  made[1] = Socket(checked(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
  const int on = 1;
  for (const Socket& end : made)
    checked(::setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
  return made;
}

/// What a transfer does when the kernel has nothing for it: look again, or sleep.
class Patience {
 public:
  Patience() = default;
  explicit Patience(int descriptor) : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll")) {
    epoll_event event{};
    event.events = EPOLLIN;
    checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  }
  void wait() const {
    epoll_event event{};
    if (epoll_.get() >= 0) ::epoll_wait(epoll_.get(), &event, 1, -1);
  }

 private:
  Socket epoll_;
};

void check_transfer(ssize_t moved, const char* what) {
  if (moved == 0) throw Error("bench: the connection over loopback has closed");
  if (moved < 0 && errno != EAGAIN && errno != EINTR) checked(-1, what);
}

void send_all(int to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(to, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    check_transfer(sent, "send");
    if (sent <= 0) continue;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int from, std::byte* to, std::size_t bytes, const Patience& patience) {
  while (bytes > 0) {
    const ssize_t got = ::recv(from, to, bytes, MSG_DONTWAIT);
    check_transfer(got, "recv");
    if (got <= 0) {
      patience.wait();
      continue;
    }
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

class BareTcp final : public Bare {
 public:
  BareTcp() : connections_(kConnections) {
    for (Connection& connection : connections_) connection = connect_to_ourselves();
  }

  [[nodiscard]] std::string name() const override { return "bare TCP"; }

  Time one_way(Member& me, const Batches& plan, std::size_t bytes) override {
    return halved(exchange(me, plan, bytes, bytes, Patience()));
  }

  Time fetch(Member& me, const Batches& plan, std::size_t bytes) override {
    return exchange(me, plan, 8, bytes, Patience());
  }

  Time add(Member& me, const Batches& plan, Atomics) override {
    return exchange(me, plan, 8, 8, Patience());
  }

  Time stream(Member& me, std::size_t bytes, std::uint32_t items, std::uint32_t at_once) override {
    const int ours = end_of(me, 0);
    const std::size_t all = bytes * items;
    const std::size_t piece = bytes * at_once;
    me.meet();
    if (me.rank() != 0) {
      std::vector<std::byte> to(std::size_t{1} << 18);
      for (std::size_t left = all; left > 0;) {
        const ssize_t got = ::recv(ours, to.data(), std::min(left, to.size()), MSG_DONTWAIT);
        check_transfer(got, "recv");
        if (got > 0) left -= static_cast<std::size_t>(got);
      }
      send_all(ours, to.data(), 1);
      return std::nullopt;
    }
    const std::vector<std::byte> from(piece, std::byte{1});
    std::byte answer{};
    const double start = now_ns();
    for (std::size_t left = all; left > 0; left -= std::min(left, piece))
      send_all(ours, from.data(), std::min(left, piece));
    receive_all(ours, &answer, 1, Patience());
    return (now_ns() - start) / items;
  }

  Time spread(Member& me, const Batches& plan, std::uint32_t places) override {
    std::array<std::byte, 8> word{};
    me.meet();
    const auto once = [&](bool begins) {
      if (begins)
        for (std::uint32_t i = 0; i < places; ++i) send_all(end_of(me, i), word.data(), 8);
      for (std::uint32_t i = 0; i < places; ++i) {
        receive_all(end_of(me, i), word.data(), 8, Patience());
        if (!begins) send_all(end_of(me, i), word.data(), 8);
      }
    };
    if (me.rank() == 0) return median_ns(plan, [&] { once(true); });
    for (std::uint64_t i = 0; i < plan.total(); ++i) once(false);
    return std::nullopt;
  }

  Time asleep(Member& me, const Batches& plan) override {
    return halved(exchange(me, plan, 8, 8, Patience(end_of(me, 0))));
  }

 private:
  [[nodiscard]] int end_of(const Member& me, std::uint32_t connection) const {
    return connections_.at(connection)[me.rank()].get();
  }

  static Time halved(Time time) {
    if (time) *time /= 2;
    return time;
  }

  Time exchange(Member& me, const Batches& plan, std::size_t there, std::size_t back,
                const Patience& patience) {
    const int ours = end_of(me, 0);
    std::vector<std::byte> bytes(std::max(there, back));
    me.meet();
    if (me.rank() == 0) {
      return median_ns(plan, [&] {
        send_all(ours, bytes.data(), there);
        receive_all(ours, bytes.data(), back, patience);
      });
    }
    for (std::uint64_t i = 0; i < plan.total(); ++i) {
      receive_all(ours, bytes.data(), there, patience);
      send_all(ours, bytes.data(), back);
    }
    return std::nullopt;
  }

  std::vector<Connection> connections_;
};

}  // namespace

std::unique_ptr<Bare> bare_tcp() { return std::make_unique<BareTcp>(); }

}  // namespace dunlin::bench
