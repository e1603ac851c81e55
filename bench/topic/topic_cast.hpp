#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <dunlin/pubsub.hpp>

#include "bench/harness/team.hpp"
#include "bench/multicast/cast.hpp"
#include "bench/multicast/look.hpp"
#include "bench/multicast/patience.hpp"

namespace dunlin::bench {

/// Topics of one sample size to measure, one of each level that needs no disk. Member 0 writes.
template <std::size_t Bytes>
class TopicCast {
 public:
  struct Blob {
    std::array<std::uint8_t, Bytes> bytes;
  };
  struct OneTopic {
    pubsub::Topic<Blob> topic;
    pubsub::DataWriter<Blob> writer;
    pubsub::DataReader<Blob> reader;
    std::uint64_t delivered = 0;
    std::uint64_t goal = 0;
  };

  /// Returns when all endpoints of all members have met.
  TopicCast(Member& me, std::unique_ptr<Fabric> fabric)
      : me_(me), fabric_(std::move(fabric)), group_(*fabric_), participant_(group_) {
    subscription_ = fabric_->subscribe([this](const Event& event) {
      if (event.kind == Event::Kind::peer_failed) me_.lost(event.peer, event.text);
    });
    constexpr std::array kNames{"unordered", "atomic", "volatile"};
    constexpr std::array kLevels{pubsub::Level::unordered, pubsub::Level::atomic,
                                 pubsub::Level::volatile_storage};
    for (std::size_t i = 0; i < topics_.size(); ++i) {
      OneTopic& one = topics_[i];
      one.topic =
          pubsub::Topic<Blob>(participant_, kNames[i],
                              {.level = kLevels[i], .max_samples = 64, .ring_bytes = kRingBytes});
      one.writer = pubsub::DataWriter<Blob>(pubsub::Publisher(participant_), one.topic);
      one.reader = pubsub::DataReader<Blob>(pubsub::Subscriber(participant_), one.topic);
      one.reader.on_sample([this, &one](const Blob& blob, const pubsub::SampleInfo& info) {
        if (info.valid() && me_.rank() != 0) look_at(std::as_bytes(std::span(blob.bytes)));
        one.delivered += info.valid() ? 1 : 0;
      });
    }
    for (Patience patience; !all_met();) patience.after(participant_.poll() > 0);
    me.meet([&] { participant_.poll(); });
  }
  [[nodiscard]] OneTopic& unordered() noexcept { return topics_[0]; }
  [[nodiscard]] OneTopic& atomic() noexcept { return topics_[1]; }
  [[nodiscard]] OneTopic& stored() noexcept { return topics_[2]; }

  /// Member 0 writes so many; it gets how many a second it delivers itself.
  std::optional<double> stream(OneTopic& one, std::uint64_t samples) {
    one.goal += samples;
    return take_turn(
        me_, [&] { participant_.poll(); },
        [&]() -> std::optional<double> {
          std::uint64_t left = me_.rank() == 0 ? samples : 0;
          const double start = now_ns();
          Patience patience;
          while (left > 0 || one.delivered < one.goal) {
            bool some = false;
            for (; left > 0 && one.writer.loan() != nullptr; --left) {
              one.writer.publish();
              some = true;
            }
            some |= participant_.poll() > 0;
            patience.after(some);
          }
          const double seconds = (now_ns() - start) / 1e9;
          if (me_.rank() != 0) return std::nullopt;
          return static_cast<double>(samples) / seconds;
        });
  }
  /// Members 0 and 1 answer each other's samples; member 0 gets half a round trip.
  std::optional<double> ping_pong(OneTopic& one, const Batches& plan) {
    std::uint64_t next = one.goal;
    one.goal += 2 * plan.total();
    return take_turn(
        me_, [&] { participant_.poll(); },
        [&]() -> std::optional<double> {
          Patience patience;
          const auto await = [&](std::uint64_t count) {
            while (one.delivered < count) patience.after(participant_.poll() > 0);
          };
          const auto write = [&] {
            while (one.writer.loan() == nullptr) patience.after(participant_.poll() > 0);
            one.writer.publish();
          };
          if (me_.rank() == 0)
            return batch_ns(plan,
                            [&] {
                              write();
                              await(next += 2);
                            }) /
                   2;
          for (std::uint64_t i = 0; i < plan.total(); ++i) {
            await(++next);
            if (me_.rank() == 1) write();
            ++next;
          }
          await(next);
          return std::nullopt;
        });
  }

 private:
  [[nodiscard]] bool all_met() const {
    for (const OneTopic& one : topics_)
      if (!one.reader->ready() || !one.writer->ready() ||
          one.writer->publication_matched_status().current_count < me_.size())
        return false;
    return true;
  }

  Member& me_;
  std::unique_ptr<Fabric> fabric_;
  Subscription subscription_;
  dunlin::Group group_;
  pubsub::DomainParticipant participant_;
  std::array<OneTopic, 3> topics_;
};

}  // namespace dunlin::bench
