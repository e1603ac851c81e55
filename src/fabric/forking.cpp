#include "fabric/forking.hpp"

#include <mutex>
#include <set>

#include <pthread.h>

namespace dunlin {

/// Holds the lock while the process forks, so that the child finds the set whole.
struct ForkHandlers {
  /// The object is never destroyed: a process may fork while it ends.
  static ForkHandlers& of_this_process() {
    static ForkHandlers& handlers = *new ForkHandlers;
    return handlers;
  }
  ForkHandlers() {
    pthread_atfork(
        [] {
          of_this_process().mutex.lock();
          tell_all(&ForkAware::before_fork);
        },
        [] {
          tell_all(&ForkAware::in_parent);
          of_this_process().mutex.unlock();
        },
        [] {
          tell_all(&ForkAware::in_child);
          of_this_process().mutex.unlock();
        });
  }
  static void tell_all(void (ForkAware::*what)() noexcept) noexcept {
    for (ForkAware* const one : of_this_process().all) (one->*what)();
  }
  std::mutex mutex;
  std::set<ForkAware*> all;
};

ForkAware::ForkAware() {
  ForkHandlers& handlers = ForkHandlers::of_this_process();
  const std::scoped_lock lock(handlers.mutex);
  handlers.all.insert(this);
}

ForkAware::~ForkAware() { pass_by_forks(); }

void ForkAware::pass_by_forks() noexcept {
  ForkHandlers& handlers = ForkHandlers::of_this_process();
  const std::scoped_lock lock(handlers.mutex);
  handlers.all.erase(this);
}

}  // namespace dunlin
