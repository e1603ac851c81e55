#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/memory.hpp>

#include "bench/harness/clock.hpp"
#include "bench/harness/turns.hpp"

/// A member of a fabric with one region, as the figures use it.
namespace dunlin::bench {

// Words of the region, a page each, and then room for what is put and got.
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kSignal = 0;
inline constexpr std::uint64_t kOver = kPageBytes;         // which turn is over
inline constexpr std::uint64_t kCounter = 2 * kPageBytes;  // and one for each member
inline constexpr std::uint64_t kRoom = 64 * kPageBytes;
inline constexpr std::size_t kRoomBytes = std::size_t{1} << 20;

class Node {
 public:
  explicit Node(std::unique_ptr<Fabric> fabric);

  [[nodiscard]] Fabric& fabric() noexcept { return *fabric_; }
  [[nodiscard]] RegionId box() const noexcept { return box_.id(); }
  std::size_t poll() noexcept { return fabric_->poll(); }
  /// To all others.
  [[nodiscard]] bool connected() const noexcept;
  /// From now on this process cannot go on without its peers.
  void need_peers(Member& me);
  /// A word of our own region.
  [[nodiscard]] std::uint64_t word(std::uint64_t offset) const noexcept {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(box_.memory().data() + offset));
  }
  [[nodiscard]] const std::byte* bytes(std::uint64_t offset) const noexcept {
    return box_.memory().data() + offset;
  }

  /// Posts all of them, polling while there is no room.
  void post(std::span<const Operation> batch);
  void post(const Operation& one) { post(std::span(&one, 1)); }
  /// Posts one, and polls until it is finished.
  void finish(Operation operation, Notify when = Notify::remotely);
  /// Polls until our word has grown to `value`.
  void await(std::uint64_t offset, std::uint64_t value) {
    while (word(offset) < value) poll();
  }

  /// A process that only serves calls `step` until the measuring process says that its turn is
  /// over.
  template <class Step>
  void serve(Step&& step) {
    for (++turn_; word(kOver) < turn_;) step();
  }
  void end_turn(Rank server);

 private:
  std::unique_ptr<Fabric> fabric_;
  Region box_;
  Completion completion_;
  std::uint64_t turn_ = 0;
  Subscription watch_;
};

/// Polls until all are connected at every member of the team.
void connect(Member& me, std::span<Node* const> nodes);
inline void connect(Member& me, Node& node) {
  Node* const one = &node;
  connect(me, std::span(&one, 1));
}

/// A turn of Dunlin's in alternate() between nodes.
template <class Turn>
std::optional<double> take_turn(Member& me, Node& node, Turn&& turn) {
  return take_turn(
      me, [&] { node.poll(); }, std::forward<Turn>(turn));
}

/// A turn in which member 0 measures, and the others only serve: they call `serve` until member 0
/// tells `server` that it has measured. All call `poll` before and after it.
template <class Poll, class Measure, class Serve>
std::optional<double> one_sided(Member& me, Node& node, Poll&& poll, Measure&& measure,
                                Serve&& serve, Rank server = 1) {
  return take_turn(me, poll, [&]() -> std::optional<double> {
    if (me.rank() != 0) {
      node.serve(serve);
      return std::nullopt;
    }
    const double measured = measure();
    node.end_turn(server);
    return measured;
  });
}

/// A one-sided turn whose server only polls.
template <class Poll, class Measure>
std::optional<double> one_sided(Member& me, Node& node, Poll&& poll, Measure&& measure) {
  return one_sided(me, node, poll, measure, poll);
}

template <class Measure>
std::optional<double> one_sided(Member& me, Node& node, Measure&& measure) {
  return one_sided(
      me, node, [&] { node.poll(); }, measure);
}

/// A contender in the turns of a pair of members: the time of a call of `once`, or of one of the
/// operations of which it makes `at_once`.
template <class Pair, class Once>
[[nodiscard]] Contender timed(Pair& pair, const Batches& plan, Once once, double at_once = 1) {
  return [&pair, plan, once, at_once] {
    return pair.turn([&] { return batch_ns(plan, once) / at_once; });
  };
}

}  // namespace dunlin::bench
