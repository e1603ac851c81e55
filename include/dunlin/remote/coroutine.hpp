#pragma once

#include <coroutine>
#include <exception>
#include <utility>

/// A Job is a coroutine that awaits operations in flight. It runs in the call that makes it up to
/// its first operation that is not finished at once, and from there on inside Progress::poll().
///
///     dunlin::remote::Job move_server(dunlin::SegmentSpace& space, dunlin::Key from) {
///       std::uint64_t load = 0;
///       const auto seen = co_await space.get(from, dunlin::bytes_of(load));
///       ...
///     }
namespace dunlin::remote {

class [[nodiscard]] Job {
 public:
  struct Promise;
  using promise_type = Promise;  // the name that the language requires
  using Handle = std::coroutine_handle<Promise>;

  Job(Job&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Job& operator=(Job&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  /// Ends the coroutine where it waits, and abandons the operation that it awaits.
  ~Job();

  [[nodiscard]] bool finished() const noexcept;
  /// Rethrows the exception that ended the coroutine, if any.
  void check() const;

 private:
  explicit Job(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

struct Job::Promise {
  Job get_return_object() noexcept { return Job(Handle::from_promise(*this)); }
  std::suspend_never initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure = std::current_exception(); }
  std::exception_ptr failure;
};

inline Job::~Job() {
  if (handle_) handle_.destroy();
}
inline bool Job::finished() const noexcept { return !handle_ || handle_.done(); }
inline void Job::check() const {
  if (handle_ && handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
}

}  // namespace dunlin::remote
