#include "multicast/member.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <dunlin/run.hpp>

#include "multicast/leave.hpp"
#include "standard_output.hpp"
#include "text.hpp"

namespace dunlin::app::cast {
namespace {

constexpr std::uint32_t kLookMs = 10;         // at standard input and at signals
constexpr std::uint32_t kLookIdleMs = 100;    // at signals, where there is nothing else to do
constexpr std::uint32_t kLookAtRateMs = 1;    // at what is due
constexpr std::uint32_t kDeliverMs = 5'000;   // for what is under way
constexpr std::size_t kMostSamples = 10'000;  // latencies for one report
constexpr std::size_t kMostAtOnce = 1'000;    // messages, then it is others' turn
constexpr std::size_t kShownColumns = 1'000;  // of a printed line

MulticastOptions options_of(const Course& course) {
  MulticastOptions options{.ring_bytes = course.ring_bytes};
  if (course.log.empty()) return options;
  options.mode = multicast::Mode::durable;
  options.log_directory = course.log;
  options.log_given_up = course.log_given_up;
  options.log_trim.every_bytes = course.log_trim_bytes;
  options.log_quorum = course.log_quorum;
  return options;
}

}  // namespace

Member::Member(Group& group, const std::string& name, const Course& course)
    : group_(group),
      name_(name),
      course_(course),
      multicast_(group, kSubgroup, options_of(course)),
      message_(course.bytes, std::byte{'.'}) {
  latencies_ns_.reserve(kMostSamples);
  group_.on_view([this](const View& view) {
    std::ostringstream text;
    text << view;
    print(text.str());
    if (course_.tells_ways) print_ways();
    if (start_ns_ == 0) start_ns_ = reported_ns_ = group_.fabric().now_ns();
  });
  multicast_.on_delivery([this](std::span<const multicast::Delivery> batch) { take(batch); });
  multicast_.on_state([this] { return save(); },
                      [this](std::span<const std::byte> state) { load(state); });
  multicast_.on_replay([this](const multicast::Logged& logged) { replay(logged); });
  for (const std::string& notice : multicast_.log_notices()) print(notice);
}

void Member::print(const std::string& text) const { say(fmt::format("{}: {}\n", name_, text)); }

void Member::print_ways() {
  const std::string& ways = group_.fabric().description();
  if (ways != told_ways_) print("network: " + ways);
  told_ways_ = ways;
}

std::string Member::digest() const { return fmt::format("{:016x}", so_far_.digest); }

double Member::seconds_since_start(std::uint64_t now_ns) const noexcept {
  return static_cast<double>(now_ns - start_ns_) / 1e9;
}

// --- delivering ----------------------------------------------------------------------------------

/// The messages of earlier runs come first in the order.
void Member::replay(const multicast::Logged& logged) {
  so_far_.add(std::string(logged.sender), logged.message);
  ++replayed_;
  reported_messages_ = so_far_.messages;
}

/// Called once no more follow: the log was replayed before anything is delivered or sent.
void Member::print_replayed() {
  if (replayed_ == 0) return;
  print(fmt::format("has {} messages from the logs, digest {}", std::exchange(replayed_, 0),
                    digest()));
}

void Member::take(std::span<const multicast::Delivery> batch) {
  print_replayed();
  const View& view = group_.view();
  const std::uint64_t now_ns = group_.fabric().now_ns();
  for (const multicast::Delivery& delivery : batch) {
    const std::string& sender = view.members[delivery.sender];
    so_far_.add(sender, delivery.message);
    if (delivery.sender == view.me) {
      --under_way_;
      std::uint64_t sent_ns = 0;
      if (!course_.lines && delivery.message.size() >= sizeof sent_ns &&
          latencies_ns_.size() < kMostSamples) {
        std::memcpy(&sent_ns, delivery.message.data(), sizeof sent_ns);
        latencies_ns_.push_back(now_ns - sent_ns);
      }
    }
    if (course_.lines)
      print(fmt::format("{} says {}", sender,
                        printable({reinterpret_cast<const char*>(delivery.message.data()),
                                   delivery.message.size()},
                                  kShownColumns)));
    if (so_far_.messages % course_.digest_every == 0)
      print(fmt::format("digest {} {}", so_far_.messages, digest()));
  }
}

std::vector<std::byte> Member::save() const {
  const std::array<std::uint64_t, 2> words{so_far_.messages, so_far_.digest};
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

void Member::load(std::span<const std::byte> state) {
  std::array<std::uint64_t, 2> words{};
  if (state.size() != sizeof words)
    throw Error(
        fmt::format("a member gave a state of {} bytes, not {}: do all run the same release?",
                    state.size(), sizeof words));
  std::memcpy(words.data(), state.data(), sizeof words);
  so_far_.messages = words[0];
  so_far_.digest = words[1];
  reported_messages_ = so_far_.messages;
  print(fmt::format("comes in behind {} messages, digest {}", so_far_.messages, digest()));
}

// --- sending -------------------------------------------------------------------------------------

bool Member::send_one(std::uint64_t now_ns) {
  if (message_.size() >= sizeof now_ns) std::memcpy(message_.data(), &now_ns, sizeof now_ns);
  return multicast_.send(message_) == multicast::SendResult::sent;
}

bool Member::send_line() {
  const std::string* const line = input_.front();
  if (line == nullptr) return false;
  if (multicast_.send(std::as_bytes(std::span(*line))) != multicast::SendResult::sent) return false;
  input_.pop();
  return true;
}

/// Returns whether there is nothing left to send, and never will be.
bool Member::send_some(std::uint64_t now_ns) {
  std::uint64_t due = course_.count.value_or(UINT64_MAX);
  if (!course_.lines && course_.rate > 0)
    due = std::min(due, static_cast<std::uint64_t>(seconds_since_start(now_ns) * course_.rate));
  for (std::size_t left = kMostAtOnce; sent_ < due && left > 0; --left) {
    if (!(course_.lines ? send_line() : send_one(now_ns))) break;
    ++sent_;
    ++under_way_;
  }
  return course_.lines && input_.over();
}

/// Whether its course is at its end. Called between polls.
bool Member::work() {
  if (start_ns_ == 0) return false;
  if (!multicast_.why_left().empty()) return true;
  const std::uint64_t now_ns = group_.fabric().now_ns();
  const bool all_sent = send_some(now_ns);
  if (course_.interval_s > 0 &&
      static_cast<double>(now_ns - reported_ns_) >= course_.interval_s * 1e9)
    report(now_ns);
  return all_sent || so_far_.messages >= course_.until.value_or(UINT64_MAX) ||
         (course_.seconds && seconds_since_start(now_ns) >= *course_.seconds);
}

// --- the course ----------------------------------------------------------------------------------

void Member::run(SignalGuard& signals) {
  while (!run_until(
             group_, [this] { return work(); }, look_in_ms()) &&
         signals.caught() == nullptr) {
  }
  leave(signals);
}

/// How long it may sleep although nothing comes: a member of many that is idle costs its host
/// little.
std::uint32_t Member::look_in_ms() const noexcept {
  if (course_.lines) return kLookMs;
  if (sent_ >= course_.count.value_or(UINT64_MAX)) return kLookIdleMs;
  if (course_.rate <= 0) return kLookMs;
  return static_cast<std::uint32_t>(
      std::clamp(1e3 / course_.rate, double{kLookAtRateMs}, double{kLookMs}));
}

/// False: not in time. A signal that comes meanwhile ends it.
template <class Condition>
bool Member::await(SignalGuard& signals, std::uint32_t timeout_ms, Condition condition) {
  const std::uint64_t deadline_ns =
      group_.fabric().now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  while (!run_until(group_, condition, kLookMs)) {
    if (const char* signal = signals.caught())
      throw Error(fmt::format("stopped by {} before the group had let us go", signal));
    if (group_.fabric().now_ns() >= deadline_ns) return false;
  }
  return true;
}

void Member::leave(SignalGuard& signals) {
  const auto is_last = [this] { return !multicast_.why_left().empty(); };
  const bool all = await(signals, kDeliverMs, [&] { return under_way_ == 0 || is_last(); });
  cast::leave(group_, name_, signals);
  print_replayed();
  if (is_last()) print(multicast_.why_left());
  if (is_last() && under_way_ > 0)
    print(
        fmt::format("{} messages of {} were under way; it delivers those that are in the log when "
                    "the group begins again",
                    under_way_, name_));
  print(fmt::format("leaves behind {} messages, digest {}", so_far_.messages, digest()));
  if (!all)
    throw Error(fmt::format("{} of the messages of {} were still under way after {} s", under_way_,
                            name_, kDeliverMs / 1'000));
}

void Member::report(std::uint64_t now_ns) {
  const double seconds = static_cast<double>(now_ns - reported_ns_) / 1e9;
  const std::uint64_t no_room = multicast_.counters().no_room;
  std::string text = fmt::format(
      "{:.1f} s, {} messages, digest {}, {:.0f}/s", seconds_since_start(now_ns), so_far_.messages,
      digest(), static_cast<double>(so_far_.messages - reported_messages_) / seconds);
  if (!latencies_ns_.empty()) {
    std::ranges::sort(latencies_ns_);
    const auto at = [&](std::size_t percent) {
      return static_cast<double>(latencies_ns_[(latencies_ns_.size() - 1) * percent / 100]) / 1e3;
    };
    text += fmt::format(", own after {:.1f} us (99 %: {:.1f} us)", at(50), at(99));
  }
  if (no_room > reported_no_room_)
    text += fmt::format(", no room {} times", no_room - reported_no_room_);
  print(text);
  if (const std::string why = group_.why_closed(); !why.empty())
    print("nobody can come in: " + why);
  reported_ns_ = now_ns;
  reported_messages_ = so_far_.messages;
  reported_no_room_ = no_room;
  latencies_ns_.clear();
}

}  // namespace dunlin::app::cast
