#include <array>
#include <deque>
#include <functional>
#include <span>

#include "bench/segment/bare_segment.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/segment/segment_node.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<std::size_t, 5> kSizes{1, 64, 1024, 8192, 65'536};
constexpr std::size_t kCasesOfATeam = 8;
static_assert(2 * kCasesOfATeam <= kMaxSeries);
constexpr std::uint64_t kForAges = 3'600'000'000'000;  // a copy that does not become too old
constexpr std::uint32_t kKeptVersions = 2;

/// A kind of get or put, and the sequence of operations that its protocol needs.
struct Case {
  Coherence coherence;
  const char* operation;
  const char* sequence;
  void (BareSegment::*bare)();
  bool has_goal = true;
};
const std::array<Case, 15> kCases{
    Case{Coherence::null, "get", "read", &BareSegment::read_data},
    Case{Coherence::null, "put", "write", &BareSegment::write_data},
    Case{Coherence::read, "get", "swap, read, swap", &BareSegment::read_locked},
    Case{Coherence::read, "put", "write", &BareSegment::write_data},
    Case{Coherence::write, "get", "3 reads", &BareSegment::read_whole},
    Case{Coherence::write, "put", "swap, add-write-add, swap", &BareSegment::write_whole},
    Case{Coherence::strict, "get", "swap, read, swap", &BareSegment::read_locked},
    Case{Coherence::strict, "put", "swap, add-write-add, swap", &BareSegment::write_whole},
    Case{Coherence::version, "get, unchanged", "read of a word", &BareSegment::read_version},
    Case{Coherence::version, "get", "3 reads", &BareSegment::read_whole},
    Case{Coherence::version, "put", "swap, add-write-add, swap", &BareSegment::write_whole},
    Case{Coherence::temporal, "get, from the copy", "clock, copy", &BareSegment::copy_of_a_copy,
         false},
    Case{Coherence::temporal, "put", "swap, add-write-add, swap", &BareSegment::write_whole},
    Case{Coherence::delta, "get", "3 reads", &BareSegment::read_whole},
    Case{Coherence::delta, "put", "swap, add, write-add, swap", &BareSegment::write_next}};

/// What a small get or put under null adds is the goal of the figure `overhead`.
std::optional<Goal> goal_of(const RealNetwork& network, const Case& which, std::size_t bytes) {
  const bool is_small = network.is_shm() && bytes <= 64;
  const bool is_one_operation =
      which.bare == &BareSegment::read_data || which.bare == &BareSegment::write_data;
  if (!which.has_goal || (is_small && is_one_operation)) return std::nullopt;
  return Goal{.bound = is_small ? 1.5 : 1.15};
}

SegmentSpec spec_of(const Case& which, std::size_t bytes) {
  SegmentSpec spec{.bytes = bytes, .coherence = which.coherence};
  if (which.coherence == Coherence::temporal) spec.stale_ns = kForAges;
  if (which.coherence == Coherence::delta) spec.versions = kKeptVersions;
  return spec;
}

/// Performs a case's operation on its segment.
class Performer {
 public:
  Performer(SegmentPair& pair, const Case& which, std::size_t bytes)
      : space_(pair.space()),
        which_(which),
        key_(pair.make(spec_of(which, bytes))),
        words_(bytes / 8 + 1),
        memory_(std::as_writable_bytes(std::span(words_)).first(bytes)) {}

  /// Before a turn: a copy is there, and the version is known.
  void prepare() {
    const std::string_view what = which_.operation;
    unchanged_ = what == "get, unchanged";
    is_put_ = what == "put";
    auto get = space_.get(key_, memory_);
    demand(get);
    known_ = get.result().version;
  }
  void once() {
    if (unchanged_) {
      auto get = space_.get_if_changed(key_, memory_, known_);
      demand(get);
      return;
    }
    auto operation = is_put_ ? space_.put(key_, memory_) : space_.get(key_, memory_);
    demand(operation);
  }

 private:
  SegmentSpace& space_;
  const Case& which_;
  Key key_;
  std::vector<std::uint64_t> words_;
  std::span<std::byte> memory_;
  bool unchanged_ = false;
  bool is_put_ = false;
  std::uint64_t known_ = 0;
};

/// Several cases by one team, whose processes may take seconds to join a network.
std::vector<Result> measure(const RealNetwork& network, const Effort& effort,
                            std::span<const Case> cases, std::size_t bytes) {
  const Batches plan = effort.plan(100, network.trips(bytes <= 1024 ? 4 : 40));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    SegmentPair pair(me, group);
    BareSegment bare(pair.node(), bytes);
    std::deque<Performer> performers;
    std::vector<Contender> contenders;
    for (const Case& which : cases) {
      Performer& performer = performers.emplace_back(pair, which, bytes);
      contenders.push_back(timed(pair, plan, [&] { std::invoke(which.bare, bare); }));
      contenders.emplace_back([&] {
        return pair.turn([&] {
          performer.prepare();
          return batch_ns(plan, [&] { performer.once(); });
        });
      });
    }
    alternate(me, effort.rounds, contenders);
  });
  std::vector<Result> results;
  for (std::uint32_t i = 0; i < cases.size(); ++i) {
    const Case& which = cases[i];
    results.push_back(compared({.params = {{"coherence", std::string(name_of(which.coherence))},
                                           {"operation", which.operation},
                                           {"bytes", double(bytes)}},
                                .unit = "ns",
                                .goal = goal_of(network, which, bytes)},
                               team.series(2 * i + 1), which.sequence, team.series(2 * i)));
  }
  return results;
}

}  // namespace

Experiment coherence(const RealNetwork& network) {
  return {
      .name = "coherence",
      .title = "get and put under each coherence, beside the bare sequence of operations",
      .fabric = network.name,
      .x = "bytes",
      .run = [&network](const Effort& effort) {
        const std::span<const Case> all(kCases);
        std::vector<Result> results;
        for (const auto cases : {all.first(kCasesOfATeam), all.subspan(kCasesOfATeam)})
          for (const std::size_t bytes : std::span(kSizes).first(effort.quick ? 1 : kSizes.size()))
            append(results, measure(network, effort, cases, bytes));
        return results;
      }};
}

}  // namespace dunlin::bench
