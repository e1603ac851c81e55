#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bench/fabric/group.hpp"
#include "bench/harness/clock.hpp"
#include "bench/harness/folder.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/workload.hpp"
#include "fabric/system.hpp"

/// Durable messages, beside one process that appends the same bytes to a file and syncs it.
namespace dunlin::bench {
namespace {

class BareLog {
 public:
  explicit BareLog(const std::string& path)
      : file_(checked(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
                      ("opening " + path).c_str())) {}

  void append(const std::vector<std::byte>& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t written = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
      if (written < 0) checked(-1, "writing to a log");
      done += static_cast<std::size_t>(written);
    }
    checked(::fdatasync(file_.get()), "syncing a log");
  }

 private:
  Descriptor file_;
};

/// As many messages as a commit had on the average since the last look.
class BatchSize {
 public:
  [[nodiscard]] std::uint64_t since(const multicast::Counters& now) {
    const std::uint64_t messages = now.messages_delivered - before_.messages_delivered;
    const std::uint64_t commits = now.log_commits - before_.log_commits;
    before_ = now;
    return std::max<std::uint64_t>(commits == 0 ? 1 : messages / commits, 1);
  }

 private:
  multicast::Counters before_;
};

Load load_of(const Effort& effort, const Folder& folder, const std::string& name,
             std::size_t bytes) {
  return {.senders = effort.members, .bytes = bytes, .log_directory = folder / name};
}

/// All send as fast as they can; the limit gets as many bytes with each sync as it had here.
Result throughput(const Effort& effort, std::size_t bytes) {
  const Folder folder;
  const Group group(real_network("shm"), effort, effort.members);
  const Group timed(real_network("shm"), effort, effort.members);
  const std::uint32_t messages = effort.scaled(bytes >= 10'000 ? 500 : 10'000);
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    const std::string name = std::to_string(me.rank());
    std::uint64_t batch = 1;
    {
      Workload workload(me, group.join(me.rank()), load_of(effort, folder, name, bytes));
      BareLog log(folder / ("bare" + name));
      BatchSize size;
      const auto bare = [&]() -> std::optional<double> {
        if (me.rank() != 0) return std::nullopt;
        const std::uint64_t all = std::uint64_t{messages} * me.size();
        const double start = now_ns();
        for (std::uint64_t left = all; left > 0; left -= std::min(left, batch))
          log.append(std::vector<std::byte>(std::min(left, batch) * bytes, std::byte{1}));
        return static_cast<double>(all) * 1e9 / (now_ns() - start);
      };
      alternate(me, effort.rounds,
                {[&] {
                   const auto rate = workload.round(messages);
                   batch = size.since(workload.counters());
                   return rate;
                 },
                 bare});
    }
    note_timed(me, timed.join(me.rank()), load_of(effort, folder, name + "-timed", bytes),
               messages);
  });
  return compared({.params = {{"members", double(effort.members)},
                              {"bytes", double(bytes)},
                              {"what", "all send"}},
                   .unit = "1/s",
                   .note = fmt::format("{} bytes, all send: {}", bytes, team.note())},
                  team.series(0), "one appends as many at once, and syncs", team.series(1));
}

/// One message at a time, until its sender delivers it.
std::vector<Result> latency(const Effort& effort) {
  constexpr std::size_t kBytes = 100;
  const Folder folder;
  const Group group(real_network("shm"), effort, effort.members);
  const std::uint32_t trips = effort.quick ? 3 : 100;
  const Batches usual{.batches = trips, .per_batch = 1};
  const Batches rare{.batches = trips, .per_batch = 1, .quantile = 0.99};
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    const std::string name = std::to_string(me.rank());
    Workload workload(me, group.join(me.rank()), load_of(effort, folder, name, kBytes));
    BareLog log(folder / ("bare" + name));
    const std::vector<std::byte> message(kBytes, std::byte{1});
    const auto bare = [&](const Batches& plan) -> std::optional<double> {
      if (me.rank() != 0) return std::nullopt;
      return batch_ns(plan, [&] { log.append(message); });
    };
    alternate(me, effort.rounds,
              {[&] { return bare(usual); }, [&] { return workload.one_by_one(usual); },
               [&] { return bare(rare); }, [&] { return workload.one_by_one(rare); }});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {0U, 2U}) {
    results.push_back(
        compared({.params = {{"members", double(effort.members)},
                             {"bytes", double(kBytes)},
                             {"what", series == 0 ? "a lone message" : "a lone message, 99 %"}},
                  .unit = "ns"},
                 team.series(series + 1), "one appends it, and syncs", team.series(series)));
  }
  return results;
}

std::vector<Result> durable(const Effort& effort) {
  return joined<Result>(for_settings({100UL, 1'000UL, 10'000UL}, throughput)(effort),
                        latency(effort));
}

}  // namespace

Experiment durable_cast() {
  return {.name = "durable",
          .title = "messages a second that are in the logs of all members, and how long one takes",
          .fabric = "shm",
          .run = durable};
}

}  // namespace dunlin::bench
