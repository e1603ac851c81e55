#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/core.hpp>
#include <dunlin/pubsub/entities.hpp>

namespace dunlin::pubsub {

/// Takes the samples of several readers in the one order of their topics (TopicQos::order). DDS
/// calls this ordered access; here it covers the samples of all writers. One thread uses it, that
/// of the participant.
///
///     OrderedAccess flight;
///     flight.add<Shape>(shapes, [&](const Sample<Shape>& shape) { ... });
///     flight.add<Alarm>(alarms, [&](const Sample<Alarm>& alarm) { ... });
///     while (...) {
///       participant.poll();
///       flight.take();
///     }
///
/// PUB-O4  It hands out all samples of the readers that were added before the first take(), by
///         SampleInfo::order_position, which never descends, and skips none that a reader had or
///         could still get. So members that take the same topics from the same position on, with
///         readers that keep all samples, take the same sequence.
class OrderedAccess {
 public:
  /// Adds a reader. Throws Error if its topic has no order, or another order than the readers
  /// before.
  template <class T>
  void add(const DataReader<T>& reader, std::function<void(const Sample<T>&)> handler) {
    add(*reader.operator->(),
        [handler = std::move(handler)](const void* data, const SampleInfo& info) {
          handler({static_cast<const T*>(data), &info});
        });
  }
  void add(const AnyReader& reader, AnyReader::SampleHandler handler) {
    const OrderName& order = reader.topic_qos().order;
    if (order.empty())
      throw Error(
          "ordered access: the reader's topic has an order of its own; name one "
          "(TopicQos::order)");
    if (!parts_.empty() && order != parts_.front().reader.topic_qos().order)
      throw Error("ordered access: the reader's topic has the order '" + std::string(order.view()) +
                  "', and the readers before have '" +
                  std::string(parts_.front().reader.topic_qos().order.view()) +
                  "'; only topics of one order have their samples in one order");
    parts_.push_back({.reader = reader, .handler = std::move(handler)});
  }

  /// Gives at most so many of the available samples to the handlers; returns how many. A reader
  /// that requests stored samples holds later samples of the other readers back until it has come
  /// to its place in the order; until it is ready, their caches take more than their limits. A
  /// handler may write and add readers, and must not poll or take(). If it throws, its sample
  /// counts as taken, and the next take() goes on behind it. Also throws Error for a reader that is
  /// refused, once its samples are taken.
  std::size_t take(std::size_t most = std::numeric_limits<std::size_t>::max()) {
    std::size_t taken = 0;
    for (; taken < most; ++taken) {
      Part* const next = first();
      if (next == nullptr) break;
      const AnyReader::Loan loan = next->reader.take({.max_samples = 1});
      if (loan.size() > 0) next->handler(loan.data(0), loan.info(0));
    }
    return taken;
  }

 private:
  struct Part {
    AnyReader reader;
    AnyReader::SampleHandler handler;
  };
  /// The part whose next sample comes first in the order; null: there is none, or it is not known
  /// yet.
  [[nodiscard]] Part* first() {
    Part* earliest = nullptr;
    std::pair<std::uint64_t, bool> place;
    for (Part& part : parts_) {
      const AnyReader::NextInOrder next = part.reader.next_in_order();
      if (!next.has_sample)
        if (const std::string why = part.reader.why_refused(); !why.empty())
          throw Error("ordered access: " + why);
      if (next.waits) {
        // The reader's announcement lies behind the samples that fill the others' caches, in the
        // same order.
        if (next.is_coming)
          for (Part& other : parts_) other.reader.make_room();
        return nullptr;
      }
      const std::pair its_place(next.position, next.is_behind);
      if (!next.has_sample || (earliest != nullptr && its_place >= place)) continue;
      earliest = &part;
      place = its_place;
    }
    return earliest;
  }

  std::deque<Part> parts_;  // a deque: parts stay where they are while a handler adds one
};

}  // namespace dunlin::pubsub
