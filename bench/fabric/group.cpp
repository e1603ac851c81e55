#include "bench/fabric/group.hpp"

#include "bench/harness/join_many.hpp"

namespace dunlin::bench {

app::FabricOptions options_on(const RealNetwork& network, const Effort& effort) {
  app::FabricOptions options;
  options.silence_timeout_ms = effort.network.silence_timeout_ms;
  if (network.name == "shm") return options;
  options = effort.network;
  options.network = network.name;
  return options;
}

Group::Group(const RealNetwork& network, const Effort& effort, std::uint32_t members)
    : TeamGroup(
          app::Cluster(options_on(network, effort)),
          {.name = "bench", .members = members, .timeout = effort.timeout, .watch = effort.watch}),
      network_(network) {}

std::vector<std::unique_ptr<Fabric>> Group::join_many(Rank first, std::uint32_t count) const {
  return bench::join_many(first, count, [this](Rank rank) { return join(rank); });
}

std::string Group::address(const Fabric& fabric) const {
  const std::string text = description(fabric);
  for (const std::string_view before : {", address ", "tcp at ", "tcp, encrypted, at "}) {
    const std::size_t found = text.find(before);
    if (found == std::string::npos) continue;
    const std::size_t start = found + before.size();
    return text.substr(start, text.find_first_of(" ,;)", start) - start);
  }
  return {};
}

std::unique_ptr<Bare> Group::bare(Member& me, const Fabric* fabric) const {
  return network_.bare(me, fabric == nullptr ? std::string() : address(*fabric));
}

}  // namespace dunlin::bench
