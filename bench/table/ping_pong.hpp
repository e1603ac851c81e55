#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

#include "bench/harness/clock.hpp"
#include "bench/harness/turns.hpp"

/// Detection by the round-trip method: node 0 changes its row, node 1's trigger answers by changing
/// its own, node 0 detects that. Half of it is an upper bound for one detection, and needs no
/// common clock.
namespace dunlin::bench {

/// A row of N integers, published whole; the last one is watched.
template <std::size_t N>
struct Ball {
  std::array<Cell<std::int32_t>, N> a;
};

template <std::size_t N>
class PingPong {
 public:
  /// All members make it; node i of the fabric is member i of the team, and those beyond the first
  /// two look on.
  PingPong(Member& me, Fabric& fabric, const TableOptions& options = {})
      : me_(me), table_(fabric, options) {
    if (me.rank() == 0) {
      table_.when([](const auto& t) { return last(t[1]) == last(t.mine()); }).recurrent([this] {
        detected_ = true;
      });
    } else if (me.rank() == 1) {
      table_.when([](const auto& t) { return last(t[0]) != last(t.mine()); })
          .recurrent([this](auto& t) {
            t.mine().a.back() = last(t[0]);
            t.push();
            ++answered_;
          });
    }
  }

  Table<Ball<N>>& table() noexcept { return table_; }

  /// Node 0 gets the time of one detection in ns.
  std::optional<double> round(const Batches& plan) {
    if (me_.rank() > 1) return std::nullopt;
    if (me_.rank() == 0) return batch_ns(plan, [this] { round_trip(); }) / 2;
    for (expected_ += plan.total(); answered_ < expected_;) table_.poll();
    return std::nullopt;
  }

  /// Node 0: the time of a single one, while node 1 polls.
  double detection() {
    const double start = now_ns();
    round_trip();
    return (now_ns() - start) / 2;
  }

  /// As round(), between two that sleep as soon as there is nothing to do.
  std::optional<double> round_asleep(const Batches& plan, std::uint32_t timeout_ms) {
    if (me_.rank() > 1) return std::nullopt;
    Loop loop(table_.fabric(), {.wait = Wait::block});
    loop.add(table_);
    const auto sleep_until = [&](const std::function<bool()>& condition) {
      if (loop.run_until(condition, timeout_ms)) return;
      throw Error("bench: nothing arrived that would wake a sleeper");
    };
    if (me_.rank() == 0) {
      return batch_ns(plan,
                      [&] {
                        throw_ball();
                        sleep_until([&] { return detected_; });
                      }) /
             2;
    }
    expected_ += plan.total();
    sleep_until([&] { return answered_ >= expected_; });
    return std::nullopt;
  }

  /// Node 0: the median time to the answer of a node that had time to fall asleep.
  double answers_after(double silence_ns, std::uint32_t times) {
    std::vector<double> waits(times);
    for (double& wait : waits) {
      spin_for(silence_ns);
      wait = batch_ns({.batches = 1, .per_batch = 1}, [this] { round_trip(); });
    }
    std::ranges::nth_element(waits, waits.begin() + times / 2);
    return waits[times / 2];
  }

  /// Node 1: answer that often, sleeping in between.
  void answer_asleep(std::uint32_t times, std::uint32_t timeout_ms) {
    expected_ += times;
    if (!run_until(
            table_, [&] { return answered_ >= expected_; }, timeout_ms)) {
      throw Error("bench: nothing arrived to be answered");
    }
  }

 private:
  static std::int32_t last(const Ball<N>& row) noexcept { return row.a.back().load(); }

  void throw_ball() {
    detected_ = false;
    table_.mine().a.back() = ++ball_;
    table_.push();
  }

  void round_trip() {
    throw_ball();
    while (!detected_) table_.poll();
  }

  Member& me_;
  Table<Ball<N>> table_;
  std::int32_t ball_ = 0;
  bool detected_ = false;
  std::uint64_t answered_ = 0;
  // By the end of this turn. Not counted from its beginning: the first ball may come while we still
  // wait, polling, for all to begin.
  std::uint64_t expected_ = 0;
};

}  // namespace dunlin::bench
