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

/// A relay's service for one client. It reads and writes the connection's buffers, and uses no
/// socket.
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
struct RelayContext {
  RelayTopics& topics;
  const RelayOptions& options;
  SharedCounters& counters;
  std::string name;                // the member's name
  std::vector<Session*> due = {};  // sessions that have something to do
};

class Session {
 public:
  Session(RelayContext& context, Connection& connection);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Executes the frames that have come. Returns how many.
  std::size_t proceed();
  /// Does what has become possible: endpoints begin, are acknowledged, and are given samples.
  /// Returns whether it has to be called again soon although no event will say so.
  [[nodiscard]] bool attend();
  /// Ends endpoints whose topic is over.
  void check_topics();
  /// Sends a pong unasked: while the client is held back, nothing answers its pings.
  void show_life();
  /// Tells the client why, and ends the connection.
  void say_goodbye(const std::string& why);

  [[nodiscard]] const ClientId& id() const noexcept { return id_; }
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }
  [[nodiscard]] bool blocked() const noexcept { return blocked_; }
  /// Whether the connection is to be closed once the waiting bytes are sent.
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  [[nodiscard]] bool wants_input() const noexcept { return !closing_ && !blocked_ && !is_full(); }
  void mark_due();

  bool is_due = false;  // whether it is in RelayContext::due

 private:
  class Endpoint;
  [[nodiscard]] bool is_full() const noexcept {
    return connection_.waiting() >= context_.options.queue_bytes;
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

  RelayContext& context_;
  Connection& connection_;
  FrameParser parser_{Side::client};
  ClientId id_ = {};
  bool greeted_ = false;
  bool blocked_ = false;
  bool closing_ = false;
  bool resumed_ = false;    // counted as a client that had been at a relay before
  bool published_ = false;  // whether this connection has published a sample
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  // by number
};

}  // namespace dunlin::relay
