#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/clock.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/patience.hpp"
#include "bench/topic/topic_node.hpp"

namespace dunlin::bench {

/// Of the storage of topics that have one.
inline constexpr std::uint32_t kStoredSamples = 64;

/// A sample of so many bytes, built and seen in place.
template <std::size_t Bytes>
struct Blob {
  std::array<std::uint8_t, Bytes> bytes;
};

/// With rings as those of a Cast.
inline pubsub::TopicQos measured_qos(pubsub::Level level) {
  return {.level = level, .max_samples = kStoredSamples, .ring_bytes = kRingBytes};
}

/// A topic with a reader at each member, and with writers at the first so many of them.
template <class T>
class MeasuredTopic {
 public:
  /// Non-plain samples are copies of `sample`.
  MeasuredTopic(TopicNode& node, const std::string& name, const pubsub::TopicQos& qos,
                std::uint32_t writers, T sample)
      : node_(node), writers_(writers), sample_(std::make_unique<T>(std::move(sample))) {
    const pubsub::DomainParticipant& participant = node.participant();
    topic_ = pubsub::Topic<T>(participant, name, qos);
    if (node.me().rank() < writers)
      writer_ = pubsub::DataWriter<T>(pubsub::Publisher(participant), topic_);
    reader_ = pubsub::DataReader<T>(pubsub::Subscriber(participant), topic_);
    reader_.on_sample([this](const T& one, const pubsub::SampleInfo& info) {
      if (!info.valid()) return;
      if constexpr (pubsub::detail::is_plain<T>())
        if (!node_.writes()) look_at(std::as_bytes(std::span(&one, 1)));
      ++node_.delivered;
    });
  }
  MeasuredTopic(const MeasuredTopic&) = delete;
  MeasuredTopic& operator=(const MeasuredTopic&) = delete;

  /// This member's endpoints know all others.
  [[nodiscard]] bool met() const {
    if (!reader_->ready() || reader_->subscription_matched_status().current_count < writers_)
      return false;
    return !writer_ || (writer_->ready() &&
                        writer_->publication_matched_status().current_count >= node_.me().size());
  }
  /// Writes a sample, if there is room.
  [[nodiscard]] bool write() {
    if constexpr (pubsub::detail::is_plain<T>()) {
      if (writer_.loan() == nullptr) return false;
      writer_.publish();
      return true;
    } else {
      return writer_.write(*sample_) == pubsub::WriteResult::written;
    }
  }

 private:
  TopicNode& node_;
  std::uint32_t writers_;
  std::unique_ptr<T> sample_;
  pubsub::Topic<T> topic_;
  pubsub::DataWriter<T> writer_;
  pubsub::DataReader<T> reader_;
};

template <class T>
using MeasuredTopics = std::vector<std::unique_ptr<MeasuredTopic<T>>>;

/// Returns when all endpoints of all members have met.
template <class T>
MeasuredTopics<T> make_topics(TopicNode& node, const std::string& name, std::size_t count,
                              const pubsub::TopicQos& qos, std::uint32_t writers, T sample = {}) {
  MeasuredTopics<T> topics;
  for (std::size_t i = 0; i < count; ++i)
    topics.push_back(
        std::make_unique<MeasuredTopic<T>>(node, name + std::to_string(i), qos, writers, sample));
  for (const auto& topic : topics) node.poll_until([&] { return topic->met(); });
  node.meet();
  return topics;
}

/// Member 0 writes so many into these topics in turn; it gets how many a second it delivers itself.
template <class T>
std::optional<double> stream(TopicNode& node,
                             std::span<const std::unique_ptr<MeasuredTopic<T>>> topics,
                             std::uint64_t samples) {
  node.goal += samples;
  return node.turn([&]() -> std::optional<double> {
    std::uint64_t left = node.writes() ? samples : 0;
    std::size_t next = 0;
    const double start = now_ns();
    Patience patience;
    while (left > 0 || node.delivered < node.goal) {
      bool some = false;
      for (; left > 0 && topics[next]->write(); --left) {
        if (++next == topics.size()) next = 0;
        some = true;
      }
      some |= node.poll() > 0;
      patience.after(some);
    }
    if (!node.writes()) return std::nullopt;
    return static_cast<double>(samples) * 1e9 / (now_ns() - start);
  });
}

/// Members 0 and 1 answer each other's samples; member 0 gets half a round trip.
template <class T>
std::optional<double> ping_pong(TopicNode& node, MeasuredTopic<T>& topic, const Batches& plan) {
  std::uint64_t next = node.goal;
  node.goal += 2 * plan.total();
  return node.turn([&]() -> std::optional<double> {
    const auto await = [&](std::uint64_t count) {
      node.poll_until([&] { return node.delivered >= count; });
    };
    const auto write = [&] { node.poll_until([&] { return topic.write(); }); };
    if (node.me().rank() == 0)
      return batch_ns(plan,
                      [&] {
                        write();
                        await(next += 2);
                      }) /
             2;
    for (; next < node.goal; next += 2) {
      await(next + 1);
      if (node.me().rank() == 1) write();
    }
    await(node.goal);
    return std::nullopt;
  });
}

}  // namespace dunlin::bench
