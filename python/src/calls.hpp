#pragma once

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <dunlin/node/future.hpp>

#include "bytes.hpp"
#include "completions.hpp"
#include "errors.hpp"
#include "state.hpp"

/// From a call of a Node, a Future, to Python: one definition makes the method that waits, and the
/// one whose result is awaited.
namespace dunlin::python {

/// A call that has begun, and the function that makes a Python object of its value. The function
/// owns the Python objects that the call uses. If it has a member `give_back`, this is called,
/// without the GIL, in its place if nobody gets the value.
template <class T, class Convert>
struct Begun {
  Future<T> future;
  Convert convert;
};
template <class T, class Convert>
Begun(Future<T>, Convert) -> Begun<T, Convert>;

/// A thread that waits looks so often whether Python has a signal to handle.
inline constexpr std::uint64_t kSignalSliceNs = 50'000'000;

/// Waits for `done(ns)` without the GIL, in slices; calls `give_up` if a signal's handler throws.
template <class Done, class GiveUp>
void wait_without_gil(const Done& done, const GiveUp& give_up) {
  for (;;) {
    {
      const nb::gil_scoped_release others_run;
      if (done(kSignalSliceNs)) return;
    }
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error interrupted;
    {
      const nb::gil_scoped_release others_run;
      give_up();
    }
    throw nb::python_error(interrupted);
  }
}

/// What a call has taken goes back, as its caller does not get it. Without the GIL.
template <class T, class Convert>
void give_back(Begun<T, Convert>& begun, const Result<T>& result) {
  if constexpr (requires { begun.convert.give_back(); })
    if (result) begun.convert.give_back();
}

/// Ends the call, whose caller waits no more; it may have ended just now. Without the GIL.
template <class T, class Convert>
void give_up(Begun<T, Convert>& begun) {
  begun.future.cancel();
  give_back(begun, begun.future.result());
}

/// Waits for the end of the call; returns its value, or raises its failure.
template <class T, class Convert>
nb::object wait_for(Begun<T, Convert> begun) {
  Future<T>& future = begun.future;
  if (!future.ready())
    wait_without_gil([&](std::uint64_t ns) { return future.wait_for(ns); },
                     [&] { give_up(begun); });
  Result<T> result = future.result();
  if (!result) throw CallFailed(result.error());
  return begun.convert(std::move(*result));
}

/// As wait_for(), at most so long: then the call is given up, and CallTimeoutError names `call`.
template <class T, class Convert>
nb::object wait_for(Begun<T, Convert> begun, std::uint64_t timeout_ns, const char* call) {
  using Clock = std::chrono::steady_clock;
  Future<T>& future = begun.future;
  if (future.ready() || timeout_ns >= remote::kForever / 2) return wait_for(std::move(begun));
  const auto begun_at = Clock::now();
  bool is_over = false;
  const auto wait = [&](std::uint64_t slice_ns) {
    const auto passed_ns = static_cast<std::uint64_t>((Clock::now() - begun_at).count());
    is_over = passed_ns >= timeout_ns;
    return future.wait_for(is_over ? 0 : std::min(slice_ns, timeout_ns - passed_ns)) || is_over;
  };
  wait_without_gil(wait, [&] { give_up(begun); });
  if (!future.ready()) {
    const nb::gil_scoped_release others_run;
    future.cancel();
  }
  Result<T> result = future.result();
  if (result) return begun.convert(std::move(*result));
  if (is_over && result.status() == remote::Status::abandoned)
    throw CallFailed({remote::Status::timed_out,
                      std::string(call + std::strspn(call, "_")) + ": the time was up"});
  throw CallFailed(result.error());
}

/// Works on the node's objects without the GIL. Raises EndedError if the node has ended.
template <class Work>
auto while_running(NodeState& node, const Work& work) {
  const nb::gil_scoped_release others_run;
  try {
    return work();
  } catch (const Error&) {
    if (node.engine()->is_running()) throw;
    throw CallFailed(node.engine()->why_stopped());
  }
}

/// Goes on once the call has ended, and leaves the result where it is: the loop's thread may be
/// about to cancel the call, so that none but this thread may let it go.
template <class T>
struct Ended {
  Future<T>& future;
  [[nodiscard]] bool await_ready() const noexcept { return future.await_ready(); }
  void await_suspend(std::coroutine_handle<> waiter) const { future.await_suspend(waiter); }
  void await_resume() const noexcept {}
};

template <class T, class Convert>
class WaitingCall final : public Waiting {
 public:
  WaitingCall(std::shared_ptr<Completions> completions, Begun<T, Convert> begun, nb::object future)
      : completions_(std::move(completions)),
        begun_(std::move(begun)),
        future_(std::move(future)) {}
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;
  ~WaitingCall() override {
    if (!std::exchange(*is_under_way_, false)) return;
    const nb::gil_scoped_release others_run;  // the loop has closed, and takes no results
    give_up(begun_);
  }
  /// Without the GIL.
  static Detached watch(WaitingCall* call) {
    Ended<T> end{call->begun_.future};
    co_await end;
    // The list does not own itself: the node has it, until the node has ended.
    const std::shared_ptr<Completions> completions = std::move(call->completions_);
    completions->push(call);
  }
  void settle() override {
    *is_under_way_ = false;
    Result<T> result = begun_.future.await_resume();
    if (nb::cast<bool>(future_.attr("done")())) {
      const nb::gil_scoped_release others_run;
      return give_back(begun_, result);
    }
    try {
      if (result) {
        future_.attr("set_result")(begun_.convert(std::move(*result)));
      } else {
        future_.attr("set_exception")(exception_of(result.error()));
      }
    } catch (nb::python_error& error) {
      future_.attr("set_exception")(error.value());
    } catch (const CallFailed& error) {
      future_.attr("set_exception")(exception_of(error.failure()));
    }
  }
  /// If the awaiting task is cancelled, the call is given up.
  void follow_cancellation() {
    future_.attr("add_done_callback")(
        nb::cpp_function([call = this, is_under_way = is_under_way_](nb::handle future) {
          if (!*is_under_way || !nb::cast<bool>(future.attr("cancelled")())) return;
          const nb::gil_scoped_release others_run;
          call->begun_.future.cancel();
        }));
  }

