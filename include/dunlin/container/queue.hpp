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
#include <dunlin/container/trait.hpp>

namespace dunlin {

struct QueueOptions {
  std::string name;            // the same at all members
  std::uint32_t capacity = 0;  // elements
  Rank host = 0;               // the member whose memory has the queue
  Style style = Style::automatic;
  std::uint32_t element_bytes = 0;  // most bytes of an element, if its size varies
  bool checked = false;             // find calls that break a promise: slow, for tests of programs
};

namespace container {

/// Memory in the operation for an element and its slot.
template <class T>
class QueueRoom {
 public:
  explicit QueueRoom(std::uint32_t) noexcept {}
  [[nodiscard]] std::byte* element() noexcept { return element_.data(); }
  [[nodiscard]] const std::byte* element() const noexcept { return element_.data(); }
  [[nodiscard]] std::span<std::byte> image() noexcept { return image_; }
  [[nodiscard]] static constexpr std::uint32_t bytes() noexcept { return packed_bytes<T>(0); }

 private:
  alignas(8) std::array<std::byte, packed_bytes<T>(0)> element_;
  alignas(kCacheLineBytes) std::array<std::byte, shape_of(packed_bytes<T>(0)).slot_bytes> image_;
};

/// On the heap: memory for an element whose size only the queue's options say.
template <VariableSize T>
class QueueRoom<T> {
 public:
  explicit QueueRoom(std::uint32_t bytes)
      : element_(bytes), image_(lines_for(shape_of(bytes).slot_bytes)) {}
  [[nodiscard]] std::byte* element() noexcept { return element_.data(); }
  [[nodiscard]] const std::byte* element() const noexcept { return element_.data(); }
  [[nodiscard]] std::span<std::byte> image() noexcept {
    return std::as_writable_bytes(std::span(image_));
  }
  [[nodiscard]] std::uint32_t bytes() const noexcept {
    return static_cast<std::uint32_t>(element_.size());
  }

 private:
  std::vector<std::byte> element_;
  std::vector<CacheLine> image_;
};

/// A call on a queue, with room for one element.
template <class T>
class TypedQueueOperation final : public QueueOperation {
 public:
  explicit TypedQueueOperation(QueueCore& queue) noexcept
      : QueueOperation(queue), room_(queue.element_bytes()) {
    use(room_.element(), room_.image());
  }
  TypedQueueOperation(QueueCore& queue, const T* element, Promise promise, Style style,
                      std::uint64_t wait_ns = 0) noexcept
      : TypedQueueOperation(queue) {
    run(element, promise, style, wait_ns);
  }
  ~TypedQueueOperation() override { abandon(); }

  /// Waits until the call ends.
  TypedQueueOperation& outcome(std::uint64_t timeout_ns = remote::kForever) {
    wait(timeout_ns);
    return *this;
  }
  /// Whether the call was a pop, and has an element.
  [[nodiscard]] bool found() const noexcept { return ok() && count() > 0; }
  [[nodiscard]] T value() const noexcept(!VariableSize<T>) {
    return unpack<T>(room_.element(), room_.bytes());
  }
  TypedQueueOperation& await_resume() noexcept { return *this; }

  /// Pushes the element; pops if `element` is null.
  void run(const T* element, Promise promise, Style style, std::uint64_t wait_ns = 0) noexcept {
    abandon();
    if (element == nullptr) return begin_pop(1, promise, style, wait_ns);
    if (!pack(*element, room_.element(), room_.bytes())) return refuse(remote::Status::too_long);
    begin_push(1, promise, style, wait_ns);
  }

 private:
  QueueRoom<T> room_;
};

/// A call on a queue, with room for many elements, which it allocates when it is made.
class BulkQueueOperation final : public QueueOperation {
 public:
  BulkQueueOperation(QueueCore& queue, std::size_t element_bytes, std::uint32_t most)
      : QueueOperation(queue),
        elements_(element_bytes * most),
        lines_(lines_for(std::size_t{shape_of(element_bytes).slot_bytes} * most)) {
    use(elements_.data(), std::as_writable_bytes(std::span(lines_)));
  }
  ~BulkQueueOperation() override { abandon(); }

