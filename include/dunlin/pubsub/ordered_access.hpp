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

/// Takes the samples of several readers in the one order of their topics (TopicQos::order): what
/// DDS calls ordered access, of the samples of all writers here. One thread, that of the
/// participant.
///
///     OrderedAccess flight;
///     flight.add<Shape>(shapes, [&](const Sample<Shape>& shape) { ... });
///     flight.add<Alarm>(alarms, [&](const Sample<Alarm>& alarm) { ... });
///     while (...) {
///       participant.poll();
///       flight.take();
///     }
///
/// PUB-O4  Of the readers that were added before the first take(), it hands out all samples by
///         SampleInfo::order_position, which never descends, and none that a reader had or could
///         still get is passed over: so members that take the same topics from the same place on,
///         with readers that keep all, take the same sequence.
class OrderedAccess {
 public:
  /// Throws Error, if the reader's topic has no order, or another one than those before.
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

  /// Gives the samples that there are to the handlers, at most so many; returns how many. A reader
  /// that requests stored samples holds later ones of the others back until it has come to its
  /// place; until it is ready, their caches take more than their limits. A handler may write and
  /// add readers, and must not poll or take(). If it throws, its sample counts as taken, and the
  /// next take() goes on behind it. Throws Error, too, for a reader that is refused, once its
  /// samples are taken.
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
  /// The part whose next sample comes first in the order; null: there is none, or it is not known.
  [[nodiscard]] Part* first() {
    Part* earliest = nullptr;
    std::pair<std::uint64_t, bool> place;
    for (Part& part : parts_) {
      const AnyReader::NextInOrder next = part.reader.next_in_order();
      if (!next.has_sample)
        if (const std::string why = part.reader.why_refused(); !why.empty())
          throw Error("ordered access: " + why);
      if (next.waits) {
        // Its announcement lies behind what fills the others, in the same order.
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

  std::deque<Part> parts_;  // which stay where they are while a handler adds one
};

}  // namespace dunlin::pubsub
