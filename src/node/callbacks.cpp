#include "node/callbacks.hpp"

#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "fabric/forking.hpp"
#include "node/state.hpp"

/// Where the program's callbacks run, and what becomes of what they throw (NODE-5).
namespace dunlin::node {
namespace {

/// The nodes of this process, for futures of calls that had ended when they were begun.
struct AllNodes {
  ForkMutex mutex;
  std::map<std::uint64_t, std::weak_ptr<Engine>> by_number;
  std::uint64_t last_number = 0;
};
AllNodes& all_nodes() {
  static auto* const kNodes = new AllNodes;  // outlives them
  return *kNodes;
}

/// Prints the exception that the caller handles.
void print_exception(const std::string& who) noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%sa callback threw: %s\n", who.c_str(), error.what());
  } catch (...) {
    std::fprintf(stderr, "%sa callback threw something that is no std::exception\n", who.c_str());
  }
}

/// Calls a callback, and does not throw.
using Caller = std::function<void(const std::function<void()>& callback)>;

/// Calls a callback in this thread, one behind the other: a callback that makes calls which end at
/// once would else call itself.
void call_here(const Caller& call, std::function<void()> callback) {
  static thread_local std::deque<std::function<void()>>* pending = nullptr;
  if (pending != nullptr) return pending->push_back(std::move(callback));
  std::deque<std::function<void()>> own;
  own.push_back(std::move(callback));
  pending = &own;
  while (!own.empty()) {
    const std::function<void()> next = std::move(own.front());
    own.pop_front();
    call(next);
  }
  pending = nullptr;
}

}  // namespace

std::uint64_t register_node(const std::shared_ptr<Engine>& engine) {
  AllNodes& nodes = all_nodes();
  const std::lock_guard lock(nodes.mutex);
  nodes.by_number.emplace(++nodes.last_number, engine);
  return nodes.last_number;
}

void unregister_node(std::uint64_t number) noexcept {
  AllNodes& nodes = all_nodes();
  const std::lock_guard lock(nodes.mutex);
  nodes.by_number.erase(number);
}

void execute_on(std::uint64_t node, std::function<void()> work) {
  std::shared_ptr<Engine> engine;
  {
    AllNodes& nodes = all_nodes();
    const std::lock_guard lock(nodes.mutex);
    const auto found = nodes.by_number.find(node);
    if (found != nodes.by_number.end()) engine = found->second.lock();
  }
  if (engine) return engine->execute(std::move(work));
  const Caller call = [](const std::function<void()>& callback) {
    try {
      callback();
    } catch (...) {
      print_exception("a node that has ended: ");
    }
  };
  call_here(call, std::move(work));
}

void throw_used_up() {
  throw Error("node: this future is used up: get(), result(), then() or co_await took its result");
}

void Engine::execute(std::function<void()> work) noexcept {
  if (!is_forked()) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->no_more_callbacks) {
      state_->callbacks.push_back(std::exchange(work, nullptr));
      state_->some_callbacks.store(true, std::memory_order_relaxed);
    }
  }
  if (work)
    return call_here([this](const std::function<void()>& one) { call_back(one); }, std::move(work));
  if (!on_node_thread()) wake_if_asleep();
}

/// Gives callbacks to the program's executor, or calls them. Requires that this thread does not
/// hold the lock.
void Engine::do_callbacks(std::deque<std::function<void()>> work) noexcept {
  for (auto& one : work) {
    if (has_executor_)
      call_back([&] { state_->executor(std::move(one)); });
    else
      call_back(one);
  }
}

/// Releases the lock for the callbacks that have come.
void Engine::run_callbacks() noexcept {
  std::deque<std::function<void()>> work;
  {
    const std::lock_guard lock(state_->mutex);
    work.swap(state_->callbacks);
    state_->some_callbacks.store(false, std::memory_order_relaxed);
  }
  release_lock();
  do_callbacks(std::move(work));
  take_lock();
}

void Engine::tell(const std::string& news) noexcept {
  call_back([&] {
    if (state_->on_news) return state_->on_news(state_->who + news);
    std::fprintf(stderr, "%s%s\n", state_->who.c_str(), news.c_str());
  });
}

void Engine::tell_exception() noexcept {
  try {
    if (state_->on_exception) return state_->on_exception(std::current_exception());
  } catch (...) {
    return print_exception(state_->who);  // what the program's handler threw
  }
  print_exception(state_->who);
}

void Engine::tell_view() {
  if (state_->on_view)
    execute([handler = state_->on_view, view = state_->group->view()] { handler(view); });
}

}  // namespace dunlin::node
