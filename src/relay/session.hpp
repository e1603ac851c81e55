#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/relay/relay.hpp>

#include "relay/connection.hpp"
#include "relay/counters.hpp"
#include "relay/topics.hpp"

/// A relay's service of one client. It reads and writes the connection's buffers, and no socket.
///
///  RLY-2  A number is acknowledged when the topic has delivered it here, or a higher one.
///  RLY-3  The samples of one connection and topic are published in the order of their numbers,
///         without a gap. The first one has any number: the client begins with its oldest sample
///         that no relay has acknowledged. The topic can know less than that client here: its
///         member is behind, or the topic began anew, or forgot the client.
///  RLY-5  While a sample finds no room in its topic, or the client's queue is full, no further
///         frame is looked at. The client is sent a sign of life now and then.
///  RLY-6  A subscription does not wait for its client: it skips samples, or ends.
namespace dunlin::relay {

class Session;

/// The state that all sessions of a relay share.
struct SessionPlace {
  RelayTopics& topics;
  const RelayOptions& options;
  SharedCounters& counters;
  std::string name;                // of the member
  std::vector<Session*> due = {};  // that have something to do
};

class Session {
 public:
  Session(SessionPlace& place, Connection& connection);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Does what the frames that have come ask for. Returns how many.
  std::size_t proceed();
  /// Does what has become possible: endpoints begin, are acknowledged, and are given samples.
  /// Returns whether it has to be called again soon, although nothing says so.
  [[nodiscard]] bool attend();
  /// Endpoints whose topic is over are ended.
  void check_topics();
  /// While the client is held back, nothing answers its pings: it is sent a pong unasked.
  void show_life();
  /// The client is told why, and the connection ends.
  void say_goodbye(const std::string& why);

  [[nodiscard]] const ClientId& id() const noexcept { return id_; }
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }
  [[nodiscard]] bool blocked() const noexcept { return blocked_; }
  /// Once what waits is sent, the connection is to be closed.
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  [[nodiscard]] bool wants_input() const noexcept { return !closing_ && !blocked_ && !is_full(); }
  void mark_due();

  bool is_due = false;  // it is in SessionPlace::due

 private:
  class Endpoint;
  [[nodiscard]] bool is_full() const noexcept {
    return connection_.waiting() >= place_.options.queue_bytes;
  }
  void handle(const Frame& frame);
  void handle_hello(const Frame& frame);
  void handle_open(const Frame& frame);
  void handle_sample(const Frame& frame);
  void break_off(const std::string& mistake);
  void begin(Endpoint& endpoint);
  void end(std::uint16_t number, const std::string& why);
  void count_if_resumed(const Endpoint& endpoint);
  void give_stored(Endpoint& endpoint);
  [[nodiscard]] bool attend(Endpoint& endpoint);

  SessionPlace& place_;
  Connection& connection_;
  FrameParser parser_{Side::client};
  ClientId id_ = {};
  bool greeted_ = false;
  bool blocked_ = false;
  bool closing_ = false;
  bool resumed_ = false;    // counted as one that had been at a relay before
  bool published_ = false;  // a sample of this connection
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  // by number
};

}  // namespace dunlin::relay
