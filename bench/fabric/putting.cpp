#include <algorithm>
#include <array>

#include "bench/fabric/experiments.hpp"
#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

namespace dunlin::bench {
namespace {

/// So many puts of so many bytes, a batch in each post(), and then a word that is known to be
/// placed: nanoseconds for one of them.
struct Puts {
  std::size_t bytes;
  std::uint32_t items;
  std::uint32_t batch;

  double time(Node& node) const {
    const std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<Operation> operations;
    for (std::uint32_t i = 0; i < batch; ++i) {
      const std::uint64_t at = kRoom + i * bytes % (kRoomBytes - bytes + 1) / 8 * 8;
      operations.push_back(put(1, node.box(), at, from.data(), bytes));
    }
    const std::uint64_t done = 1;
    const double start = now_ns();
    for (std::uint32_t left = items; left > 0;) {
      const std::uint32_t now = std::min(left, batch);
      node.post(std::span(operations).first(now));
      left -= now;
    }
    node.finish(write(1, node.box(), kSignal, &done, sizeof done));
    return (now_ns() - start) / items;
  }
};

/// Against the raw stream with `at_once` items in each of its sends. `convert` makes the figure of
/// nanoseconds for one put.
template <class Convert>
void measure(Result& result, const RealNetwork& network, const Effort& effort, const Puts& puts,
             std::uint32_t at_once, Convert&& convert) {
  const Group group(network, effort);
  const auto converted = [&](std::optional<double> ns) {
    return ns ? std::optional<double>(convert(*ns)) : std::nullopt;
  };
  Team team(group.team());
  team.run([&](Member& me) {
    Node node(group.join(me.rank()));
    const auto bare = group.bare(me, &node.fabric());
    connect(me, node);
    alternate(me, effort.rounds,
              {[&] { return converted(bare->stream(me, puts.bytes, puts.items, at_once)); },
               [&] { return converted(one_sided(me, node, [&] { return puts.time(node); })); }});
  });
  const std::string way =
      at_once == 1 ? ", one at a time" : ", " + std::to_string(at_once) + " at a time";
  compare(result, team.series(1), network.bare_name + way, team.series(0));
}

Result rate(const RealNetwork& network, const Effort& effort, std::uint32_t batch) {
  Result result{.params = {{"bytes", 8.0}, {"batch", static_cast<double>(batch)}}, .unit = "1/s"};
  if (batch >= 16 && network.goals.puts_per_s)
    result.goal = Goal{.on = Goal::On::value, .bound = *network.goals.puts_per_s};
  const std::uint32_t items = batch < 16 ? 20'000 : 200'000;  // one a send() is slow
  const Puts puts{.bytes = 8, .items = effort.scaled(items), .batch = batch};
  measure(result, network, effort, puts, batch, [](double ns) { return 1e9 / ns; });
  return result;
}

struct Large {
  std::size_t bytes;
  std::uint32_t at_once;  // in a send of the raw stream
};

Result stream(const RealNetwork& network, const Effort& effort, const Large& large) {
  const auto [bytes, at_once] = large;
  Result result{.params = {{"bytes", double(bytes)}}, .unit = "GB/s"};
  if (bytes == 10'240)
    result.goal =
        ratio_goal(at_once == 1 ? network.goals.stream_ratio : network.goals.filled_ratio);
  const auto items = static_cast<std::uint32_t>((std::size_t{48} << 20) / bytes);
  const Puts puts{.bytes = bytes, .items = effort.scaled(items), .batch = std::max(at_once, 4U)};
  measure(result, network, effort, puts, at_once,
          [&large](double ns) { return static_cast<double>(large.bytes) / ns; });
  return result;
}

}  // namespace

Experiment put_rate(const RealNetwork& network) {
  return {.name = "put-rate",
          .title = "8-byte puts a second when there is a backlog, by how many are posted at once",
          .fabric = network.name,
          .x = "batch",
          .run = on_network(network, for_settings({1U, 4U, 16U, 64U, 256U}, rate))};
}

Experiment put_stream(const RealNetwork& network) {
  return {.name = "put-stream",
          .title = "large puts, until the last is placed",
          .fabric = network.name,
          .x = "bytes",
          .run = on_network(network, for_settings({Large{1'024, 1}, Large{10'240, 1},
                                                   Large{65'536, 1}, Large{10'240, 6}},
                                                  stream))};
}

}  // namespace dunlin::bench
