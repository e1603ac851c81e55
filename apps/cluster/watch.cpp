#include "cluster/watch.hpp"

#include <array>
#include <exception>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

#include "command.hpp"
#include "text_cells.hpp"

namespace dunlin::app {
namespace {

constexpr std::uint32_t kJoinTimeoutMs = 30'000;
constexpr std::uint32_t kSilenceTimeoutMs = 10'000;  // it may wait for a core when it wakes up
constexpr std::uint32_t kLookMs = 50;                // how often it asks what its parent wants
constexpr std::uint32_t kLastWordsMs = 2'000;
/// What the processes that work together say of a failure is more to the point than ours.
constexpr std::uint64_t kOthersExplainNs = 1'000'000'000;
constexpr std::size_t kMostBytes = 1'024;

// Between it and its parent: a letter, and a text.
constexpr char kAllHere = 'h';
constexpr char kBadInput = 'i';
constexpr char kError = 'e';
constexpr char kLeave = 'l';
constexpr char kGiveUp = 'g';

void say(const Descriptor& line, char what, const std::string& text) noexcept {
  std::array<char, kMostBytes> message{what};
  const std::size_t bytes = 1 + text.copy(message.data() + 1, message.size() - 1);
  static_cast<void>(send(line.get(), message.data(), bytes, MSG_NOSIGNAL));
}

/// Nothing if there is nothing to hear; a zero if there never will be.
std::string heard(const Descriptor& line) {
  std::array<char, kMostBytes> message{};
  const ssize_t bytes = recv(line.get(), message.data(), message.size(), MSG_DONTWAIT);
  if (bytes < 0) return {};
  return bytes == 0 ? std::string(1, '\0')
                    : std::string(message.data(), static_cast<std::size_t>(bytes));
}

struct HostRow {
  Text<10> why;
  Cell<std::uint32_t> ended;  // or kLeave or kGiveUp
};

/// The process that watches.
class Watcher {
 public:
  Watcher(std::unique_ptr<Fabric> fabric, const Descriptor& line)
      : fabric_(std::move(fabric)), line_(line), table_(*fabric_, {.name = "hosts"}) {
    table_.on_failure([this](const auto& t, std::size_t host, std::string_view why) {
      if (t[host].ended == 0) lost(fmt::format("host {} is lost: {}", host, why));
    });
    table_.when(any(&HostRow::ended) == std::uint32_t{kGiveUp}, "a host gave up")
        .once([this](const auto& t) {
          for (std::size_t host = 0; host < t.size(); ++host) {
            if (t[host].ended != std::uint32_t{kGiveUp} || host == t.my_row()) continue;
            lost(fmt::format("host {} gave up: {}", host, load_text(t[host].why)));
          }
        });
  }

  void run() {
    say(line_, kAllHere, {});
    std::string order;
    while (order.empty()) {
      static_cast<void>(run_until(
          table_, [&] { return !(order = heard(line_)).empty(); }, kLookMs));
      if (loss_.empty() || fabric_->now_ns() < lost_ns_ + kOthersExplainNs) continue;
      if (!told_) say(line_, kError, loss_);
      told_ = true;
    }
    store_text(table_.mine().why, order.substr(1));
    table_.mine().ended = static_cast<unsigned char>(order.front());
    table_.push(&HostRow::why, &HostRow::ended);
    static_cast<void>(run_until(
        table_, [&] { return table_.settled(); }, kLastWordsMs));
  }

 private:
  void lost(std::string text) {
    if (!loss_.empty()) return;
    loss_ = std::move(text);
    lost_ns_ = fabric_->now_ns();
  }

  std::unique_ptr<Fabric> fabric_;
  const Descriptor& line_;
  Table<HostRow> table_;
  std::string loss_;  // of the first host that was lost
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

/// While it is still joining, it hears nothing, and the others learn of its end.
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
