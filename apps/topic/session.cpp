#include "topic/session.hpp"

#include <optional>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/run.hpp>

#include "standard_output.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint32_t kSliceMs = 20;  // then it looks at signals
constexpr std::uint32_t kLeaveMs = 5'000;
constexpr std::uint64_t kOrdersMs = 2'000;  // for the members to tell of their topics

}  // namespace

bool Session::until(const std::function<bool()>& condition, std::uint64_t limit_ms) {
  const std::uint64_t begin_ns = now_ns();
  while (signal() == nullptr) {
    if (run_until(participant_, condition, kSliceMs)) return true;
    if ((now_ns() - begin_ns) / 1'000'000 >= limit_ms) return false;
  }
  return false;
}

bool Session::joined(const pubsub::AnyTopic& topic) {
  std::string told;
  until([&] {
    const std::string why = topic.why_waiting();
    if (!why.empty() && why != told) say(why + "\n");
    told = why;
    return topic.joined() || !topic.why_refused().empty();
  });
  if (!topic.why_refused().empty()) throw Error(topic.why_refused());
  return topic.joined();
}

const pubsub::TopicInfo* Session::find(const std::string& name) {
  infos_ = participant_.topics();
  for (const pubsub::TopicInfo& one : infos_)
    if (one.name == name) return &one;
  return nullptr;
}

bool Session::join_orders(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::optional<pubsub::OrderInfo> found;
    until(
        [&] {
          for (pubsub::OrderInfo& one : participant_.orders())
            if (one.name == name) found = std::move(one);
          return found.has_value();
        },
        kOrdersMs);
    if (signal() != nullptr) return false;
    if (!found)
      throw Error("order '" + name +
                  "': no member of the group has a topic of it; `dunlin topic list` shows the "
                  "orders that there are");
    orders_.emplace_back(participant_, name, found->ring_bytes);
    until([&] { return orders_.back().joined() || !orders_.back().why_refused().empty(); });
    if (!orders_.back().why_refused().empty()) throw Error(orders_.back().why_refused());
  }
  return signal() == nullptr;
}

void Session::leave() {
  orders_.clear();
  run_until(
      participant_, [this] { return !participant_.holds_topics(); }, kLeaveMs);
  group_.leave();
  run_until(
      participant_, [this] { return group_.ended(); }, kLeaveMs);
}

}  // namespace dunlin::app::topic
