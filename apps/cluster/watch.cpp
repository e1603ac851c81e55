#include "cluster/watch.hpp"

#include <array>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/run.hpp>

#include "command.hpp"

namespace dunlin::app {
namespace {

constexpr std::uint32_t kJoinTimeoutMs = 30'000;
constexpr std::uint32_t kSilenceTimeoutMs = 10'000;  // it may wait for a core when it wakes up
constexpr std::uint32_t kLookMs = 50;                // how often it asks what its parent wants
constexpr std::uint32_t kLastWordsMs = 2'000;
/// The processes that work together explain a failure better than the watch does, so it waits for
/// their explanation.
constexpr std::uint64_t kOthersExplainNs = 1'000'000'000;
constexpr std::size_t kMostBytes = 1'024;

// Between it and its parent: a character, and a text.
constexpr char kAllHere = 'h';
constexpr char kBadInput = 'i';
constexpr char kError = 'e';
constexpr char kLeave = 'l';
constexpr char kGiveUp = 'g';
constexpr char kParentIsGone = '\0';

void say(const Descriptor& line, char what, const std::string& text) noexcept {
  std::array<char, kMostBytes> message{what};
  const std::size_t bytes = 1 + text.copy(message.data() + 1, message.size() - 1);
  static_cast<void>(send(line.get(), message.data(), bytes, MSG_NOSIGNAL));
}

/// Empty if there is nothing to hear.
std::string heard(const Descriptor& line) {
  std::array<char, kMostBytes> message{};
  const ssize_t bytes = recv(line.get(), message.data(), message.size(), MSG_DONTWAIT);
  if (bytes < 0) return {};
  return bytes == 0 ? std::string(1, kParentIsGone)
                    : std::string(message.data(), static_cast<std::size_t>(bytes));
}

/// A Loop polls this: the group, also when that has ended here, which its check() would throw.
struct Views {
  Group& group;
  std::size_t poll() { return group.poll(); }
  [[nodiscard]] Waits waits() const { return group.waits(); }
};

/// The process that watches: this host's member of a group in which each host is a member. A host
/// that drops out of the view without a farewell is lost.
class Watcher {
 public:
  Watcher(std::unique_ptr<Fabric> fabric, const Descriptor& line)
      : fabric_(std::move(fabric)),
        line_(line),
        group_(*fabric_, {.subgroups = {{.name = kFarewells}}}),
        farewells_(group_, kFarewells, {.ring_bytes = kRingBytes}),
        ended_(fabric_->size()) {
    farewells_.on_delivery([this](std::span<const multicast::Delivery> batch) {
      for (const multicast::Delivery& farewell : batch) take(farewell);
    });
    group_.on_view([this](const View& view) {
      for (const std::string& host : view.departed) miss(static_cast<Rank>(std::stoul(host)));
    });
  }

  void run() {
    say(line_, kAllHere, {});
    std::string order;
    while (order.empty()) {
      poll_until([&] { return !(order = heard(line_)).empty(); }, kLookMs);
      if (group_.ended()) miss_others();
      if (loss_.empty() || fabric_->now_ns() < lost_ns_ + kOthersExplainNs) continue;
      if (!told_) say(line_, kError, loss_);
      told_ = true;
    }
    if (order.front() != kParentIsGone) leave(order);
  }

 private:
  static constexpr const char* kFarewells = "farewells";
  static constexpr std::size_t kRingBytes = 16 * kMostBytes;  // a message fills a quarter at most

  void poll_until(const std::function<bool()>& condition, std::uint32_t timeout_ms) {
    Views views{group_};
    Loop(*fabric_).add(views).run_until(condition, timeout_ms);
  }

