#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <nanobind/nanobind.h>

/// How the end of a call reaches an asyncio event loop: the node's thread puts the call into a list
/// and rings a descriptor, which is in the loop. The loop takes all ended calls at once.
///
///  PY-1  No thread but those of Python takes the GIL, or touches a Python object.
///  PY-2  The descriptor rings if the list has a call: push() rings when the list was empty, and
///        take() silences the descriptor before it takes the list.
namespace dunlin::python {

namespace nb = nanobind;

/// A call under way, for which an asyncio.Future waits.
class Waiting {
 public:
  Waiting() = default;
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  virtual ~Waiting() = default;
  /// Gives the asyncio.Future its result or exception. Requires the GIL.
  virtual void settle() = 0;
};

class Completions {
 public:
  /// Puts the descriptor into the loop. Requires the GIL.
  static std::shared_ptr<Completions> make(nb::object loop);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions();

  /// Any thread, without the GIL.
  void push(Waiting* ended) noexcept;

  // --- with the GIL ------------------------------------------------------------------------------
  [[nodiscard]] nb::handle loop() const noexcept { return loop_; }
  [[nodiscard]] nb::object make_future() { return create_future_(); }
  /// Settles all calls that have ended.
  void drain();

 private:
  Completions(nb::object loop, int descriptor);
  [[nodiscard]] std::vector<Waiting*> take() noexcept;

  const int descriptor_;
  std::mutex mutex_;
  std::vector<Waiting*> ended_;
  nb::object loop_;
  nb::object create_future_;
};

/// The event loop of this thread. Throws RuntimeError if none runs.
[[nodiscard]] nb::object running_loop();

/// An awaitable that is there already.
[[nodiscard]] nb::object make_ready(nb::object value);
/// An awaitable that raises this exception when it is awaited.
[[nodiscard]] nb::object make_failed(nb::object error);
void bind_completions(nb::module_& module);

}  // namespace dunlin::python
