#include "multicast/leave.hpp"

#include <cstdint>

#include <fmt/format.h>

#include <dunlin/run.hpp>

namespace dunlin::app::cast {
namespace {

constexpr std::uint32_t kLookAtSignalsMs = 10;
constexpr std::uint32_t kLetGoMs = 10'000;

}  // namespace

void leave(Group& group, const std::string& name, SignalGuard& signals) {
  const std::uint64_t deadline_ns =
      group.fabric().now_ns() + std::uint64_t{kLetGoMs} * 1'000'000;
  group.leave();
  while (!run_until(
      group, [&group] { return group.ended(); }, kLookAtSignalsMs)) {
    if (const char* const signal = signals.caught())
      throw Error(fmt::format("stopped by {} before the group had let {} go", signal, name));
    if (group.fabric().now_ns() >= deadline_ns)
      throw Error(
          fmt::format("the others did not let {} go within {} s; they will count it as failed",
                      name, kLetGoMs / 1'000));
  }
}

}  // namespace dunlin::app::cast
