#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dunlin/container/queue_core.hpp>

namespace dunlin {

struct QueueOptions {
  std::string name;            // the same at all members
  std::uint32_t capacity = 0;  // elements
  Rank host = 0;               // in whose memory it is
  Style style = Style::automatic;
  bool checked = false;  // find calls that break a promise: slow, for tests of programs
};

namespace container {

/// A call on a queue, with room for one element.
template <class T>
class TypedQueueOperation final : public QueueOperation {
 public:
  explicit TypedQueueOperation(QueueCore& queue) noexcept : QueueOperation(queue) {
    use(element_.data(), image_);
  }
  TypedQueueOperation(QueueCore& queue, const T* element, Promise promise, Style style) noexcept
      : TypedQueueOperation(queue) {
    run(element, promise, style);
  }
  ~TypedQueueOperation() override { abandon(); }

  /// Waits for the end.
  TypedQueueOperation& outcome(std::uint64_t timeout_ns = remote::kForever) {
    wait(timeout_ns);
    return *this;
  }
  /// A pop that has an element.
  [[nodiscard]] bool found() const noexcept { return ok() && count() > 0; }
  [[nodiscard]] T value() const noexcept {
    T value;
    std::memcpy(&value, element_.data(), sizeof(T));
    return value;
  }
  TypedQueueOperation& await_resume() noexcept { return *this; }

  /// Pushes the element, or pops one if there is none.
  void run(const T* element, Promise promise, Style style) noexcept {
    abandon();
    if (element == nullptr) return begin_pop(1, promise, style);
    std::memcpy(element_.data(), element, sizeof(T));
    begin_push(1, promise, style);
  }

 private:
  alignas(8) std::array<std::byte, sizeof(T)> element_;
  alignas(kCacheLineBytes) std::array<std::byte, shape_of(sizeof(T)).slot_bytes> image_;
};

/// A call on a queue, with room for many elements, which it allocates when it is made.
class BulkQueueOperation final : public QueueOperation {
 public:
  BulkQueueOperation(QueueCore& queue, std::size_t element_bytes, std::uint32_t most)
      : QueueOperation(queue),
        elements_(element_bytes * most),
        lines_(std::max<std::size_t>(
            (std::size_t{shape_of(element_bytes).slot_bytes} * most + kCacheLineBytes - 1) /
                kCacheLineBytes,
            1)) {
    use(elements_.data(), std::as_writable_bytes(std::span(lines_)));
  }
  ~BulkQueueOperation() override { abandon(); }

  void push(const void* elements, std::uint32_t count, Promise promise, Style style) noexcept {
    abandon();
    std::memcpy(elements_.data(), elements, elements_.size());
    begin_push(count, promise, style);
  }
  void pop(std::uint32_t most, Promise promise, Style style) noexcept {
    begin_pop(most, promise, style);
  }
  [[nodiscard]] const std::byte* elements() const noexcept { return elements_.data(); }

 private:
  struct alignas(kCacheLineBytes) Line {
    std::array<std::byte, kCacheLineBytes> bytes;
  };
  std::vector<std::byte> elements_;
  std::vector<Line> lines_;
};

}  // namespace container

/// A Queue is in the memory of one member, its host; all push and pop. First in, first out. One
/// thread uses it, the one that polls.
///
///     dunlin::Queue<Task> tasks(containers, {.name = "tasks", .capacity = 1024, .host = 0});
///     if (tasks.push(task).outcome().status() == dunlin::remote::Status::full) later(task);
///     auto next = tasks.pop();
///     if (next.outcome().found()) work_on(next.value());
template <class T>
class Queue {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                "a queue holds plain bytes");

 public:
  using Operation = container::TypedQueueOperation<T>;

  /// Does not wait for the other members; throws Error.
  Queue(Containers& containers, const QueueOptions& options)
      : core_(containers, {.name = options.name,
                           .element_bytes = sizeof(T),
                           .capacity = options.capacity,
                           .host = options.host,
                           .style = options.style,
                           .checked = options.checked}) {}

  /// Ends `full` if there is no room.
  [[nodiscard]] Operation push(const T& element, Promise promise = Promise::both,
                               Style style = Style::automatic) {
    return Operation(core_, &element, promise, style);
  }
  /// Ends `empty` if there is no element.
  [[nodiscard]] Operation pop(Promise promise = Promise::both, Style style = Style::automatic) {
    return Operation(core_, nullptr, promise, style);
  }
  /// The same with an operation of the caller's, which is not under way: many times.
  [[nodiscard]] Operation operation() { return Operation(core_); }
  void push(Operation& op, const T& element, Promise promise = Promise::both,
            Style style = Style::automatic) noexcept {
    op.run(&element, promise, style);
  }
  void pop(Operation& op, Promise promise = Promise::both,
           Style style = Style::automatic) noexcept {
    op.run(nullptr, promise, style);
  }

  /// Pushes all, one behind the other, or none; waits.
  remote::Status push_many(std::span<const T> elements, Promise promise = Promise::both,
                           Style style = Style::automatic) {
    container::BulkQueueOperation op(core_, sizeof(T), static_cast<std::uint32_t>(elements.size()));
    op.push(elements.data(), static_cast<std::uint32_t>(elements.size()), promise, style);
    return op.wait();
  }
  /// Pops up to `to.size()`; waits. How many, says `count`.
  remote::Status pop_many(std::span<T> to, std::size_t& count, Promise promise = Promise::both,
                          Style style = Style::automatic) {
    container::BulkQueueOperation op(core_, sizeof(T), static_cast<std::uint32_t>(to.size()));
    op.pop(static_cast<std::uint32_t>(to.size()), promise, style);
    const remote::Status status = op.wait();
    count = op.ok() ? op.count() : 0;
    if (count > 0) std::memcpy(to.data(), op.elements(), count * sizeof(T));
    return status;
  }

  [[nodiscard]] Rank host() const noexcept { return core_.host(); }
  [[nodiscard]] std::uint64_t size() const noexcept { return core_.size(); }
  [[nodiscard]] container::QueueCore& core() noexcept { return core_; }
  std::size_t poll() { return core_.containers().poll(); }

 private:
  container::QueueCore core_;
};

}  // namespace dunlin
