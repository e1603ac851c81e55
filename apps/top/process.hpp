#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

/// Facts about a process that the kernel tells every process.
namespace dunlin::top {

struct ProcessSample {
  std::string command = {};
  char state = '?';              // R S D T t Z X, as in proc(5)
  std::uint64_t cpu_ticks = 0;   // user and system time, in 1 / sysconf(_SC_CLK_TCK) s
  std::uint64_t born_ticks = 0;  // since boot; tells a process from a later one with its number
};

/// Nothing if there is no such process.
[[nodiscard]] std::optional<ProcessSample> read_process(pid_t pid);
/// The content of /proc/PID/stat.
[[nodiscard]] std::optional<ProcessSample> parse_process(std::string_view stat);

/// "running", "asleep", "stopped", ...
[[nodiscard]] std::string_view describe_state(char state);

/// The name of a user, or "user 1000" if it has none.
[[nodiscard]] std::string user_name(uid_t user);

}  // namespace dunlin::top
