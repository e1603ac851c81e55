#include "relay/kept_logs.hpp"

#include <dunlin/error.hpp>

namespace dunlin::app {
namespace {

constexpr std::uint64_t kAgainNs = 1'000'000'000;

}  // namespace

void KeptLogs::look() {
  for (const pubsub::TopicInfo& info : participant_.topics())
    if (info.qos.level == pubsub::Level::logged) look_at(kept_[info.name], info);
}

void KeptLogs::look_at(Kept& kept, const pubsub::TopicInfo& info) {
  if (kept.topic && kept.topic.why_refused().empty()) {
    const std::string why = kept.topic.why_waiting();
    if (!why.empty()) tell(kept, why + "\n");
    if (kept.topic.joined()) kept.told.clear();
    return;
  }
  const std::uint64_t now_ns = participant_.fabric().now_ns();
  if (kept.topic) {
    tell(kept, kept.topic.why_refused() + "\n");
    kept = {.told = kept.told, .again_at_ns = now_ns + kAgainNs};
  }
  if (now_ns < kept.again_at_ns) return participant_.fabric().wake_at(kept.again_at_ns);
  try {
    kept.topic = pubsub::AnyTopic(participant_, info.name,
                                  pubsub::raw_type_support({}, info.type_name), info.qos);
  } catch (const Error& error) {
    tell(kept, std::string(error.what()) + "\n");
    kept.again_at_ns = now_ns + kAgainNs;
    participant_.fabric().wake_at(kept.again_at_ns);
  }
}

void KeptLogs::tell(Kept& kept, const std::string& what) {
  if (what != kept.told) tell_(what);
  kept.told = what;
}

}  // namespace dunlin::app
