#include "bench/fabric/group.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include <dunlin/limits.hpp>

#include "group_name.hpp"

namespace dunlin::bench {

/// The end of the name is its random part.
std::string fresh_group() {
  const std::string name = app::fresh_group("bench");
  return name.substr(name.size() - std::min(name.size(), kMaxJoinableGroupNameBytes));
}

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
  std::vector<std::unique_ptr<Fabric>> fabrics(count);
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          fabrics[i] = join(first + i);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return fabrics;
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
