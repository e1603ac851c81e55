#include "topic/session.hpp"

#include <dunlin/run.hpp>

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
