#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <dunlin/error.hpp>

#include "bench/fabric/bare.hpp"
#include "fabric/socket_address.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kConnections = 8;

/// The address of a number and a port.
SocketAddress address_at(const std::string& number, const std::string& port) {
  std::string fault;
  const auto found = find_addresses(number, port, AI_NUMERICHOST, fault);
  if (found.empty()) throw Error("bench: '" + number + "' is no address for sockets");
  return found.front();
}

Descriptor blocking_socket(const SocketAddress& at) {
  return Descriptor(
      checked(::socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
}

/// Our ends of connections between member 0, which listens at its address, and member 1.
std::vector<Descriptor> connect_pair(Member& me, const std::string& address) {
  std::vector<Descriptor> ends;
  if (me.rank() == 0) {
    const SocketAddress here = address_at(address, "0");
    const Descriptor listener = blocking_socket(here);
    checked(::bind(listener.get(), here.generic(), here.bytes), "bind");
    checked(::listen(listener.get(), kConnections), "listen");
    static_cast<void>(me.exchange(address + " " + std::to_string(own_address_of(listener).port())));
    for (std::uint32_t i = 0; i < kConnections; ++i)
      ends.emplace_back(
          checked(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
  } else {
    const std::string word = me.exchange({}).front();
    const std::size_t space = word.find(' ');
    const SocketAddress there = address_at(word.substr(0, space), word.substr(space + 1));
    for (std::uint32_t i = 0; me.rank() == 1 && i < kConnections; ++i) {
      ends.push_back(blocking_socket(there));
      checked(::connect(ends.back().get(), there.generic(), there.bytes), "connect");
    }
  }
  for (const Descriptor& end : ends) set_option(end, IPPROTO_TCP, TCP_NODELAY, 1);
  return ends;
}

/// What a transfer does when the kernel has nothing for it: look again, or sleep.
class Patience {
 public:
  Patience() = default;
  explicit Patience(int descriptor) : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll")) {
    checked(watch_in(epoll_.get(), EPOLL_CTL_ADD, descriptor, EPOLLIN), "epoll_ctl");
  }
  void wait() const {
    epoll_event event{};
    if (epoll_.get() >= 0) ::epoll_wait(epoll_.get(), &event, 1, -1);
  }

 private:
  Descriptor epoll_;
};

void check_transfer(ssize_t moved, const char* what) {
  if (moved == 0) throw Error("bench: a bare connection has closed");
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
  explicit BareTcp(std::vector<Descriptor> ends) : ends_(std::move(ends)) {}

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
    me.meet();
    if (me.rank() > 1) return std::nullopt;
    const int ours = end(0);
    const std::size_t all = bytes * items;
    const std::size_t piece = bytes * at_once;
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

  Time stream_both_ways(Member& me, std::size_t bytes, std::uint32_t items,
                        std::uint32_t at_once) override {
    me.meet();
    if (me.rank() > 1) return std::nullopt;
    const int ours = end(0);
    const std::vector<std::byte> from(bytes * at_once, std::byte{1});
    std::vector<std::byte> to(std::size_t{1} << 18);
    std::size_t to_send = bytes * items;
    std::size_t to_receive = to_send;
    const double start = now_ns();
    while (to_send > 0 || to_receive > 0) {
      if (to_send > 0) {
        const std::size_t piece = (to_send - 1) % from.size() + 1;
        const ssize_t sent = ::send(ours, from.data(), piece, MSG_DONTWAIT | MSG_NOSIGNAL);
        check_transfer(sent, "send");
        if (sent > 0) to_send -= static_cast<std::size_t>(sent);
      }
      if (to_receive == 0) continue;
      const ssize_t got = ::recv(ours, to.data(), std::min(to_receive, to.size()), MSG_DONTWAIT);
      check_transfer(got, "recv");
      if (got > 0) to_receive -= static_cast<std::size_t>(got);
    }
    const double ns = (now_ns() - start) / (2.0 * items);
    return me.rank() == 0 ? Time(ns) : std::nullopt;
  }

  Time spread(Member& me, const Batches& plan, std::uint32_t places) override {
    me.meet();
    if (me.rank() > 1) return std::nullopt;
    std::array<std::byte, 8> word{};
    const auto once = [&](bool begins) {
      if (begins)
        for (std::uint32_t i = 0; i < places; ++i) send_all(end(i), word.data(), 8);
      for (std::uint32_t i = 0; i < places; ++i) {
        receive_all(end(i), word.data(), 8, Patience());
        if (!begins) send_all(end(i), word.data(), 8);
      }
    };
    if (me.rank() == 0) return batch_ns(plan, [&] { once(true); });
    for (std::uint64_t i = 0; i < plan.total(); ++i) once(false);
    return std::nullopt;
  }

  Time asleep(Member& me, const Batches& plan) override {
    return halved(exchange(me, plan, 8, 8, me.rank() > 1 ? Patience() : Patience(end(0))));
  }

 private:
  [[nodiscard]] int end(std::uint32_t connection) const { return ends_.at(connection).get(); }

  static Time halved(Time time) {
    if (time) *time /= 2;
    return time;
  }

  Time exchange(Member& me, const Batches& plan, std::size_t there, std::size_t back,
                const Patience& patience) {
    me.meet();
    if (me.rank() > 1) return std::nullopt;
    const int ours = end(0);
    std::vector<std::byte> bytes(std::max(there, back));
    if (me.rank() == 0) {
      return batch_ns(plan, [&] {
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

  std::vector<Descriptor> ends_;
};

}  // namespace

std::unique_ptr<Bare> bare_tcp(Member& me, const std::string& address) {
  return std::make_unique<BareTcp>(connect_pair(me, address.empty() ? "127.0.0.1" : address));
}

}  // namespace dunlin::bench
