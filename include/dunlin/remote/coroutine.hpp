#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include <dunlin/error.hpp>

/// A Job is a coroutine that awaits operations in flight, and other jobs. It runs in the call that
/// makes it up to its first operation that is not finished at once, and from there on inside
/// Progress::poll().
///
///     dunlin::remote::Job move_server(dunlin::SegmentSpace& space, dunlin::Key from) {
///       std::uint64_t load = 0;
///       const auto seen = co_await space.get(from, dunlin::bytes_of(load));
///       if (load > kMost) co_await unload(space, from);   // another Job
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

  class Awaiting;
  /// Awaits the end of this job for another one, and rethrows the exception that ended it. This job
  /// must stay where it is meanwhile. Throws Error if another coroutine awaits it already.
  [[nodiscard]] Awaiting operator co_await() const noexcept;

 private:
  explicit Job(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

struct Job::Promise {
  /// Goes on with the job that awaits this one.
  struct End {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[nodiscard]] std::coroutine_handle<> await_suspend(Handle ended) const noexcept {
      if (const std::coroutine_handle<> next = ended.promise().waiter) return next;
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  Job get_return_object() noexcept { return Job(Handle::from_promise(*this)); }
  std::suspend_never initial_suspend() noexcept { return {}; }
  End final_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure = std::current_exception(); }
  std::exception_ptr failure;
  std::coroutine_handle<> waiter;  // the job that awaits this one
};

class Job::Awaiting {
 public:
  explicit Awaiting(const Job& job) noexcept : job_(job) {}
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;
  ~Awaiting() {
    if (waits_) job_.handle_.promise().waiter = nullptr;
  }
  [[nodiscard]] bool await_ready() const noexcept { return job_.finished(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    if (job_.handle_.promise().waiter)
      throw Error("remote: another coroutine awaits this job already");
    job_.handle_.promise().waiter = waiter;
    waits_ = true;
  }
  void await_resume() const { job_.check(); }

 private:
  const Job& job_;
  bool waits_ = false;
};

inline Job::~Job() {
  if (handle_) handle_.destroy();
}
inline bool Job::finished() const noexcept { return !handle_ || handle_.done(); }
inline void Job::check() const {
  if (handle_ && handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
}

inline Job::Awaiting Job::operator co_await() const noexcept { return Awaiting(*this); }

}  // namespace dunlin::remote
