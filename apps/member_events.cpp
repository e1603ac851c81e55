#include "member_events.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace dunlin::app {
namespace {

using Kind = MemberEvent::Kind;

/// The time in UTC, as the hosts of a group may be in several time zones.
std::string time_now() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto ms = now.time_since_epoch().count() % 1'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
}

std::string describe(const MemberEvent& event) {
  const double after_s = static_cast<double>(event.after_ns) / 1e9;
  switch (event.kind) {
    case Kind::suspected:
      return fmt::format("suspects {}: {}{}", event.member, event.why,
                         event.after_ns == 0 ? "" : " (--silence-timeout says after how long)");
    case Kind::removed:
      return fmt::format(
          "view {} begins without {}{}: {}", event.view, event.member,
          event.after_ns == 0 ? "" : fmt::format(", {:.3f} s after it was suspected", after_s),
          event.why);
    case Kind::killed:
      return fmt::format("has killed {}, {:.3f} s after parting from it: {}", event.member, after_s,
                         event.why);
    case Kind::joined:
      return fmt::format("view {} begins with {}, which has joined", event.view, event.member);
    case Kind::left:
      return fmt::format("view {} begins without {}, which has left", event.view, event.member);
    case Kind::ended:
      return fmt::format("ends in view {}: {}", event.view, event.why);
  }
  return {};
}

}  // namespace

void print_member_events(Group& group, const std::string& name) {
  group.on_member([name](const MemberEvent& event) {
    // Where nobody reads standard error, the member works on.
    static_cast<void>(
        std::fputs(fmt::format("{} {}: {}\n", time_now(), name, describe(event)).c_str(), stderr));
  });
}

}  // namespace dunlin::app
