#include "routing/processes.hpp"

#include <chrono>
#include <climits>
#include <exception>

#include <fcntl.h>
#include <unistd.h>

#include "command.hpp"

namespace dunlin::routing {

namespace {

// Written at once, so that those of several children do not mix.
constexpr std::size_t kMostComplaintBytes = PIPE_BUF;
// The kind of a complaint, before its text; a zero ends it.
constexpr char kBadInput = 'i';
constexpr char kError = 'e';
// The others notice a death at once; how fast they are depends on the load of this host.
constexpr std::uint64_t kOthersExplainMs = 5'000;
constexpr std::chrono::milliseconds kLook{100};  // meanwhile

std::uint64_t now_ms() { return read_clock_ns(CLOCK_MONOTONIC) / 1'000'000; }

}  // namespace

Processes::Processes() : complaints_(process::make_pipe(O_NONBLOCK)) {}

void Processes::start(const std::function<void()>& work) {
  children_.start([this, &work] {
    process::leave_terminal_to_parent();
    const auto complain = [this](char kind, const char* what) {
      const std::string text = kind + std::string(what).substr(0, kMostComplaintBytes - 2) + '\0';
      return write(complaints_.in.get(), text.data(), text.size()) < 0 ? 2 : 1;
    };
    try {
      work();
    } catch (const app::BadInput& error) {
      return complain(kBadInput, error.what());
    } catch (const std::exception& error) {
      return complain(kError, error.what());
    }
    return 0;
  });
}

void Processes::complain() {
  std::string all(kMostComplaintBytes, '\0');
  const ssize_t bytes = read(complaints_.out.get(), all.data(), all.size());
  if (bytes <= 0) return;
  const std::string first = all.c_str() + 1;
  if (all.front() == kBadInput) throw app::BadInput(first);
  throw Error(first);
}

void Processes::demand_health() {
  reap();
  complain();
  const bool others_may = !all_ended() && now_ms() < fault_ms_ + kOthersExplainMs;
  if (!fault_.empty() && !others_may) throw Error(fault_);
}

void Processes::await_news(const std::vector<int>& others, int timeout_ms) {
  std::vector<int> watched(others);
  watched.push_back(complaints_.out.get());
  std::optional<std::chrono::milliseconds> timeout;
  if (timeout_ms >= 0) timeout = std::chrono::milliseconds(timeout_ms);
  children_.await(watched, fault_.empty() ? timeout : kLook);
}

void Processes::reap() {
  for (const auto& [index, status] : children_.ended()) {
    if (status.exit_code() >= 0 || !fault_.empty()) continue;
    fault_ = "a process of this host " + status.text();
    fault_ms_ = now_ms();
  }
}

void Processes::finish(std::uint32_t timeout_ms) {
  const std::uint64_t deadline = now_ms() + timeout_ms;
  for (reap(); !all_ended(); reap()) {
    const std::uint64_t now = now_ms();
    if (now >= deadline) return;
    children_.await({}, std::chrono::milliseconds(deadline - now));
  }
}

}  // namespace dunlin::routing
