#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <type_traits>
#include <utility>

#include <dunlin/run.hpp>

namespace dunlin {

/// A thread that polls in place of the owner while the owner computes, so that peers whose requests
/// need this member's poll() (containers by message, say) do not wait for it.
///
///     dunlin::ProgressThread progress(containers);
///     const auto sum = progress.during([&] { return add_up(my_part); });   // no containers inside
///
/// The part and its fabric are used by one thread at a time: by the owner, except inside during().
/// Then the part's handlers and callbacks run on the other thread. A part that is not lent costs
/// nothing: the thread sleeps. The owner makes, uses and destroys this object; the part outlives
/// it.
class ProgressThread {
 public:
  /// A part is what a Loop takes (Containers, Store, SegmentSpace, Group, ...), with `fabric()`.
  /// `options.wait` and `spin_us` say how the thread waits: for events while it polls, and for the
  /// next during(). Throws Error for a simulated fabric, or if the thread cannot be pinned.
  template <class Part>
  explicit ProgressThread(Part& part, ThreadOptions options = {})
      : ProgressThread(Loop(part.fabric(), {.wait = options.wait, .spin_us = options.spin_us}),
                       part.fabric(), options) {
    loop_.add(part);
  }
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Calls `compute` while the thread polls; returns its result once the thread polls no more. If
  /// `compute` throws, so does this; else it throws what a poll has thrown, after which the thread
  /// polled no further. If both have thrown, the next during() throws the poll's exception. A
  /// during() inside a during() throws Error.
  /// during() throws Error.
  template <class Compute>
  auto during(Compute&& compute) {
    lend();
    struct Back {
      ~Back() { self.take_back(); }
      ProgressThread& self;
    };
    if constexpr (std::is_void_v<std::invoke_result_t<Compute&>>) {
      {
        const Back back{*this};
        compute();
      }
      rethrow();
    } else {
      auto result = [&] {
        const Back back{*this};
        return compute();
      }();
      rethrow();
      return result;
    }
  }

 private:
  enum class Turn : std::uint32_t { owner, lent, wanted_back, over };

  ProgressThread(Loop loop, Fabric& fabric, ThreadOptions options);
  void lend();
  void take_back() noexcept;
  void rethrow();
  void work();
  [[nodiscard]] Turn next_turn() const noexcept;
  void hand(Turn turn) noexcept;

  Loop loop_;
  Fabric& fabric_;
  ThreadOptions options_;
  std::atomic<Turn> turn_{Turn::owner};
  std::exception_ptr failure_;  // thrown by a poll; belongs to the thread whose turn it is
  std::jthread thread_;
};

}  // namespace dunlin
