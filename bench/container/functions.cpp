#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

/// Functions of the program's at another member, beside the map's own call that does as much.
namespace dunlin::bench {
namespace {

using Block = std::array<std::uint64_t, 512>;  // no message has room for it

constexpr std::uint32_t kKeys = 1'000;
constexpr double kMostToAnAdd = 1.3;

enum Series : std::uint32_t { of_add, of_update, of_call, of_long_call };

/// What both members make; member 0 calls.
class Functions {
 public:
  explicit Functions(ContainerPair& pair)
      : containers_(pair.containers()),
        map_(containers_, {.name = "sums", .slots = 4 * kKeys, .style = Style::message}),
        sum_(map_, {.name = "sum"},
             [](const std::optional<std::uint64_t>& former, std::uint64_t more) {
               return former.value_or(0) + more;
             }),
        twice_(containers_, {.name = "twice"}, [](std::uint64_t value) { return 2 * value; }),
        same_(containers_, {.name = "same"}, [](const Block& block) { return block; }),
        keys_(keys_of_holder(map_, kKeys)) {}

  void once(Series what) {
    const std::uint64_t key = keys_[next_++ % kKeys];
    if (what == of_add) finish(map_.add(key, 1));
    if (what == of_update) finish(map_.update(key, sum_, 1));
    if (what == of_call) finish(containers_.at(ContainerPair::kHolder, twice_, key));
    if (what == of_long_call) finish(containers_.at(ContainerPair::kHolder, same_, block_));
  }

 private:
  template <class Operation>
  static void finish(Operation operation) {
    demand(operation);
  }

  Containers& containers_;
  BenchMap map_;
  Update<std::uint64_t, std::uint64_t, std::uint64_t> sum_;
  Function<std::uint64_t(std::uint64_t)> twice_;
  Function<Block(Block)> same_;
  std::vector<std::uint64_t> keys_;
  Block block_{};
  std::uint64_t next_ = 0;
};

std::vector<Result> measure_functions(const RealNetwork& network, const Effort& effort) {
  const Group group(network, effort);
  Team team(group.team());
  const Batches plan = effort.plan(50, std::min(network.trips_per_batch, 64U));
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    Functions functions(pair);
    pair.meet();
    const auto timed = [&](Series what) {
      return [&, what] {
        return pair.turn([&] { return batch_ns(plan, [&] { functions.once(what); }); });
      };
    };
    alternate(me, effort.rounds,
              {timed(of_add), timed(of_update), timed(of_call), timed(of_long_call)});
  });
  std::vector<Result> results;
  const auto add = [&](const char* what, Series series, const char* limit, Series of_limit) {
    results.push_back(compared({.params = {{"call", what}}, .unit = "ns"}, team.series(series),
                               limit, team.series(of_limit)));
  };
  add("update", of_update, "add by message", of_add);
  results.back().goal = goal_on_shm(network, kMostToAnAdd);
  add("function", of_call, "add by message", of_add);
  results.back().goal = goal_on_shm(network, kMostToAnAdd);
  add("function, 4 KB both ways", of_long_call, "a function of 8 bytes", of_call);
  return results;
}

}  // namespace

Experiment functions(const RealNetwork& network) {
  return {.name = "functions",
          .title = "functions of the program's at another member",
          .fabric = network.name,
          .run = on_network(network, measure_functions)};
}

}  // namespace dunlin::bench
