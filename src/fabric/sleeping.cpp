#include "fabric/sleeping.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>

namespace dunlin {
namespace {

/// Arms the doorbells for as long as this object lives, because a poll may throw.
class Armed {
 public:
  explicit Armed(const std::function<Waits()>& collect) : collect_(collect), waits_(collect()) {
    for (Fabric* const fabric : waits_.fabrics) fabric->prepare_sleep();
  }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
  ~Armed() {
    if (!now_) now_ = collect_();
    for (Fabric* const fabric : now_->fabrics)
      if (std::ranges::find(waits_.fabrics, fabric) != waits_.fabrics.end()) fabric->cancel_sleep();
  }

  /// Whether the fabrics are still the same ones; only the poll changes that, so one check after it
  /// suffices.
  [[nodiscard]] bool unchanged() {
    now_ = collect_();
    return *now_ == waits_;
  }

  void sleep(std::uint64_t timeout_ns,
             const std::function<void(const std::function<void()>& wait)>& around) const {
    if (!around && waits_.pending_joins.empty() && waits_.descriptors.empty() &&
        waits_.fabrics.size() == 1)
      return waits_.fabrics.front()->sleep(timeout_ns);
    std::vector<pollfd> bells;
    bells.reserve(waits_.fabrics.size() + waits_.pending_joins.size() + waits_.descriptors.size());
    for (const Fabric* const fabric : waits_.fabrics)
      bells.push_back({fabric->wait_descriptor(), POLLIN, 0});
    for (const PendingJoin* const pending_join : waits_.pending_joins)
      bells.push_back({pending_join->wait_descriptor(), POLLIN, 0});
    for (const int descriptor : waits_.descriptors) bells.push_back({descriptor, POLLIN, 0});
    constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
    const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / kNsPerSecond),
                           .tv_nsec = static_cast<long>(timeout_ns % kNsPerSecond)};
    // If epoll was interrupted, or has no memory, the sleeper polls again.
    const auto wait = [&] {
      static_cast<void>(ppoll(bells.data(), bells.size(),
                              timeout_ns == UINT64_MAX ? nullptr : &timeout, nullptr));
    };
    if (around)
      around(wait);
    else
      wait();
  }

 private:
  const std::function<Waits()>& collect_;
  Waits waits_;
  std::optional<Waits> now_ = {};  // the fabrics after the poll
};

}  // namespace

bool sleep_unless(const std::function<bool()>& poll, const std::function<Waits()>& collect,
                  std::uint64_t timeout_ns,
                  const std::function<void(const std::function<void()>& wait)>& around) {
  Armed armed(collect);
  if (poll()) return true;
  if (armed.unchanged()) armed.sleep(timeout_ns, around);
  return false;
}

}  // namespace dunlin
