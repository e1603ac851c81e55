#include <fmt/format.h>

#include "bench/multicast/experiments.hpp"
#include "bench/multicast/sim_cast.hpp"
#include "bench/table/simulation.hpp"

/// Beside the figures that were published for a cluster of 16 nodes on 100 Gb/s InfiniBand.
namespace dunlin::bench {
namespace {

constexpr const char* kNetwork = "ib100";
constexpr double kPerSecond = 1e9;
constexpr std::uint32_t kMost = 16;
/// The publication reaches 9.7 GB/s, 77.6 % of its network, with 4 members, and stays near it.
constexpr std::uint32_t kPeakMembers = 4;
/// The publication says that batching alone is 16 times as fast with 16 senders, and never faster
/// than 8.03 GB/s.
constexpr double kMostPublishedWithout = 8.03 / 16;

constexpr multicast::Switches kAll{.time_posting = true};
/// One message of each sender a poll, whole slots, nothing folded: the protocol before it was
/// made fast for small messages.
constexpr multicast::Switches kNone{.batch_receive = false,
                                    .batch_send = false,
                                    .batch_deliver = false,
                                    .nulls = false,
                                    .used_bytes_only = false,
                                    .one_cache_line = false,
                                    .time_posting = true};
constexpr multicast::Switches kBatching{
    .nulls = false, .used_bytes_only = false, .one_cache_line = false, .time_posting = true};

struct Case {
  Params params;
  SimCast cast;
  std::optional<double> published_gb = {};  // GB/s
};

Result measure(const Effort& effort, Case of) {
  const Network network(effort, kNetwork);
  if (effort.quick) of.cast.messages = std::max<std::uint64_t>(of.cast.messages / 50, 100);
  SimCastFigures seen;
  const auto values = over_seeds(effort, [&](std::uint64_t seed) {
    seen = run_sim_cast(network.profile, seed, of.cast);
    return seen.bytes_per_ns * kPerSecond;
  });
  const auto limits = over_seeds(effort, [&](std::uint64_t seed) {
    return run_sim_stream(network.profile, seed, of.cast) * kPerSecond;
  });
  of.params.insert(of.params.begin(), {"members", double(of.cast.members)});
  Result result{.params = std::move(of.params),
                .unit = "B/s",
                .note = fmt::format(
                    "Batches of {:.1f} sent, {:.1f} received, {:.1f} delivered; {:.2f} writes a "
                    "message of a sender, {:.0f} % of the time spent posting; its own delivery "
                    "after {:.0f} us, 99 %: {:.0f}, 99.9 %: {:.0f}",
                    seen.records_sent_at_once, seen.slots_received_at_once, seen.delivered_at_once,
                    seen.writes_per_message, seen.posting_share * 100, seen.latencies_ns[0] / 1000,
                    seen.latencies_ns[1] / 1000, seen.latencies_ns[2] / 1000)};
  if (of.published_gb) result.published = network.published(*of.published_gb * kPerSecond);
  compare(result, values, "bare puts in the simulator", limits);
  return result;
}

SimCast all_send(std::uint32_t members, const multicast::Switches& switches,
                 std::uint64_t messages = 24'000) {
  return {.members = members, .senders = members, .messages = messages, .switches = switches};
}

std::vector<Result> by_members(const Effort& effort) {
  std::vector<Case> cases;
  for (const std::uint32_t members : {2U, 4U, 8U, 11U, kMost}) {
    cases.push_back({{{"senders", "all"}, {"optimized", "all"}},
                     all_send(members, kAll),
                     members == kPeakMembers ? std::optional(9.7) : std::nullopt});
    cases.push_back({{{"senders", "all"}, {"optimized", "batching"}},
                     all_send(members, kBatching),
                     members == 11 ? std::optional(8.03) : std::nullopt});
    cases.push_back({{{"senders", "all"}, {"optimized", "nothing"}},
                     all_send(members, kNone, 4'000),
                     members == kMost ? std::optional(kMostPublishedWithout) : std::nullopt});
  }
  SimCast half = all_send(kMost, kAll);
  half.senders = kMost / 2;
  cases.push_back({{{"senders", "half"}, {"optimized", "all"}}, half});
  SimCast one = all_send(kMost, kAll, 4'000);
  one.senders = 1;
  cases.push_back({{{"senders", "one"}, {"optimized", "all"}}, one});
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_size(const Effort& effort) {
  std::vector<Case> cases;
  for (const double bytes : {1.0, 100.0, 1'000.0, 10'000.0, 100'000.0}) {
    const bool large = bytes >= 100'000;
    SimCast cast = all_send(kMost, kAll, large ? 4'000 : 24'000);
    cast.bytes = static_cast<std::size_t>(bytes);
    if (large) cast.window = 20;  // as much memory as 10 KB takes
    cases.push_back({{{"bytes", bytes}}, cast});
  }
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_window(const Effort& effort) {
  std::vector<Case> cases;
  for (const std::uint32_t window : {5U, 20U, 50U, 100U, 200U, 500U, 1'000U}) {
    SimCast cast = all_send(kMost / 2, kAll, std::max<std::uint64_t>(16'000, 48ULL * window));
    cast.window = window;
    cases.push_back({{{"window", double(window)}}, cast});
  }
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_delay(const Effort& effort) {
  std::vector<Case> cases;
  for (const std::uint32_t delayed : {1U, kMost / 2}) {
    for (const auto& [delay, ns] : {std::pair{"1 us", 1'000UL}, std::pair{"100 us", 100'000UL},
                                    std::pair{"silent", std::uint64_t{SimCast::kSilent}}}) {
      for (const bool nulls : {true, false}) {
        if (!nulls && ns == SimCast::kSilent) continue;  // nobody would deliver anything
        multicast::Switches switches = kAll;
        switches.nulls = nulls;
        SimCast cast = all_send(kMost, switches, nulls ? 24'000 : 4'000);
        cast.delayed = delayed;
        cast.delay_ns = ns;
        cases.push_back(
            {{{"delayed", double(delayed)}, {"by", delay}, {"nulls", nulls ? "yes" : "no"}}, cast});
      }
    }
  }
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_subgroups(const Effort& effort) {
  std::vector<Case> cases;
  for (const bool batching : {true, false}) {
    for (const std::uint32_t subgroups : {1U, 2U, 10U, 50U}) {
      for (const std::uint32_t active : {1U, subgroups}) {
        if (!batching && active > 1) continue;
        SimCast cast = all_send(8, batching ? kAll : kNone, batching ? 16'000 : 2'000);
        cast.subgroups = subgroups;
        cast.active = active;
        cases.push_back({{{"subgroups", double(subgroups)},
                          {"active", double(active)},
                          {"optimized", batching ? "all" : "nothing"}},
                         cast});
        if (subgroups == 1) break;
      }
    }
  }
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_upcall(const Effort& effort) {
  std::vector<Case> cases;
  for (const auto& [upcall, ns] : {std::pair{"1 us", 1'000UL}, std::pair{"100 us", 100'000UL},
                                   std::pair{"1 ms", 1'000'000UL}}) {
    SimCast cast = all_send(kMost, kAll, 16'000);
    cast.upcall_ns = ns;
    cases.push_back({{{"upcall", upcall}}, cast});
  }
  SimCast copied = all_send(kMost, kAll);
  copied.copy_ns_per_byte = 0.1;  // 10 GB/s
  cases.push_back({{{"upcall", "copies, as the sender does"}}, copied, 7.5});
  return for_settings(cases, measure)(effort);
}

/// The operations of all 16 members for each message, where some senders speak and the others are
/// silent. The limit: those that are silent are no senders.
std::vector<Result> by_silence(const Effort& effort) {
  const Network network(effort, kNetwork);
  std::vector<Result> results;
  for (const std::uint64_t pace_ns : {0UL, 50'000UL}) {
    for (const std::uint32_t speak : {1U, kMost / 2}) {
      for (const bool ahead : {true, false}) {
        SimCast cast = all_send(kMost, {.nulls_ahead = ahead}, pace_ns == 0 ? 8'000 : 1'000);
        if (effort.quick) cast.messages = 100;
        cast.bytes = 100;
        cast.pace_ns = pace_ns;
        SimCast limit = cast;
        cast.delayed = kMost - speak;
        cast.delay_ns = SimCast::kSilent;
        limit.senders = speak;
        const auto operations = [&](const SimCast& of) {
          return over_seeds(effort, [&](std::uint64_t seed) {
            return run_sim_cast(network.profile, seed, of).operations_per_message;
          });
        };
        results.push_back(compared({.params = {{"senders", double(kMost)},
                                               {"speak", double(speak)},
                                               {"pace", pace_ns == 0 ? "none" : "50 us"},
                                               {"nulls ahead", ahead ? "yes" : "no"}},
                                    .unit = "operations"},
                                   operations(cast), "the silent ones are no senders",
                                   operations(limit)));
      }
    }
  }
  return results;
}

}  // namespace

std::vector<Experiment> simulated_casts() {
  return experiments_on(
      "sim",
      {{"simulated", "bytes a second that each member delivers of 10 KB messages, window 100",
        "members", by_members},
       {"simulated size", "the same by the messages' size, 16 members that all send", "bytes",
        by_size},
       {"simulated window", "the same by the window", "window", by_window},
       {"simulated delay", "the same where senders are delayed after each message", "", by_delay},
       {"simulated subgroups",
        "the same for 8 members that are in so many subgroups, one or all in use", "",
        by_subgroups},
       {"simulated silence",
        "operations of all 16 members for each message of 100 B, where some senders are silent", "",
        by_silence},
       {"simulated upcall", "the same where upcalls take their time, or copy", "", by_upcall}});
}

}  // namespace dunlin::bench
