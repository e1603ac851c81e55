#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "endpoint.hpp"
#include "fabric/client_listener.hpp"
#include "fabric/system.hpp"
#include "store/service.hpp"
#include "store/session.hpp"

namespace dunlin::app::resp {

/// The sockets of `dunlin store serve`: one thread waits for all of them, and for the fabric, with
/// epoll.
class Server {
 public:
  /// Listens. Throws Error.
  explicit Server(const Endpoint& endpoint);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return listener_.address().port(); }
  /// Serves until the descriptor is readable; then it finishes what clients have begun. Lets out
  /// what the store throws.
  void run(Service& service, int stop_descriptor);

 private:
  struct Connection {
    Connection(Descriptor arrived, Service& service, std::uint64_t id)
        : socket(std::move(arrived)), session(service, id) {}
    Descriptor socket;
    Session session;
    std::uint32_t interest = 0;  // events
    bool over = false;           // the client sends nothing more
    bool gone = false;           // nor does it receive
  };

  void turn(Service& service);
  void wait(Service& service);
  [[nodiscard]] bool may_sleep(const Service& service);
  int look_at_events();
  void handle_events(Service& service, int count);
  bool attend_runnable(Service& service);
  void accept_clients(Service& service);
  void turn_away(Service& service, int socket) noexcept;
  void read_from(Connection& connection);
  void attend(Connection& connection);
  bool flush(Connection& connection);
  [[nodiscard]] static bool is_over(const Connection& connection);
  [[nodiscard]] bool watch(Connection& connection);
  void lose(Connection& connection);
  void sweep();
  void finish(Service& service);

  ClientListener listener_;
  Descriptor epoll_;
  std::uint64_t next_id_ = 1;
  int stop_descriptor_ = -1;
  bool stop_ = false;
  std::uint32_t fruitless_ = 0;                 // turns in a row
  std::array<Connection*, kMaxEvents> read_{};  // connections that were read from in this turn
  std::unordered_map<const Session*, std::unique_ptr<Connection>> connections_;
  std::vector<const Session*> finished_;  // to be removed at the end of the turn
};

}  // namespace dunlin::app::resp
