#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/relay/client.hpp>

#include "fabric/socket_address.hpp"
#include "relay/connection.hpp"

/// The client's side of a relay's protocol.
///
///  RLY-4  A sample stays in its writer's `kept` until its number, or a higher one, is
///         acknowledged. To each further relay, the client sends all kept samples again.
///  RLY-7  A reader tells each further relay the position that it has reached.
namespace dunlin::relay {

struct WriterState {
  std::weak_ptr<ClientState> client;
  std::uint16_t number = 0;
  Open open;
  std::shared_ptr<const pubsub::TypeSupport> type;
  std::string type_text;  // the topic's
  std::string why_refused;
  bool was_opened = false;
  bool open_now = false;  // accepted by the present relay

  struct Kept {
    std::uint8_t flags = 0;
    ClientSample sample;
    Buffer payload = {};
    bool was_sent = false;  // sent to any relay so far
  };
  std::deque<Kept> kept;
  std::size_t kept_bytes = 0;
  // The index in `kept` of the first sample that this relay was not sent.
  std::size_t next = 0;
  // Sample numbers, as they travel:
  std::uint64_t before = 0;  // numbers that earlier writers of this client have used
  std::uint64_t written = 0;
  std::uint64_t acknowledged = 0;
};

struct ReaderState {
  std::weak_ptr<ClientState> client;
  std::uint16_t number = 0;
  Open open;  // its `after_...` say where the reader is
  std::shared_ptr<const pubsub::TypeSupport> type;
  std::uint32_t max_samples = 0;
  std::string type_text;
  std::string why_refused;
  bool open_now = false;
  std::deque<ReceivedSample> samples;
  std::uint64_t lost = 0;
  std::uint64_t restarts = 0;
  bool counts_from_start = false;  // samples before the first one that the reader is given are lost
};

class ClientState {
 public:
  explicit ClientState(ClientOptions options);
  ~ClientState();
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;

  std::size_t poll();
  [[nodiscard]] int descriptor() const noexcept;
  [[nodiscard]] short events() const noexcept;
  [[nodiscard]] std::uint32_t timeout_ms() const noexcept;
  [[nodiscard]] bool connected() const noexcept { return welcomed_; }
  [[nodiscard]] std::string relay() const { return welcomed_ ? relays_[current_].text : ""; }

  std::uint16_t add(const std::shared_ptr<WriterState>& writer);
  std::uint16_t add(const std::shared_ptr<ReaderState>& reader);
  [[nodiscard]] pubsub::WriteResult put(WriterState& writer, const void* sample, bool disposes);

  ClientCounters counters;
  std::string why_disconnected;

 private:
  struct RelayAddress {
    std::string text;
    SocketAddress at = {};
  };
  struct Slot {
    std::shared_ptr<WriterState> writer = {};
    std::shared_ptr<ReaderState> reader = {};
    bool is_sent = false;  // whether its open frame was sent to this relay
    bool closing = false;  // whether its close frame was sent, and not answered yet
    [[nodiscard]] bool is_free() const noexcept { return !writer && !reader && !closing; }
  };

  void resolve(const std::string& relay);
  void connect();
  [[nodiscard]] bool finish_connecting();
  void disconnect(const std::string& why);
  [[nodiscard]] std::uint16_t free_number() const;
  void close_unused();
  std::size_t take_frames();
  [[nodiscard]] std::string handle(const Frame& frame);
  [[nodiscard]] std::string handle_welcome(const Frame& frame);
  [[nodiscard]] std::string handle_opened(const Frame& frame, Slot& slot);
  [[nodiscard]] std::string handle_refused(const Frame& frame, Slot& slot);
  [[nodiscard]] std::string handle_acknowledged(const Frame& frame, Slot& slot);
  [[nodiscard]] std::string handle_delivered(const Frame& frame, Slot& slot);
  [[nodiscard]] bool settle(WriterState& writer, std::uint64_t number);
  [[nodiscard]] bool may_send(const WriterState& writer) const noexcept;
  void open_endpoints();
  std::size_t send_samples();
  void check_silence(std::uint64_t now_ns);
  [[nodiscard]] bool is_full() const noexcept;

  ClientOptions options_;
  PipeMaker make_pipe_;
  ClientId id_ = {};
  std::vector<RelayAddress> relays_;
  std::size_t current_ = 0;
  std::size_t failures_ = 0;  // failures in a row
  std::vector<Slot> slots_;   // by endpoint number
  std::uint64_t used_ = 0;    // the highest sample number of a writer that has gone

  std::unique_ptr<Connection> connection_;
  FrameParser parser_{Side::relay};
  bool connecting_ = false;
  bool welcomed_ = false;
  std::uint64_t due_ns_ = 0;  // for the next connection, or the end of this attempt
  std::uint64_t heard_ns_ = 0;
  std::uint64_t pinged_ns_ = 0;  // 0: no answer is awaited
  std::uint64_t heard_bytes_ = 0;
};

}  // namespace dunlin::relay
