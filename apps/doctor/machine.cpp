#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include <dunlin/limits.hpp>

#include "doctor/examine.hpp"

/// Processors, limits, clock, memory.
namespace dunlin::doctor {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kUnlimited = UINT64_MAX;
constexpr std::uint64_t kEnoughLocked = 64 * kMiB;
constexpr std::uint64_t kLittleShm = 128 * kMiB;
constexpr std::uint64_t kNoShm = 4 * kMiB;
/// Besides one a member: src/fabric/rendezvous needs some for strangers, a program has its own.
constexpr std::uint64_t kOtherFiles = 256;
constexpr int kCapabilityIpcLock = 14;

std::optional<std::uint64_t> number(const std::string& text, int base = 10) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value, base);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

/// Counts the numbers in a list: 5 for "0-3,8".
std::optional<std::uint64_t> count_in_list(const std::optional<std::string>& list) {
  if (!list) return std::nullopt;
  std::uint64_t count = 0;
  std::istringstream parts(*list);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const auto low = number(part.substr(0, dash));
    const auto high = dash == std::string::npos ? low : number(part.substr(dash + 1));
    if (!low || !high || *high < *low) return std::nullopt;
    count += *high - *low + 1;
  }
  return count;
}

nlohmann::json or_null(const std::optional<std::uint64_t>& value) {
  return value && *value != kUnlimited ? nlohmann::json(*value) : nlohmann::json();
}

struct Limit {
  std::uint64_t soft;
  std::uint64_t hard;
};
/// Reads a limit from /proc/self/limits: numbers, or "unlimited".
std::optional<Limit> limit(const Host& host, const std::string& name) {
  const auto line = host.line("proc/self/limits", name);
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  std::string soft, hard;
  words >> soft >> hard;
  const auto value = [](const std::string& word) {
    return word == "unlimited" ? std::optional(kUnlimited) : number(word);
  };
  if (!value(soft) || !value(hard)) return std::nullopt;
  return Limit{*value(soft), *value(hard)};
}

Finding unknown(const std::string& subject, const std::string& path) {
  return {
      .subject = subject, .state = State::advice, .text = "unknown: " + path + " cannot be read"};
}

// --- processors ----------------------------------------------------------------------------------

