#include "store/server.hpp"

#include <algorithm>
#include <array>

#include <sched.h>
#include <sys/socket.h>

#include "command.hpp"
#include "fabric/sleeping.hpp"

namespace dunlin::app::resp {
namespace {

constexpr int kAcceptsAtOnce = 64;
constexpr int kReadsAtOnce = 4;
// Before each sleep the server arms the fabric's doorbell and a timer, by two system calls: so a
// busy one looks so often again first.
constexpr std::uint32_t kTurnsBeforeSleep = 32;
// Calls under way are polled for; but if a member is slow, the doorbell tells.
constexpr std::uint32_t kTurnsOfCalls = 4096;
constexpr std::uint64_t kFinishNs = 2'000'000'000;
constexpr std::string_view kFull = "-ERR max number of clients reached\r\n";

bool has_several_processors() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

std::array<epoll_event, kMaxEvents>& events() {
  static thread_local std::array<epoll_event, kMaxEvents> all;
  return all;
}

}  // namespace

Server::Server(const Endpoint& endpoint)
    : listener_(endpoint.address, endpoint.port, "choose another place by --resp") {
  epoll_ = Descriptor(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
}

Server::~Server() = default;

// --- the loop ------------------------------------------------------------------------------------

void Server::run(Service& service, int stop_descriptor) {
  stop_descriptor_ = stop_descriptor;
  const auto watch_own = [&](int descriptor, void* tag) {
    checked(watch_in(epoll_.get(), EPOLL_CTL_ADD, descriptor, EPOLLIN, {.ptr = tag}), "epoll_ctl");
  };
  watch_own(listener_.descriptor(), &listener_);
  watch_own(stop_descriptor, &stop_descriptor_);
  while (!stop_) turn(service);
  finish(service);
  connections_.clear();
}

void Server::turn(Service& service) {
  bool busy = service.poll() > 0;
  busy = attend_runnable(service) || busy;
  fruitless_ = busy ? 0 : fruitless_ + 1;
  if (may_sleep(service)) {
    wait(service);
  } else {
    handle_events(service, look_at_events());
  }
  sweep();
}

bool Server::may_sleep(const Service& service) {
  static const bool several_processors = has_several_processors();
  if (service.has_runnable()) return false;
  if (!several_processors) return fruitless_ > 0;
  return fruitless_ >= (service.values().under_way() > 0 ? kTurnsOfCalls : kTurnsBeforeSleep);
}

void Server::wait(Service& service) {
  const auto is_busy = [&] {
    const bool busy = service.poll() > 0 || service.has_runnable();
    if (!busy) ++service.counters().sleeps;
    return busy;
  };
  const auto waits = [&] {
    Waits all = service.values().waits();
    all.descriptors.push_back(epoll_.get());
    return all;
  };
  sleep_unless(is_busy, waits, UINT64_MAX);
  handle_events(service, look_at_events());
}

int Server::look_at_events() { return epoll_wait(epoll_.get(), events().data(), kMaxEvents, 0); }

/// As Redis does, sends replies once all clients with requests have been read from: a client that
/// the first reply wakes finds the others, too.
void Server::handle_events(Service& service, int count) {
  std::size_t to_attend = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events()[static_cast<std::size_t>(i)];
    fruitless_ = 0;
    if (event.data.ptr == &listener_) {
      accept_clients(service);
    } else if (event.data.ptr == &stop_descriptor_) {
      stop_ = true;
    } else {
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      if ((event.events & EPOLLIN) != 0) {
        read_from(connection);
      } else if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) {
        lose(connection);
      }
      connection.session.proceed();
      read_[to_attend++] = &connection;
    }
  }
  for (Connection* const connection : std::span(read_).first(to_attend)) attend(*connection);
}

bool Server::attend_runnable(Service& service) {
  if (!service.has_runnable()) return false;
  const std::vector<Session*> runnable = service.take_runnable();
  std::size_t count = 0;
  do {
    Session* const session = runnable[count];
    session->marked_runnable = false;
    const auto found = connections_.find(session);
    if (found != connections_.end()) attend(*found->second);
  } while (++count < runnable.size() && !service.is_due());
  if (count < runnable.size()) service.put_back(std::span(runnable).subspan(count));
  return true;
}

// --- clients -------------------------------------------------------------------------------------

