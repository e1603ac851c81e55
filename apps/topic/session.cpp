#include "topic/session.hpp"

#include <dunlin/error.hpp>
#include <dunlin/run.hpp>

#include "standard_output.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint32_t kSliceMs = 20;  // then it looks at signals
constexpr std::uint32_t kLeaveMs = 5'000;

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

void Session::leave() {
  run_until(
      participant_, [this] { return !participant_.holds_topics(); }, kLeaveMs);
  group_.leave();
  run_until(
      participant_, [this] { return group_.ended(); }, kLeaveMs);
}

}  // namespace dunlin::app::topic