  void take(const multicast::Delivery& farewell) {
    const Rank host = farewells_.subgroup().members[farewell.sender];
    ended_[host] = true;
    if (host == fabric_->rank()) return;
    const std::string text(reinterpret_cast<const char*>(farewell.message.data()),
                           farewell.message.size());
    if (text.front() == kGiveUp) lose(fmt::format("host {} gave up: {}", host, text.substr(1)));
  }
  void miss(Rank host) {
    if (ended_[host]) return;
    const std::string& failure = fabric_->failure_text(host);
    lose(fmt::format("host {} is lost: {}", host,
                     failure.empty() ? "the others cannot reach it" : failure));
  }
  /// Too few are left for a further view, or the others went on without us.
  void miss_others() {
    for (Rank host = 0; host < fabric_->size(); ++host) {
      if (fabric_->failed(host)) miss(host);
    }
    lose(group_.why_ended());
  }
  /// The first loss counts.
  void lose(std::string text) {
    if (!loss_.empty()) return;
    loss_ = std::move(text);
    lost_ns_ = fabric_->now_ns();
  }
  /// Leaves when the parent says so: the others know why when the group lets us go.
  void leave(const std::string& order) {
    bool sent = false;
    const auto all_know = [&] {
      const auto words = std::as_bytes(std::span(order));
      sent = sent || farewells_.send(words) == multicast::SendResult::sent;
      return ended_[fabric_->rank()] || group_.ended();
    };
    poll_until(all_know, kLastWordsMs);
    group_.leave();
    poll_until([this] { return group_.ended(); }, kLastWordsMs);
  }

  std::unique_ptr<Fabric> fabric_;
  const Descriptor& line_;
  Group group_;
  Multicast farewells_;
  std::vector<bool> ended_;  // by host: has said farewell
  std::string loss_;
  std::uint64_t lost_ns_ = 0;
  bool told_ = false;
};

int become_watcher(const Cluster& cluster, const Intent& intent, std::uint32_t timeout_ms,
                   const Descriptor& line) {
  process::leave_terminal_to_parent();
  try {
    cluster.agree(intent, timeout_ms);
    Watcher(cluster.join({.group = intent.what + "-hosts",
                          .members = cluster.hosts(),
                          .rank = cluster.host(),
                          .timeout_ms = kJoinTimeoutMs,
                          .silence_timeout_ms = kSilenceTimeoutMs}),
            line)
        .run();
  } catch (const BadInput& error) {
    say(line, kBadInput, error.what());
  } catch (const std::exception& error) {
    say(line, kError, error.what());
  }
  return 0;
}

}  // namespace

Watch::Watch(const Cluster& cluster, const Intent& intent, std::uint32_t timeout_ms)
    : all_here_(cluster.hosts() == 1) {
  if (all_here_) return;
  std::array<int, 2> ends{};
  checked(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  line_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  watcher_ = process::Child([&] {
    line_.close();
    return become_watcher(cluster, intent, timeout_ms, theirs);
  });
}

Watch::~Watch() { give_up("it has ended"); }

std::string Watch::hear() {
  std::string message = heard(line_);
  if (!message.empty() && message.front() == kAllHere) {
    all_here_ = true;
    message = heard(line_);
  }
  return message;
}

void Watch::demand_others() {
  if (!watcher_.running()) return;
  const std::string message = hear();
  if (message.empty()) return;
  if (message.front() == kBadInput) throw BadInput(message.substr(1));
  if (message.front() == kError) throw Error(message.substr(1));
  throw Error("the process of this host that watches the others has ended");
}

void Watch::await_others() {
  while (true) {
    demand_others();
    if (all_here_) return;
    pollfd news{line_.get(), POLLIN, 0};
    static_cast<void>(poll(&news, 1, -1));
  }
}

void Watch::guard(const std::function<void()>& part) {
  try {
    part();
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
  end(kLeave, {});
}

void Watch::give_up(const std::string& why) noexcept { end(kGiveUp, why); }

/// A watcher that is still joining hears nothing, and the others learn of its end.
void Watch::end(char how, const std::string& text) noexcept {
  if (!watcher_.running()) return;
  if (all_here_) {
    say(line_, how, text);
    watcher_.wait();
  } else {
    watcher_.kill();
  }
  line_.close();
}

}  // namespace dunlin::app