  /// Pushes the first `count` of elements().
  void push(std::uint32_t count, Promise promise, Style style) noexcept {
    begin_push(count, promise, style);
  }
  void pop(std::uint32_t most, Promise promise, Style style) noexcept {
    begin_pop(most, promise, style);
  }
  [[nodiscard]] std::byte* elements() noexcept { return elements_.data(); }

 private:
  std::vector<std::byte> elements_;
  std::vector<CacheLine> lines_;
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
  static_assert(Containable<T> && std::is_default_constructible_v<T>,
                "a queue's elements are trivially copyable, or have a ContainerTrait");

 public:
  using Operation = container::TypedQueueOperation<T>;

  /// Does not wait for the other members; throws Error.
  Queue(Containers& containers, const QueueOptions& options)
      : core_(containers, {.name = options.name,
                           .element_bytes = container::packed_bytes<T>(container::checked_most(
                               "queue '" + options.name + "'", "element_bytes", VariableSize<T>,
                               options.element_bytes)),
                           .capacity = options.capacity,
                           .host = options.host,
                           .style = options.style,
                           .checked = options.checked}) {}

  /// Pushes an element; ends `full` if there is no room.
  [[nodiscard]] Operation push(const T& element, Promise promise = Promise::both,
                               Style style = Style::automatic) {
    return Operation(core_, &element, promise, style);
  }
  /// Pops an element; ends `empty` if there is none.
  [[nodiscard]] Operation pop(Promise promise = Promise::both, Style style = Style::automatic) {
    return Operation(core_, nullptr, promise, style);
  }
  /// Pushes, and waits up to `wait_ns` for room, in flight; ends `timed_out` if there was none.
  [[nodiscard]] Operation push_wait(const T& element, std::uint64_t wait_ns = remote::kForever,
                                    Promise promise = Promise::both,
                                    Style style = Style::automatic) {
    return Operation(core_, &element, promise, style, wait_ns);
  }
  /// Pops, and waits up to `wait_ns` for an element, in flight; ends `timed_out` if there was none.
  [[nodiscard]] Operation pop_wait(std::uint64_t wait_ns = remote::kForever,
                                   Promise promise = Promise::both,
                                   Style style = Style::automatic) {
    return Operation(core_, nullptr, promise, style, wait_ns);
  }
  /// An operation of the caller's for many calls; each of the functions below needs one that is not
  /// under way.
  [[nodiscard]] Operation operation() { return Operation(core_); }
  void push(Operation& op, const T& element, Promise promise = Promise::both,
            Style style = Style::automatic) noexcept {
    op.run(&element, promise, style);
  }
  void pop(Operation& op, Promise promise = Promise::both,
           Style style = Style::automatic) noexcept {
    op.run(nullptr, promise, style);
  }

  void push_wait(Operation& op, const T& element, std::uint64_t wait_ns = remote::kForever,
                 Promise promise = Promise::both, Style style = Style::automatic) noexcept {
    op.run(&element, promise, style, wait_ns);
  }
  void pop_wait(Operation& op, std::uint64_t wait_ns = remote::kForever,
                Promise promise = Promise::both, Style style = Style::automatic) noexcept {
    op.run(nullptr, promise, style, wait_ns);
  }

  /// Pushes all elements, one behind the other, or none; waits.
  remote::Status push_many(std::span<const T> elements, Promise promise = Promise::both,
                           Style style = Style::automatic) {
    const std::uint32_t bytes = core_.element_bytes();
    container::BulkQueueOperation op(core_, bytes, static_cast<std::uint32_t>(elements.size()));
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (!container::pack(elements[i], op.elements() + i * bytes, bytes))
        return remote::Status::too_long;
    op.push(static_cast<std::uint32_t>(elements.size()), promise, style);
    return op.wait();
  }
  /// Pops up to `to.size()` elements, and waits. `count` says how many.
  remote::Status pop_many(std::span<T> to, std::size_t& count, Promise promise = Promise::both,
                          Style style = Style::automatic) {
    const std::uint32_t bytes = core_.element_bytes();
    container::BulkQueueOperation op(core_, bytes, static_cast<std::uint32_t>(to.size()));
    op.pop(static_cast<std::uint32_t>(to.size()), promise, style);
    const remote::Status status = op.wait();
    count = op.ok() ? op.count() : 0;
    for (std::size_t i = 0; i < count; ++i)
      to[i] = container::unpack<T>(op.elements() + i * bytes, bytes);
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
