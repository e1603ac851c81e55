#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include <dunlin/container.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

/// A member of a fabric with containers and, for the bare operations beside them, regions of its
/// own.
namespace dunlin::bench {

using BenchMap = HashMap<std::uint64_t, std::uint64_t>;
using BenchQueue = Queue<std::uint64_t>;

/// A call, and what its caller promises.
struct CallCase {
  Call call;
  Promise promise;
};

/// Each protocol; under other promises the calls do the same (docs/container.md).
inline constexpr std::array kCallCases{
    CallCase{Call::insert, Promise::both}, CallCase{Call::insert, Promise::writes},
    CallCase{Call::assign, Promise::both}, CallCase{Call::find, Promise::both},
    CallCase{Call::find, Promise::reads},  CallCase{Call::erase, Promise::both},
    CallCase{Call::push, Promise::both},   CallCase{Call::push, Promise::writes},
    CallCase{Call::pop, Promise::both},    CallCase{Call::pop, Promise::reads}};

[[nodiscard]] constexpr bool on_queue(Call call) noexcept {
  return call == Call::push || call == Call::pop;
}

/// Begins a call on a map; without a style, in that of the map.
template <class Value, class... Styles>
void begin_map_call(HashMap<std::uint64_t, Value>& map,
                    typename HashMap<std::uint64_t, Value>::Operation& operation, Call call,
                    std::uint64_t key, const std::type_identity_t<Value>& value, Promise promise,
                    Styles... style) {
  switch (call) {
    case Call::insert:
      operation = map.insert(key, value, promise, style...);
      return;
    case Call::assign:
      operation = map.assign(key, value, promise, style...);
      return;
    case Call::erase:
      operation = map.erase(key, promise, style...);
      return;
    default:
      operation = map.find(key, promise, style...);
  }
}

/// A call on a queue: a push or a pop, as was begun last.
template <class Element>
struct QueueCall {
  template <class... Styles>
  void begin(Queue<Element>& queue, Call call, const Element& element, Promise promise,
             Styles... style) {
    pushes = call == Call::push;
    if (pushes)
      push = queue.push(element, promise, style...);
    else
      pop = queue.pop(promise, style...);
  }
  [[nodiscard]] bool finished() const noexcept { return push.finished() && pop.finished(); }
  remote::Status wait() { return pushes ? push.wait() : pop.wait(); }

  bool pushes = true;
  typename Queue<Element>::Push push;
  typename Queue<Element>::Pop pop;
};

class ContainerNode {
 public:
  explicit ContainerNode(std::unique_ptr<Fabric> fabric)
      : node(std::move(fabric)), containers(node.fabric()), calibration(containers) {}

  std::size_t poll() { return containers.poll(); }

  Node node;
  Containers containers;
  Calibration calibration;
};

/// The two processes of a figure: member 0 calls, and member 1 holds the containers and serves.
class ContainerPair {
 public:
  static constexpr Rank kHolder = 1;

  ContainerPair(Member& me, const Group& group) : me_(me), here_(group.join(me.rank())) {
    connect(me, here_.node);
  }

  [[nodiscard]] Member& me() noexcept { return me_; }
  [[nodiscard]] Node& node() noexcept { return here_.node; }
  [[nodiscard]] Containers& containers() noexcept { return here_.containers; }
  /// Once all have what they make.
  void meet() {
    me_.meet([this] { here_.poll(); });
  }

  /// A turn in alternate(): member 0 measures, and the others serve until it says that it has.
  template <class Measure>
  std::optional<double> turn(Measure&& measure) {
    return turn(std::forward<Measure>(measure), [] {});
  }
  /// The same; the others call `pause` between two polls.
  template <class Measure, class Pause>
  std::optional<double> turn(Measure&& measure, Pause&& pause) {
    const auto poll = [this] { here_.poll(); };
    return one_sided(me_, here_.node, poll, measure, [&] {
      poll();
      pause();
    });
  }
  /// At member 0: the components of this fabric, measured now.
  [[nodiscard]] ComponentCosts costs(bool quick) {
    ComponentCosts costs;
    static_cast<void>(turn([&] {
      costs = here_.calibration.measure(kHolder, quick ? 4 : 100);
      return 0.0;
    }));
    return costs;
  }

 private:
  Member& me_;
  ContainerNode here_;
};

/// Keys that the holder of a pair holds, all different.
inline std::vector<std::uint64_t> keys_of_holder(const BenchMap& map, std::size_t count) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 1; keys.size() < count; ++key)
    if (map.home_of(key) == ContainerPair::kHolder) keys.push_back(key);
  return keys;
}

/// Waits for an operation that is under way, or has ended; throws Error if it ends badly.
template <class Operation>
void demand(Operation& operation) {
  const remote::Status status = operation.wait();
  if (status != remote::Status::ok)
    throw Error("bench: a call ended: " + std::string(remote::describe(status)));
}

}  // namespace dunlin::bench
