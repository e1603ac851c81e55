#include <algorithm>
#include <optional>
#include <utility>

#include <poll.h>

#include <dunlin/daemon.hpp>

#include "daemon/attached_space.hpp"

namespace dunlin {
namespace {

/// How often attach() looks for a daemon that does not exist yet.
constexpr int kLookMs = 10;

}  // namespace

std::unique_ptr<SegmentSpace> attach(const AttachOptions& options) {
  const attached::DaemonAddress daemon{options.group, options.socket, options.access_group};
  attached::check(daemon);
  const auto now_ms = [] { return read_clock_ns(CLOCK_MONOTONIC) / 1'000'000; };
  const std::uint64_t end_ms = now_ms() + options.timeout_ms;
  std::optional<Descriptor> socket;
  for (;;) {
    if (!socket) socket = attached::connect_to(daemon);
    if (socket) {
      std::optional<attached::Welcome> welcome = attached::receive(*socket, daemon);
      if (welcome && welcome->hung_up) {
        socket.reset();
      } else if (welcome) {
        return SegmentPort::space_over(
            std::make_unique<attached::AttachedSpace>(std::move(*socket), *welcome, daemon));
      }
    }
    const std::uint64_t now = now_ms();
    if (now >= end_ms)
      throw Error(describe(daemon) + " did not " + (socket ? "answer" : "come") + " within " +
                  std::to_string(options.timeout_ms) +
                  " ms; is `dunlin daemon` running on this host?");
    pollfd waiting{.fd = socket ? socket->get() : -1, .events = POLLIN, .revents = 0};
    const std::uint64_t left_ms = end_ms - now;
    const auto longest = socket ? left_ms : std::min<std::uint64_t>(left_ms, kLookMs);
    static_cast<void>(
        ::poll(&waiting, 1, static_cast<int>(std::min<std::uint64_t>(longest, 60'000))));
  }
}

}  // namespace dunlin