void Server::accept_clients(Service& service) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    auto arrival = listener_.accept();
    if (!arrival) return;
    if (arrival->excess || connections_.size() >= kMaxClients) {
      turn_away(service, arrival->socket.get());
      continue;
    }
    const int socket = arrival->socket.get();
    auto connection = std::make_unique<Connection>(std::move(arrival->socket), service, next_id_++);
    connection->interest = EPOLLIN;
    const auto peer = peer_address_of(connection->socket);
    connection->session.address = peer ? peer->text() : "?:0";  // if it is gone
    if (watch_in(epoll_.get(), EPOLL_CTL_ADD, socket, EPOLLIN, {.ptr = connection.get()}) != 0) {
      turn_away(service, socket);
      continue;
    }
    const Session* const session = &connection->session;
    connections_.emplace(session, std::move(connection));
  }
}

void Server::turn_away(Service& service, int socket) noexcept {
  ++service.counters().rejected;
  // If it does not arrive, the end of the connection does.
  static_cast<void>(send(socket, kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Server::read_from(Connection& connection) {
  for (int i = 0; i < kReadsAtOnce && !connection.over; ++i) {
    const std::span<char> room = connection.session.input_room();
    if (room.empty()) return;
    const ssize_t count = recv(connection.socket.get(), room.data(), room.size(), 0);
    if (count > 0) {
      connection.session.received(static_cast<std::size_t>(count));
      if (static_cast<std::size_t>(count) < room.size()) return;
      connection.session.proceed();
    } else if (count == 0) {
      connection.over = true;
    } else {
      if (errno != EAGAIN && errno != EINTR) lose(connection);
      return;
    }
  }
}

/// Nobody is there to take replies; what is under way is finished first.
void Server::lose(Connection& connection) {
  if (std::exchange(connection.gone, true)) return;
  connection.session.abandon();
  // It would go on to say that the connection is broken. Closing does the same, if this fails.
  static_cast<void>(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr));
}

void Server::attend(Connection& connection) {
  Session& session = connection.session;
  do session.proceed();
  while (flush(connection) && session.can_proceed());
  if (!is_over(connection) && !watch(connection)) {
    lose(connection);
    session.proceed();  // drops the replies that cannot be sent
  }
  if (is_over(connection)) finished_.push_back(&session);
}

bool Server::is_over(const Connection& connection) {
  const Session& session = connection.session;
  const bool at_end = session.output().empty() && session.idle();
  return at_end && (connection.gone || connection.over || session.closing());
}

/// Returns whether something was sent.
bool Server::flush(Connection& connection) {
  Session& session = connection.session;
  bool sent = false;
  while (!session.output().empty()) {
    const std::string_view output = session.output();
    const ssize_t count = send(connection.socket.get(), output.data(), output.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        lose(connection);
        session.output_sent(session.output().size());
      }
      break;
    }
    session.output_sent(static_cast<std::size_t>(count));
    sent = true;
  }
  return sent;
}

/// Returns false if the kernel refuses to.
bool Server::watch(Connection& connection) {
  const Session& session = connection.session;
  const bool reads = !connection.over && session.wants_input();
  const std::uint32_t wanted = (reads ? EPOLLIN : 0U) | (session.output().empty() ? 0U : EPOLLOUT);
  if (wanted == connection.interest || connection.gone) return true;
  connection.interest = wanted;
  return watch_in(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), wanted,
                  {.ptr = &connection}) == 0;
}

/// Connections go when no event of this turn can name them any more.
void Server::sweep() {
  for (const Session* const session : finished_) {
    const auto found = connections_.find(session);
    if (found == connections_.end()) continue;
    finish_sending(found->second->socket.get());
    connections_.erase(found);
  }
  finished_.clear();
}

/// What clients have begun is finished, as far as that takes no longer than a moment.
void Server::finish(Service& service) {
  listener_.close();
  const std::uint64_t end_ns = read_clock_ns(CLOCK_MONOTONIC) + kFinishNs;
  const auto waits = [&] {
    return std::ranges::any_of(connections_, [](const auto& entry) {
      const Session& session = entry.second->session;
      return !session.idle() || (!session.output().empty() && !entry.second->gone);
    });
  };
  while (waits() && read_clock_ns(CLOCK_MONOTONIC) < end_ns) {
    service.poll();
    attend_runnable(service);
    for (const auto& [session, connection] : connections_) attend(*connection);
    sweep();
    sched_yield();
  }
}

}  // namespace dunlin::app::resp