 private:
  std::shared_ptr<Completions> completions_;
  Begun<T, Convert> begun_;
  nb::object future_;
  // With the GIL; the callback may outlive the call.
  std::shared_ptr<bool> is_under_way_ = std::make_shared<bool>(true);
};

/// The call as an awaitable of the running event loop.
template <class T, class Convert>
nb::object awaitable(NodeState& node, Begun<T, Convert> begun) {
  if (begun.future.ready()) {
    try {
      return make_ready(wait_for(std::move(begun)));
    } catch (const CallFailed& failed) {
      return make_failed(exception_of(failed.failure()));
    }
  }
  const std::shared_ptr<Completions>& completions = node.completions();
  nb::object future = completions->make_future();
  using Call = WaitingCall<T, Convert>;
  auto call = std::make_unique<Call>(completions, std::move(begun), future);
  call->follow_cancellation();
  {
    const nb::gil_scoped_release others_run;
    Call::watch(call.release());
  }
  return future;
}

/// The face of a handle whose calls are awaited.
template <class Handle>
struct Awaited {
  nb::object kept;  // the handle's Python object
  Handle& handle;
};

/// Text that Python keeps a pointer to.
inline const char* kept_text(std::string text) {
  static auto* const kTexts = new std::deque<std::string>;
  return kTexts->emplace_back(std::move(text)).c_str();
}

namespace detail {
template <class L>
struct MethodOf;
template <class L, class R, class H, class... Arguments>
struct MethodOf<R (L::*)(H&, Arguments...) const> {
  template <class Begin, class... Extra>
  static void bind(nb::class_<H>& waits, nb::class_<Awaited<H>>& awaits, const char* name,
                   const Begin& begin, const std::string& arguments, const std::string& returns,
                   const Extra&... extra) {
    const std::string head = std::string("def ") + name + "(" + arguments + ") -> ";
    waits.def(
        name,
        [begin](H& handle, Arguments... its) {
          return wait_for(begin(handle, std::forward<Arguments>(its)...));
        },
        nb::sig(kept_text(head + returns)), extra...);
    awaits.def(
        name,
        [begin](Awaited<H>& face, Arguments... its) {
          return awaitable(*face.handle.state, begin(face.handle, std::forward<Arguments>(its)...));
        },
        nb::sig(kept_text(head + "Awaitable[" + returns + "]")), extra...);
  }
};
template <class L>
struct TimedMethodOf;
template <class L, class R, class H, class... Arguments>
struct TimedMethodOf<R (L::*)(H&, Arguments...) const> {
  template <class Begin, class... Extra>
  static void bind(nb::class_<H>& waits, nb::class_<Awaited<H>>& awaits, const char* name,
                   const Begin& begin, const std::string& arguments, const std::string& returns,
                   std::optional<double> timeout, const char* text, const Extra&... extra) {
    const std::string head = std::string("def ") + name + "(" + arguments;
    const std::string otherwise = timeout ? "float | None = 0.0" : "float | None = None";
    waits.def(
        name,
        [begin, name](H& handle, Arguments... its, std::optional<double> seconds) {
          const std::uint64_t timeout_ns = nanoseconds(seconds, remote::kForever);
          return wait_for(begin(handle, std::forward<Arguments>(its)...), timeout_ns, name);
        },
        nb::sig(kept_text(head + ", timeout: " + otherwise + ") -> " + returns)), extra...,
        nb::arg("timeout").none() = timeout, text);
    awaits.def(
        name,
        [begin](Awaited<H>& face, Arguments... its) {
          return awaitable(*face.handle.state, begin(face.handle, std::forward<Arguments>(its)...));
        },
        nb::sig(kept_text(head + ") -> Awaitable[" + returns + "]")), extra..., text);
  }
};
}  // namespace detail

/// Two classes: `NAME`, whose methods wait, and `AsyncNAME`, whose methods are awaited, which the
/// first one's `aio` gives. A Handle has a member `state`, the NodeState.
template <class Handle>
class BoundHandle {
 public:
  BoundHandle(nb::module_& module, const char* name, const char* text)
      : waits(module, name, nb::is_weak_referenceable(), text),
        awaits(module, kept_text(std::string("Async") + name),
               kept_text(std::string("The calls of a ") + name + " as awaitables of asyncio.")) {
    waits.def_prop_ro(
        "aio",
        [](nb::handle_t<Handle> self) {
          return Awaited<Handle>{nb::borrow(self), nb::cast<Handle&>(self)};
        },
        "The calls as awaitables: `await handle.aio.call(...)`.");
    refuse_pickling(waits);
    refuse_pickling(awaits);
  }
  /// Binds a call with a timeout: the method that waits takes one, with this default. In asyncio,
  /// asyncio.timeout() limits a wait. `begin(handle, arguments...)` begins the call.
  template <class Begin, class... Extra>
  void timed_call(const char* name, const Begin& begin, const std::string& arguments,
                  const std::string& returns, std::optional<double> timeout, const char* text,
                  const Extra&... extra) {
    detail::TimedMethodOf<decltype(&Begin::operator())>::bind(waits, awaits, name, begin, arguments,
                                                              returns, timeout, text, extra...);
  }
  /// `begin(handle, arguments...)` begins the call, and returns Begun.
  template <class Begin, class... Extra>
  void call(const char* name, const Begin& begin, const std::string& arguments,
            const std::string& returns, const Extra&... extra) {
    detail::MethodOf<decltype(&Begin::operator())>::bind(waits, awaits, name, begin, arguments,
                                                         returns, extra...);
  }
  template <class Class>
  static void refuse_pickling(Class& its) {
    its.def("__reduce_ex__", [](nb::handle self, int) -> nb::object {
      throw nb::type_error(
          (std::string(nb::inst_name(self).c_str()) +
           " cannot be pickled: it belongs to this process's membership. Another "
           "process calls dunlin.join() itself, and asks its own node for the name")
              .c_str());
    });
  }

  nb::class_<Handle> waits;
  nb::class_<Awaited<Handle>> awaits;
};

/// Begins a call without the GIL.
template <class Begin>
auto begin_without_gil(const Begin& begin) {
  const nb::gil_scoped_release others_run;
  return begin();
}

}  // namespace dunlin::python