/// How many processors' time a container may use.
std::optional<double> cpu_quota(const Host& host) {
  double quota = 0;
  double period = 0;
  if (const auto two = host.text("sys/fs/cgroup/cpu.max")) {
    std::istringstream words(*two);
    if (words >> quota >> period && period > 0) return quota / period;
    return std::nullopt;  // "max"
  }
  const auto us = host.text("sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const auto of = host.text("sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (us && of && number(*us) && number(*of).value_or(0) > 0)
    return static_cast<double>(*number(*us)) / static_cast<double>(*number(*of));
  return std::nullopt;
}

Finding cores(const Host& host) {
  const auto online = count_in_list(host.text("sys/devices/system/cpu/online"));
  const auto allowed = count_in_list(host.line("proc/self/status", "Cpus_allowed_list:"));
  if (!allowed) return unknown("cores", "/proc/self/status");
  const std::optional<double> quota = cpu_quota(host);
  Finding finding{.subject = "cores"};
  finding.facts = {{"online", or_null(online)}, {"allowed", *allowed}};
  finding.facts["quota"] = quota ? nlohmann::json(*quota) : nlohmann::json();
  finding.text =
      fmt::format("{} for this process, of {} online", *allowed, online.value_or(*allowed));
  if (quota && *quota < static_cast<double>(*allowed)) {
    finding.state = State::advice;
    finding.text += fmt::format(
        ", but the control group allows {:.2g} in all: members that spin will be halted", *quota);
    finding.mend = "raise the container's CPU limit, or wait by Wait::block";
  } else if (*allowed == 1) {
    finding.state = State::advice;
    finding.text += ": members take turns on it";
    finding.mend = "allow more (taskset, the container's CPU set), or wait by Wait::block";
  }
  return finding;
}

Finding clock(const Host& host) {
  const std::string folder = "sys/devices/system/clocksource/clocksource0/";
  const auto current = host.text(folder + "current_clocksource");
  const auto available = host.text(folder + "available_clocksource");
  if (!current) return unknown("clock", "/" + folder + "current_clocksource");
  Finding finding{.subject = "clock", .text = *current};
  finding.facts = {{"source", *current}, {"available", available.value_or("")}};
  if (*current == "tsc" || *current == "arch_sys_counter") return finding;
  finding.state = State::advice;
  finding.text += ": reading the time is slower than with the processor's own counter, tsc";
  const bool there = (" " + available.value_or("") + " ").find(" tsc ") != std::string::npos;
  finding.mend = there ? "echo tsc > /" + folder + "current_clocksource"
                       : "boot with clocksource=tsc tsc=reliable, if the processor's counter is "
                         "steady (in a virtual machine its host must pass it on)";
  return finding;
}

Finding barriers(const Host& host) {
  Finding finding{.subject = "barriers", .text = "membarrier, expedited"};
  finding.facts = {{"membarrier", host.has_barriers()}};
  if (host.has_barriers()) return finding;
  finding.state = State::advice;
  finding.text = "no membarrier: on shm each write pays for a fence";
  finding.mend = "a kernel of 4.16 or later, and a seccomp profile that allows membarrier";
  return finding;
}

// --- limits --------------------------------------------------------------------------------------

bool may_lock_all(const Host& host) {
  const auto effective = host.line("proc/self/status", "CapEff:");
  const auto bits = effective ? number(*effective, 16) : std::nullopt;
  return bits && (*bits >> kCapabilityIpcLock & 1) != 0;
}

Finding locked_memory(const Host& host) {
  const auto found = limit(host, "Max locked memory");
  if (!found) return unknown("locked memory", "/proc/self/limits");
  const bool all = may_lock_all(host);
  Finding finding{.subject = "locked memory"};
  finding.facts = {{"soft_bytes", or_null(found->soft)},
                   {"hard_bytes", or_null(found->hard)},
                   {"capability", all}};
  finding.text = found->soft == kUnlimited ? "unlimited" : size_text(found->soft);
  if (all && found->soft != kUnlimited) finding.text += ", and this user may go beyond it";
  if (all || found->soft >= kEnoughLocked) return finding;
  finding.state = State::advice;
  finding.text += ": RDMA devices (verbs) pin what peers write to, and tables have to fit in";
  finding.mend =
      "ulimit -l unlimited; for good: '* - memlock unlimited' in /etc/security/limits.conf, or "
      "LimitMEMLOCK=infinity in the service";
  return finding;
}

Finding open_files(const Host& host) {
  const auto found = limit(host, "Max open files");
  if (!found) return unknown("open files", "/proc/self/limits");
  Finding finding{.subject = "open files"};
  finding.facts = {{"soft", or_null(found->soft)}, {"hard", or_null(found->hard)}};
  const std::uint64_t enough = 2 * kMaxStreamMembers + kOtherFiles;
  const auto text = [](std::uint64_t value) {
    return value == kUnlimited ? std::string("unlimited") : std::to_string(value);
  };
  finding.text = text(found->hard) + " at most, " + text(found->soft) + " now";
  if (found->hard >= enough) return finding;
  finding.state = found->hard < kOtherFiles ? State::problem : State::advice;
  finding.text +=
      fmt::format(": enough for small groups only; {} members need {}", kMaxStreamMembers, enough);
  finding.mend = fmt::format(
      "ulimit -Hn {0}; for good: '* - nofile {0}' in /etc/security/limits.conf, or "
      "LimitNOFILE={0} in the service",
      enough);
  return finding;
}

// --- memory --------------------------------------------------------------------------------------

Finding shm_size(const Host& host) {
  Finding finding{.subject = "/dev/shm"};
  const std::optional<Space> space = host.shm_space();
  if (!space) {
    finding.state = State::problem;
    finding.text = "is not there: shm has no place for its memory";
    finding.mend = "mount -t tmpfs -o mode=1777,size=1G tmpfs /dev/shm";
    return finding;
  }
  finding.facts = {{"size_bytes", space->size_bytes}, {"free_bytes", space->free_bytes}};
  finding.text = size_text(space->free_bytes) + " free of " + size_text(space->size_bytes);
  if (space->free_bytes >= kLittleShm) return finding;
  finding.state = space->free_bytes < kNoShm ? State::problem : State::advice;
  finding.text += ": little for shm's tables";
  finding.mend = "mount -o remount,size=1G /dev/shm (of a container: --shm-size=1g)";
  return finding;
}

Finding huge_pages(const Host& host) {
  const auto total = host.line("proc/meminfo", "HugePages_Total:");
  const auto shm = host.line("proc/mounts", "tmpfs /dev/shm ");
  Finding finding{.subject = "huge pages"};
  const auto reserved = total ? number(*total) : std::nullopt;
  const std::size_t at = shm ? shm->find("huge=") : std::string::npos;
  const std::string mode = at == std::string::npos
                               ? "never"
                               : shm->substr(at + 5, shm->find_first_of(", ", at) - at - 5);
  finding.facts = {{"reserved", or_null(reserved)}, {"shm", mode}};
  finding.text = mode == "never" ? "none in /dev/shm: its memory comes in small pages"
                                 : "in /dev/shm: " + mode;
  if (mode == "never") finding.mend = "mount -o remount,huge=within_size /dev/shm";
  return finding;  // not a shortcoming: of use for tables of many megabytes only
}

Finding memory(const Host& host) {
  const auto read = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto line = host.line("proc/meminfo", name);
    const auto kib = line ? number(line->substr(0, line->find(' '))) : std::nullopt;
    return kib ? std::optional(*kib * 1024) : std::nullopt;
  };
  const auto total = read("MemTotal:");
  if (!total) return unknown("memory", "/proc/meminfo");
  Finding finding{.subject = "memory"};
  finding.facts = {{"total_bytes", *total}, {"available_bytes", or_null(read("MemAvailable:"))}};
  finding.text =
      size_text(read("MemAvailable:").value_or(0)) + " available of " + size_text(*total);
  return finding;
}

}  // namespace

std::vector<Finding> examine_machine(const Host& host) {
  return {cores(host),         memory(host),     shm_size(host), huge_pages(host),
          locked_memory(host), open_files(host), clock(host),    barriers(host)};
}

}  // namespace dunlin::doctor
