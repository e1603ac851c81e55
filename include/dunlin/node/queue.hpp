#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dunlin/container/queue.hpp>
#include <dunlin/node/calls.hpp>

/// A Queue of a node, for any thread (container/queue.hpp says what a queue is).
///
///     auto tasks = node.queue<Task>("tasks", {.capacity = 1024});
///     if (!tasks.push(task).get()) later(task);                // full
///     while (const std::optional<Task> next = tasks.pop().get()) work_on(*next);
namespace dunlin {

template <class T>
class QueueHandle {
 public:
  QueueHandle(std::shared_ptr<node::Engine> engine, const std::string& name, QueueOptions options)
      : engine_(std::move(engine)) {
    options.name = name;
    object_ = engine_->with_lock([&] {
      return engine_->template object<Object>("queue '" + name + "'", [&] {
        return std::make_shared<Object>(engine_->containers(), options);
      });
    });
  }

  /// False: the queue has had no room for `wait_ns`.
  Future<bool> push(const T& element, std::uint64_t wait_ns = 0) {
    return call<bool>(
        "push", [element, wait_ns](Queue<T>& queue) { return queue.push_wait(element, wait_ns); },
        [](const container::QueueOutcome&) { return true; }, false);
  }
  /// Nothing: the queue has had no element for `wait_ns`.
  [[nodiscard]] Future<std::optional<T>> pop(std::uint64_t wait_ns = 0) {
    return call<std::optional<T>>(
        "pop", [wait_ns](Queue<T>& queue) { return queue.pop_wait(wait_ns); },
        [](const Popped<T>& popped) { return std::optional<T>(popped.value()); },
        std::optional<T>());
  }

 private:
  class Object final : public node::NodeObject {
   public:
    Object(Containers& containers, const QueueOptions& options)
        : who_("queue '" + options.name + "'"), queue_(std::in_place, containers, options) {}
    [[nodiscard]] const std::string& who() const noexcept { return who_; }
    [[nodiscard]] Queue<T>& queue() noexcept { return *queue_; }
    void end() noexcept override { queue_.reset(); }

   private:
    std::string who_;
    std::optional<Queue<T>> queue_;
  };

  template <class R, class Begin, class Take>
  Future<R> call(const char* name, Begin begin, Take take, R in_vain) {
    return node::begin_call<R>(
        *engine_, name, false, [&] { return begin(object_->queue()); },
        [&] { return [object = object_.get(), begin] { return begin(object->queue()); }; },
        [object = object_.get(), name, take, in_vain](const auto& outcome) -> Result<R> {
          using remote::Status;
          if (outcome.status == Status::full || outcome.status == Status::empty ||
              outcome.status == Status::timed_out)
            return Result<R>(in_vain);
          if (outcome.status != Status::ok)
            return node::failure_of(object->who(), name, outcome.status, "queue");
          return Result<R>(take(outcome));
        });
  }

  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<Object> object_;
};

}  // namespace dunlin
