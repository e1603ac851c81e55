#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/pubsub/topic_type.hpp>
#include <dunlin/relay/client.hpp>

/// Topics for programs that are no members of the group: by TCP, through a relay (docs/relay.md).
/// Needs `libdunlin_client` alone.
///
///     RelayClient client({.relays = {"10.0.0.9:7480", "10.0.0.10:7480"}, .secret = secret});
///     RelayWriter<Shape> writer(client, "square");
///     RelayReader<Shape> reader(client, "square", {.reliability = Reliability::best_effort()});
///     for (;;) {
///       client.poll();
///       for (const auto& sample : reader.take()) draw(sample.data);
///       client.wait(100);
///     }
namespace dunlin::relay {

template <class T>
struct RelaySample {
  T data = {};
  /// False: the sample disposes an instance, and only the key members of `data` count.
  bool valid = true;
  std::uint64_t position = 0;
  std::uint64_t sequence = 0;
  std::uint64_t source_ns = 0;
};

template <class T>
class RelayWriter : public AnyRelayWriter {
 public:
  RelayWriter() = default;
  RelayWriter(const RelayClient& client, const std::string& topic,
              std::optional<pubsub::TopicQos> qos = {})
      : AnyRelayWriter(client, topic, pubsub::type_support<T>(), qos) {}

  [[nodiscard]] pubsub::WriteResult write(const T& sample) { return put(&sample, false); }
  [[nodiscard]] pubsub::WriteResult dispose_instance(const T& key_holder) {
    return put(&key_holder, true);
  }
};

template <class T>
class RelayReader : public AnyRelayReader {
 public:
  RelayReader() = default;
  RelayReader(const RelayClient& client, const std::string& topic, const ReaderQos& qos = {},
              std::optional<pubsub::TopicQos> topic_qos = {})
      : AnyRelayReader(client, topic, pubsub::type_support<T>(), qos, topic_qos) {}

  /// Takes all samples that are there.
  [[nodiscard]] std::vector<RelaySample<T>> take() {
    std::vector<RelaySample<T>> samples;
    while (auto one = take_one()) {
      RelaySample<T> sample{.valid = one->valid,
                            .position = one->position,
                            .sequence = one->sequence,
                            .source_ns = one->source_ns};
      if (pubsub::decode_sample(type(), one->plain, one->payload, &sample.data))
        samples.push_back(std::move(sample));
      else
        count_lost();
    }
    return samples;
  }
};

/// Writes; polls and waits while there is no room, at most so long. Returns whether the client has
/// the sample.
template <class T>
[[nodiscard]] bool write_within(RelayClient& client, RelayWriter<T>& writer, const T& sample,
                                std::uint32_t timeout_ms) {
  pubsub::WriteResult result = pubsub::WriteResult::not_ready;
  const auto over = [&] {
    result = writer.write(sample);
    return result != pubsub::WriteResult::no_room && result != pubsub::WriteResult::not_ready;
  };
  return client.run_until(over, timeout_ms) && result == pubsub::WriteResult::written;
}

}  // namespace dunlin::relay
