#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>

/// The edge of the library: loops that own a thread and its waiting. Layers only have poll(); these
/// call it, and wait when there is nothing to do. A program with a loop of its own needs none of
/// this.
///
///     dunlin::run(table);                                           // this thread, for ever
///     dunlin::run_until(table, [&] { return table.connected(); }, 5'000);
///     dunlin::RunnerThread runner(table, {.wait = dunlin::Wait::spin, .core = 3});
namespace dunlin {

enum class Wait : std::uint8_t {
  spin,      // poll all the time: least latency, takes a whole core; yields now and then
  adaptive,  // poll for a while after the last event, then sleep until a peer's write rings
  block      // sleep as soon as there is nothing to do
};

struct RunOptions {
  Wait wait = Wait::adaptive;
  /// Wait::adaptive: how long to poll in vain before sleeping.
  std::uint32_t spin_us = 50;
  /// A request on this ends run(), also while it sleeps.
  std::stop_token stop = {};
};

/// Polls the parts on one fabric, in order, and waits as the options say.
class Loop {
 public:
  /// Throws Error for a simulated fabric: its World polls the nodes.
  explicit Loop(Fabric& fabric, RunOptions options = {});

  /// Adds a part: anything with `std::size_t poll()`. If it has `check()`, the loop calls that now
  /// and then, and it may throw; if it has `waits()`, those events end a sleep, too. The part must
  /// outlive the loop.
  template <class Part>
  Loop& add(Part& part) {
    parts_.push_back({&part, [](void* p) -> std::size_t { return static_cast<Part*>(p)->poll(); },
                      [](void* p) {
                        if constexpr (requires(Part & q) { q.check(); })
                          static_cast<Part*>(p)->check();
                      },
                      [](void* p, Waits& waits) {
                        if constexpr (requires(Part & q) { q.waits(); })
                          waits.add(static_cast<Part*>(p)->waits());
                      }});
    return *this;
  }

  /// Runs until the stop token says so.
  void run();
  /// Runs until `condition` holds, at most `timeout_ms`; returns whether it does.
  bool run_until(const std::function<bool()>& condition, std::uint32_t timeout_ms);

 private:
  struct Part {
    void* object;
    std::size_t (*poll)(void*);
    void (*check)(void*);
    void (*wait)(void*, Waits&);
  };

  std::size_t poll_parts();
  void check_parts();
  /// The two return whether they saw the condition hold.
  bool wait(const std::function<bool()>& condition, std::uint64_t deadline_ns);
  bool sleep(const std::function<bool()>& condition, std::uint64_t deadline_ns);
  [[nodiscard]] bool spun_enough();

  Fabric& fabric_;
  RunOptions options_;
  std::vector<Part> parts_;
  bool crowded_;                 // this host has more members than processors
  std::uint32_t fruitless_ = 0;  // polls in a row that did nothing
  std::uint64_t fruitless_since_ns_ = 0;
};

template <class Table>
void run(Table& table, RunOptions options = {}) {
  Loop(table.fabric(), std::move(options)).add(table).run();
}

template <class Table>
bool run_until(Table& table, const std::function<bool()>& condition, std::uint32_t timeout_ms,
               RunOptions options = {}) {
  return Loop(table.fabric(), std::move(options)).add(table).run_until(condition, timeout_ms);
}

struct ThreadOptions {
  Wait wait = Wait::adaptive;
  std::uint32_t spin_us = 50;
  /// The processor to pin the thread to; kAnyCore leaves the choice to the kernel.
  static constexpr int kAnyCore = -1;
  int core = kAnyCore;
};

/// A thread that runs a table until it is destroyed or stop()ped. Meanwhile no other thread may
/// touch the table or its fabric (triggers run on that thread). An exception ends the thread, and
/// join() throws it.
class RunnerThread {
 public:
  template <class Table>
  explicit RunnerThread(Table& table, ThreadOptions options = {})
      : RunnerThread(options, [&table, options](std::stop_token stop) {
          run(table, {.wait = options.wait, .spin_us = options.spin_us, .stop = std::move(stop)});
        }) {}
  ~RunnerThread();
  RunnerThread(const RunnerThread&) = delete;
  RunnerThread& operator=(const RunnerThread&) = delete;

  /// Asks the thread to end; returns at once.
  void stop() noexcept { thread_.request_stop(); }
  /// Waits for the end of the thread; rethrows the exception that ended it, if any.
  void join();

 private:
  RunnerThread(ThreadOptions options, std::function<void(std::stop_token)> body);
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace dunlin
