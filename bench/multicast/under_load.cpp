#include <algorithm>
#include <bit>
#include <utility>

#include <dunlin/limits.hpp>

#include "bench/fabric/group.hpp"
#include "bench/multicast/bare_stream.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/workload.hpp"

/// What windows, subgroups, delays and upcalls do to the throughput on shared memory.
namespace dunlin::bench {
namespace {

struct Case {
  Params params;
  Load load;
  std::uint64_t messages = 20'000;
};

Result measure(const Effort& effort, const Case& of) {
  const Group group(real_network("shm"), effort, effort.members);
  const Group timed(real_network("shm"), effort, effort.members);
  const std::uint64_t messages = effort.scaled(static_cast<std::uint32_t>(of.messages));
  const Load& load = of.load;
  const std::uint32_t speakers = load.delay_ns == Load::kSilent ? load.undelayed() : load.senders;
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    BareStream bare(me, speakers, load.bytes, load.ring_bytes);
    {
      Workload workload(me, group.join(me.rank()), load);
      alternate(me, effort.rounds,
                {[&] { return bare.round(messages); }, [&] { return workload.round(messages); }});
    }
    note_timed(me, timed.join(me.rank()), load, messages);
  });
  Params params = of.params;
  params.insert(params.begin(), {"members", double(effort.members)});
  return compared(
      {.params = params, .unit = "1/s", .note = to_text(of.params) + ": " + team.note()},
      team.series(1), "bare stream", team.series(0));
}

std::vector<Result> by_window(const Effort& effort) {
  std::vector<Case> cases;
  for (const std::size_t bytes : {100UL, 10'000UL}) {
    for (const std::uint32_t window : {5U, 10U, 50U, 100U, 500U, 1'000U}) {
      Load load{.senders = effort.members, .bytes = bytes, .window = window};
      const std::size_t record = (bytes + 15) / 8 * 8;
      load.ring_bytes = std::max(std::bit_ceil(record * std::max(window, 8U)), kMinRingBytes);
      cases.push_back({{{"bytes", double(bytes)}, {"window", double(window)}},
                       load,
                       bytes < 1'000 ? 200'000UL : 20'000UL});
    }
  }
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_subgroups(const Effort& effort) {
  std::vector<Case> cases;
  for (const std::uint32_t subgroups : {1U, 2U, 10U, 50U}) {
    for (const std::uint32_t active : {1U, subgroups}) {
      const Load load{.senders = effort.members,
                      .ring_bytes = kRingBytes / 2,
                      .subgroups = subgroups,
                      .active = active};
      cases.push_back({{{"subgroups", double(subgroups)}, {"active", double(active)}}, load});
      if (subgroups == 1) break;
    }
  }
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_delay(const Effort& effort) {
  struct Delay {
    const char* name;
    std::uint64_t ns;
  };
  std::vector<std::uint32_t> delayed{1};
  if (effort.members / 2 > 1) delayed.push_back(effort.members / 2);
  std::vector<Case> cases;
  for (const std::uint32_t some : delayed) {
    for (const Delay& delay :
         {Delay{"1 us", 1'000}, Delay{"100 us", 100'000}, Delay{"silent", Load::kSilent}}) {
      for (const bool nulls : {true, false}) {
        if (!nulls && delay.ns == Load::kSilent) continue;  // nobody would deliver anything
        cases.push_back({{{"delayed", double(some)}, {"by", delay.name}},
                         {.senders = effort.members, .delayed = some, .delay_ns = delay.ns},
                         nulls || delay.ns < 10'000 ? 20'000UL : 500UL});
        cases.back().params.emplace_back("nulls", nulls ? "yes" : "no");
        cases.back().load.switches.nulls = nulls;
      }
    }
  }
  return for_settings(cases, measure)(effort);
}

std::vector<Result> by_upcall(const Effort& effort) {
  std::vector<Case> cases;
  const auto add = [&](const char* what, std::uint64_t messages) -> Load& {
    cases.push_back({{{"upcall", what}}, {.senders = effort.members}, messages});
    return cases.back().load;
  };
  add("1 us", 20'000).upcall_ns = 1'000;
  add("100 us", 2'000).upcall_ns = 100'000;
  add("1 ms", 500).upcall_ns = 1'000'000;
  add("copies, as the sender does", 20'000).copies = true;
  return for_settings(cases, measure)(effort);
}

}  // namespace

std::vector<Experiment> casts_under_load() {
  return experiments_on(
      "shm",
      {{"window", "messages a second by the window, in rings that hold it", "window", by_window},
       {"subgroups",
        "messages of 10 KB a second of members that are in so many subgroups, one or "
        "all in use",
        "", by_subgroups},
       {"delay", "the same where senders are delayed after each message", "", by_delay},
       {"upcall", "the same where upcalls take their time, or copy", "", by_upcall}});
}

}  // namespace dunlin::bench
