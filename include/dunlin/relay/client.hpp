#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/pubsub/qos.hpp>
#include <dunlin/pubsub/status.hpp>
#include <dunlin/pubsub/type_support.hpp>
#include <dunlin/relay/limits.hpp>

/// The untyped client of relays, for tools and for the typed endpoints (<dunlin/relay.hpp>).
namespace dunlin::relay {

struct ClientOptions {
  /// "HOST:PORT" or "[v6]:PORT" each. The client goes to the first relay, and on to the next one
  /// when it does not reach a relay, or loses it. The constructor looks names up, once.
  std::vector<std::string> relays = {};
  std::string secret = {};  // the group's secret, if the relays have it
  /// Most bytes of each writer's samples that no relay has acknowledged yet.
  std::size_t window_bytes = std::size_t{1} << 20;
  std::uint32_t window_samples = 65'536;
  std::uint64_t connect_ns = 2'000'000'000;  // time for a relay to say welcome
  std::uint64_t retry_ns = 100'000'000;      // pause before it tries all relays again
  std::uint64_t silence_ns = 5'000'000'000;  // a relay that does not answer for so long is given up
};

/// What a client requests from a topic.
struct ReaderQos {
  pubsub::Reliability reliability = pubsub::Reliability::reliable();
  pubsub::Durability durability = {};
  /// Samples that the client holds at most. When there are so many, the client reads nothing more
  /// from its relay until some are taken.
  std::uint32_t max_samples = 4096;
};

struct ClientCounters {
  std::uint64_t connections = 0;   // with relays that have said welcome
  std::uint64_t written = 0;       // samples written
  std::uint64_t sent_again = 0;    // those of `written` that were sent again, to a further relay
  std::uint64_t acknowledged = 0;  // those of `written` that a relay has acknowledged
  std::uint64_t received = 0;      // samples received
};

/// A sample as bytes: plain, or XCDR2 with its header.
struct ReceivedSample {
  bool valid = true;  // false: it disposes an instance, and only the key members count
  bool plain = true;
  std::uint64_t key_hash = 0;
  std::uint64_t position = 0;   // in the topic, from 1 on
  std::uint64_t sequence = 0;   // its number at its writer
  std::uint64_t source_ns = 0;  // when it was written, by the writer's clock
  std::vector<std::byte> payload = {};
};

class ClientState;
struct WriterState;
struct ReaderState;

/// A program's connection to the topics of a group in which it is no member, through one relay at a
/// time (docs/relay.md). One thread uses it.
class RelayClient {
 public:
  /// Does not wait for a relay to answer. Throws Error.
  explicit RelayClient(ClientOptions options);
  ~RelayClient();
  RelayClient(const RelayClient&) = delete;
  RelayClient& operator=(const RelayClient&) = delete;

  /// Makes all progress, and never waits. Returns how many things were done.
  std::size_t poll();
  /// Waits at most so long for the relay, or for a time at which poll() has something to do.
  void wait(std::uint32_t timeout_ms);
  /// Polls and waits until the condition holds, at most so long; returns whether it does.
  bool run_until(const std::function<bool()>& condition, std::uint32_t timeout_ms);

  // For a program's own event loop: call poll() when the descriptor has one of these events of
  // poll(2), or after so long. They change with every poll(); -1: no descriptor now.
  [[nodiscard]] int descriptor() const noexcept;
  [[nodiscard]] short events() const noexcept;
  [[nodiscard]] std::uint32_t timeout_ms() const noexcept;

  [[nodiscard]] bool connected() const noexcept;
  /// The address of the present relay, as the options give it; empty if there is none.
  [[nodiscard]] std::string relay() const;
  /// A sentence that says why there is no connection, or why the last one ended; empty: there was
  /// none.
  [[nodiscard]] const std::string& why_disconnected() const noexcept;
  [[nodiscard]] const ClientCounters& counters() const noexcept;

 private:
  friend class AnyRelayWriter;
  friend class AnyRelayReader;
  std::shared_ptr<ClientState> state_;
};

/// A writer of samples through relays. A handle: copies are the same writer, which ends with its
/// last handle. After the client has gone, write() returns `ended`.
class AnyRelayWriter {
 public:
  AnyRelayWriter() = default;
  /// A client has at most one writer of a topic at a time. With policies, the relay creates the
  /// topic if it does not exist. Throws Error.
  AnyRelayWriter(const RelayClient& client, const std::string& topic,
                 std::shared_ptr<const pubsub::TypeSupport> type,
                 std::optional<pubsub::TopicQos> qos = {});

  /// With the result `written`, the client keeps the sample, and sends it until it is acknowledged.
  [[nodiscard]] pubsub::WriteResult write(const void* sample) { return put(sample, false); }
  [[nodiscard]] pubsub::WriteResult dispose(const void* key_holder) {
    return put(key_holder, true);
  }
  /// Whether a relay has ever accepted this writer.
  [[nodiscard]] bool ready() const noexcept;
  [[nodiscard]] const std::string& why_refused() const noexcept;
  /// How many samples this writer has written, and how many of these are delivered.
  [[nodiscard]] std::uint64_t written() const noexcept;
  [[nodiscard]] std::uint64_t acknowledged() const noexcept;
  [[nodiscard]] bool all_acknowledged() const noexcept { return acknowledged() == written(); }
  /// The topic's TypeSupport::text, as the relay says; empty before the writer is ready.
  [[nodiscard]] const std::string& type_text() const noexcept;

 protected:
  [[nodiscard]] pubsub::WriteResult put(const void* sample, bool disposes);

 private:
  std::shared_ptr<WriterState> state_;
};

/// A reader of samples through relays. A handle: copies are the same reader, which ends with its
/// last handle.
class AnyRelayReader {
 public:
  AnyRelayReader() = default;
  AnyRelayReader(const RelayClient& client, const std::string& topic,
                 std::shared_ptr<const pubsub::TypeSupport> type, const ReaderQos& qos = {},
                 std::optional<pubsub::TopicQos> topic_qos = {});

  [[nodiscard]] bool available() const noexcept;
  /// Takes the oldest sample that was not taken yet.
  [[nodiscard]] std::optional<ReceivedSample> take_one();
  /// Whether a relay has accepted this reader, and the client is connected to a relay now.
  [[nodiscard]] bool ready() const noexcept;
  /// A sentence that says why the reader was refused, or ended, for example as too slow.
  [[nodiscard]] const std::string& why_refused() const noexcept;
  /// How many samples the reader was not given, because it was slow, or connected to no relay when
  /// they came (RLY-7).
  [[nodiscard]] std::uint64_t lost() const noexcept;
  /// How often the reader came to a relay where its position in the topic was unknown, because the
  /// topic had begun anew, or is unordered. Each time, samples may be missing that lost() does not
  /// count, and samples that the reader was given may come again.
  [[nodiscard]] std::uint64_t restarts() const noexcept;
  [[nodiscard]] const std::string& type_text() const noexcept;

 protected:
  [[nodiscard]] const pubsub::TypeSupport& type() const noexcept;
  void count_lost() noexcept;

 private:
  std::shared_ptr<ReaderState> state_;
};

}  // namespace dunlin::relay
