// Two processes share a load figure: one puts it, the other gets it with one read of remote memory
// that no process has to answer. Start it twice:
//
//     ./shared_segment & ./shared_segment

#include <cstdint>
#include <iostream>

#include <dunlin/node.hpp>

namespace {

struct Load {
  std::uint64_t requests_per_second;
  std::uint64_t busy_percent;
};
struct Row {
  int step;
};

}  // namespace

int main() try {
  dunlin::Node node = dunlin::Node::join({.group = "example-shared-segment", .members = 2});
  dunlin::SegmentsHandle segments = node.segments("space", {.pool_bytes = 1 << 16});
  auto steps = node.table<Row>("steps");
  const auto meet = [&](int step) {
    steps.update([&](Row& mine) { mine.step = step; }, &Row::step);
    steps.until(dunlin::all(&Row::step) >= step).get();
  };
  Load load{};
  if (node.rank() == 0) {
    const dunlin::Key key = segments
                                .allocate({.bytes = sizeof load,
                                           .coherence = dunlin::Coherence::version,
                                           .placement = dunlin::Placement::here(),
                                           .name = "load/web"})
                                .get();
    meet(1);
    for (std::uint64_t second = 1; second <= 3; ++second) {
      load = {.requests_per_second = 1000 * second, .busy_percent = 20 * second};
      segments.put(key, dunlin::bytes_of(load)).get();
    }
  } else {
    meet(1);
    const dunlin::Key key = segments.find("load/web").get();
    for (std::uint64_t seen = 0; seen < 3;) {
      const std::uint64_t version = segments.get(key, dunlin::bytes_of(load)).get();
      if (version == seen) continue;
      seen = version;
      std::cout << "version " << version << ": " << load.requests_per_second << " requests/s, "
                << load.busy_percent << " % busy\n";
    }
  }
  meet(2);  // the member that holds the segment stays until the other has seen it
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
