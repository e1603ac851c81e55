// Two processes share a load figure: one puts it, the other gets it with one read of remote memory
// that no process has to answer. Start it twice:
//
//     ./shared_segment & ./shared_segment

#include <array>
#include <cstdint>
#include <iostream>
#include <string>

#include <dunlin/join.hpp>
#include <dunlin/segment.hpp>

namespace {

struct Load {
  std::uint64_t requests_per_second;
  std::uint64_t busy_percent;
};

/// The key of the segment, once somebody has allocated it.
dunlin::Key find(dunlin::SegmentSpace& space) {
  for (;;) {
    auto search = space.find("load/web");
    const dunlin::Outcome found = search.outcome();
    if (found.ok()) return found.key;
    if (found.status != dunlin::remote::Status::unknown) throw dunlin::Error(search.describe());
  }
}

void observed(dunlin::SegmentSpace& space) {
  auto allocation = space.allocate({.bytes = sizeof(Load),
                                    .coherence = dunlin::Coherence::version,
                                    .placement = dunlin::Placement::here(),
                                    .name = "load/web"});
  const dunlin::Outcome made = allocation.outcome();
  if (!made.ok()) throw dunlin::Error(allocation.describe());
  for (std::uint64_t second = 1; second <= 3; ++second) {
    Load load{.requests_per_second = 1000 * second, .busy_percent = 20 * second};
    auto put = space.put(made.key, dunlin::bytes_of(load));
    if (!put.outcome().ok()) throw dunlin::Error(put.describe());
  }
}

void observer(dunlin::SegmentSpace& space) {
  const dunlin::Key key = find(space);
  Load load{};
  std::uint64_t version = 0;
  while (version < 3) {
    auto get = space.get_if_changed(key, dunlin::bytes_of(load), version);
    const dunlin::Outcome got = get.outcome();
    if (!got.ok()) throw dunlin::Error(get.describe());
    if (got.unchanged) continue;
    version = got.version;
    std::cout << "version " << version << ": " << load.requests_per_second << " requests/s, "
              << load.busy_percent << " % busy\n";
  }
}

}  // namespace

int main() try {
  const auto fabric = dunlin::join({.group = "example-shared-segment", .members = 2});
  dunlin::SegmentSpace space(*fabric, {.pool_bytes = 1 << 16});
  fabric->rank() == 0 ? observed(space) : observer(space);

  // The member that holds the segment stays until the other has seen it.
  const dunlin::Rank other = 1 - fabric->rank();
  std::uint64_t done = 1;
  const std::array<std::string, 2> names{"done/0", "done/1"};
  static_cast<void>(
      space.allocate({.bytes = sizeof done, .name = names[fabric->rank()]}).outcome());
  while (!space.find(names[other]).outcome().ok()) {
    if (space.progress().stopped()) break;
  }
  return 0;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
