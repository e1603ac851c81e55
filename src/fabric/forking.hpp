#pragma once

#include <mutex>

/// A child that a member forks has the member's objects, but is no member.
namespace dunlin {

/// An object that a forked child must not use as its parent does. Before each fork before_fork() is
/// called, then in_parent() in the parent and in_child() in the child, before fork() returns there.
/// They may use nothing but this object's memory and system calls. Any thread may make and destroy
/// such objects.
class ForkAware {
 public:
  virtual ~ForkAware();
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;
  // An object under construction has nothing yet.
  virtual void before_fork() noexcept {}
  virtual void in_parent() noexcept {}
  virtual void in_child() noexcept {}

 protected:
  ForkAware();
  /// From here on forks pass this object by: for a destructor, before it gives something back.
  void pass_by_forks() noexcept;
};

/// A lock of the whole process. A process forks only while no thread holds it, so the child, which
/// has no other thread, finds it free. Who holds it must not make or destroy a ForkAware, nor wait
/// for long.
class ForkMutex final : private ForkAware {
 public:
  void lock() { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  void before_fork() noexcept override { mutex_.lock(); }
  void in_parent() noexcept override { mutex_.unlock(); }
  void in_child() noexcept override { mutex_.unlock(); }

  std::mutex mutex_;
};

}  // namespace dunlin
