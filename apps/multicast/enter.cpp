#include "multicast/enter.hpp"

#include <array>
#include <chrono>

#include <fmt/format.h>
#include <poll.h>

#include <dunlin/fabric/pending_join.hpp>

#include "member_events.hpp"
#include "standard_output.hpp"

namespace dunlin::app::cast {
namespace {

constexpr std::chrono::milliseconds kNewsInterval{1'000};
constexpr int kJoinLookMs = 2;  // a joiner tries again by itself, and rings no descriptor for that

/// A waiting member: what it prints, and the signal that ends its waiting.
class Waiting {
 public:
  Waiting(std::string name, SignalGuard& signals) : name_(std::move(name)), signals_(signals) {}

  /// Waits for the descriptor (-1: none), for a signal, or so long at most. Returns false if a
  /// signal has come.
  bool wait(int descriptor, int timeout_ms, const std::string& awaited) {
    if (const char* const signal = signals_.caught()) {
      print(
          fmt::format("ends because of {}, and was in no view; it waited for {}", signal, awaited));
      return false;
    }
    const auto now = Clock::now();
    if (now >= next_news_) {
      next_news_ = now + kNewsInterval;
      if (awaited != printed_) print("waits for " + awaited);
      printed_ = awaited;
    }
    std::array<pollfd, 2> awaited_descriptors{
        pollfd{.fd = descriptor, .events = POLLIN, .revents = 0},
        pollfd{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
    poll(awaited_descriptors.data(), awaited_descriptors.size(), timeout_ms);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  void print(const std::string& text) const { say(fmt::format("{}: {}\n", name_, text)); }

  std::string name_;
  SignalGuard& signals_;
  std::string printed_;
  Clock::time_point next_news_ = Clock::now() + kNewsInterval;
};

std::unique_ptr<Fabric> wait_for_founders(const Place& place, SignalGuard& signals) {
  const std::unique_ptr<PendingJoin> pending_join = place.begin_founding();
  Waiting waiting(place.name(), signals);
  constexpr int kNewsMs = static_cast<int>(kNewsInterval.count());
  for (;;) {
    if (std::unique_ptr<Fabric> fabric = pending_join->poll()) return fabric;
    std::string missing = pending_join->missing();
    if (missing.empty()) missing = place.other_founders();
    if (!waiting.wait(pending_join->wait_descriptor(), kNewsMs, missing)) return nullptr;
  }
}

std::unique_ptr<Group> wait_to_be_let_in(const Place& place, GroupOptions options,
                                         SignalGuard& signals) {
  GroupEntry entry(place.name(), std::move(options), place.timeout_ms());
  Waiting waiting(place.name(), signals);
  const std::string awaited = fmt::format("a member of group {} that lets it in", place.group());
  for (;;) {
    if (std::unique_ptr<Group> group = entry.poll()) return group;
    if (!waiting.wait(-1, kJoinLookMs, awaited)) return nullptr;
  }
}

}  // namespace

Entered enter(const Place& place, GroupOptions options, SignalGuard& signals) {
  Entered entered;
  if (place.joins())
    entered.group = wait_to_be_let_in(place, std::move(options), signals);
  else if ((entered.fabric = wait_for_founders(place, signals)))
    entered.group = std::make_unique<Group>(*entered.fabric, std::move(options));
  if (entered.group) print_member_events(*entered.group, place.name());
  return entered;
}

}  // namespace dunlin::app::cast
