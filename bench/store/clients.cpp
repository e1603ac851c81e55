#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/home_and_clients.hpp"
#include "bench/store/ycsb.hpp"
#include "team/cores.hpp"

/// What becomes of a store whose clients are more processes than the machine has cores.
namespace dunlin::bench {
namespace {

constexpr std::array<std::uint32_t, 5> kClients{1, 2, 4, 8, 16};
constexpr std::size_t kClientsOfLimit = 1;  // the number of two clients
constexpr std::uint32_t kPairs = 100'000;
constexpr std::size_t kValueBytes = 64;
constexpr std::size_t kCacheBytes = std::size_t{8} << 20;
constexpr double kLeastRatio = 0.5;  // of the rate of two clients
constexpr double kWindowNs = 300e6, kQuickWindowNs = 10e6;

struct Mix {
  YcsbWorkload workload;
  double skew;
};
constexpr YcsbWorkload kHalf{"50 % reads", "", 0.5, 0.5, 0, 0};
constexpr YcsbWorkload kMost{"95 % reads", "", 0.95, 0.05, 0, 0};
constexpr std::array<Mix, 4> kMixes{{{kHalf, 0}, {kHalf, 0.99}, {kMost, 0}, {kMost, 0.99}}};

/// Of all clients in one window.
struct Served {
  double per_second = 0;
  double least_to_most = 0;
};

/// Makes one call after the other for so long, at least one; says how many.
std::uint64_t make_calls(Store& store, YcsbCalls& calls, double window_ns) {
  static constexpr std::array<std::byte, kValueBytes> kValue{};
  StoreOperation operation;
  std::uint64_t made = 0;
  const double end = now_ns() + window_ns;
  do {
    const YcsbCall call = calls.next();
    if (call.kind == YcsbKind::read) {
      store.get(operation, mixed(call.record));
    } else {
      store.put(operation, mixed(call.record), kValue);
    }
    StorePair::demand(operation.wait());
    ++made;
  } while (now_ns() < end);
  return made;
}

/// All members call it; the home makes no calls.
Served serve(Member& me, HomeAndClients& members, YcsbCalls& calls, double window_ns) {
  me.meet();
  const bool is_client = me.rank() != HomeAndClients::kHome;
  const double begin = now_ns();
  const std::uint64_t made = is_client ? make_calls(members.store(), calls, window_ns) : 0;
  const double ns = HomeAndClients::ns_of_clients(me, begin, now_ns());
  const std::vector<double> made_by = HomeAndClients::of_clients(me, static_cast<double>(made));
  const double all = std::accumulate(made_by.begin(), made_by.end(), 0.0);
  const auto [least, most] = std::ranges::minmax(made_by);
  return {.per_second = 1e9 * all / ns, .least_to_most = least / most};
}

/// What the rounds gave for so many clients, for each mix.
struct Series {
  std::vector<double> per_second, least_to_most;
};
using AllSeries = std::array<Series, kMixes.size()>;

/// A window of each mix after one that does not count.
void add_round(AllSeries& all, const Effort& effort, std::uint32_t clients) {
  const std::uint32_t pairs = effort.scaled(kPairs);
  const Group group(real_network("shm"), effort, 1 + clients);
  TeamOptions options = group.team(group.members());
  options.pin = false;  // as many clients have to do without it
  Team team(options);
  team.run([&](Member& me) {
    HomeAndClients members(me, group, pairs, std::array<std::byte, kValueBytes>{}, kCacheBytes);
    std::uint32_t series = 0;
    for (const Mix& mix : kMixes) {
      YcsbCalls calls(mix.workload, pairs, me.rank(), mix.skew);
      const double window_ns = effort.quick ? kQuickWindowNs : kWindowNs;
      static_cast<void>(serve(me, members, calls, window_ns));
      const Served served = serve(me, members, calls, window_ns);
      if (me.rank() == HomeAndClients::kHome) {
        me.record(series, served.per_second);
        me.record(series + 1, served.least_to_most);
      }
      series += 2;
    }
  });
  std::uint32_t series = 0;
  for (Series& of_mix : all) {
    of_mix.per_second.push_back(team.series(series++).front());
    of_mix.least_to_most.push_back(team.series(series++).front());
  }
}

void add_results(std::vector<Result>& results, const Mix& mix, std::uint32_t clients,
                 const Series& series, const Series& of_two) {
  const auto add = [&](const char* figure, const char* unit) -> Result& {
    return results.emplace_back(Result{.params = {{"calls", std::string(mix.workload.name)},
                                                  {"skew", mix.skew},
                                                  {"clients", double(clients)},
                                                  {"cores", double(app::usable_cores().size())},
                                                  {"figure", figure}},
                                       .unit = unit,
                                       .better = Better::higher});
  };
  Result& rate = add("calls of all", "1/s");
  rate.value = summarize(series.per_second);
  if (clients > kClients[kClientsOfLimit]) {
    compare(rate, series.per_second, "two clients", of_two.per_second);
    rate.goal = Goal{.bound = kLeastRatio};
  }
  if (clients > 1)
    add("calls of the least served, to the most", "parts").value = summarize(series.least_to_most);
}

std::vector<Result> measure_clients(const Effort& effort) {
  const auto sizes = std::span(kClients).first(effort.quick ? 3 : kClients.size());
  std::vector<AllSeries> all(sizes.size());
  for (std::uint32_t round = 0; round < effort.rounds; ++round)
    for (std::size_t i = 0; i < sizes.size(); ++i) add_round(all[i], effort, sizes[i]);
  std::vector<Result> results;
  for (std::size_t mix = 0; mix < kMixes.size(); ++mix)
    for (std::size_t i = 0; i < sizes.size(); ++i)
      add_results(results, kMixes.at(mix), sizes[i], all[i].at(mix), all[kClientsOfLimit].at(mix));
  return results;
}

}  // namespace

Experiment store_clients() {
  return {.name = "clients",
          .title = "Gets and puts of 64 bytes, one after the other, by so many clients of one home",
          .fabric = "shm",
          .x = "clients",
          .run = measure_clients};
}

}  // namespace dunlin::bench
