#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dunlin/container/queue_core.hpp>
#include <dunlin/container/trait.hpp>

namespace dunlin {

struct QueueOptions {
  std::string name = {};       // the same at all members
  std::uint32_t capacity = 0;  // elements
  Rank host = 0;               // the member whose memory has the queue
  Style style = Style::automatic;
  std::uint32_t element_bytes = 0;  // most bytes of an element, if its size varies
  bool checked = false;             // find calls that break a promise: slow, for tests of programs
};

namespace container {

/// Memory for an element, as a slot has it.
template <class T>
using QueuePayload = std::array<std::byte, VariableSize<T> ? kMaxElementBytes : packed_bytes<T>(0)>;

}  // namespace container

/// How a pop has ended, and its element.
template <class T>
class Popped : public container::QueueOutcome {
 public:
  Popped() = default;
  /// `element` is null if it has none.
  Popped(remote::Status its_status, const std::byte* element, std::uint32_t element_bytes) {
    status = its_status;
    if (element == nullptr) return;
    count = 1;
    value_ = container::unpack<T>(element, element_bytes);
  }
  explicit Popped(const container::PoppedElements& all)
      : Popped(all.status, all.ok() && all.count > 0 ? all.elements : nullptr, all.element_bytes) {
    vain_attempts = all.vain_attempts;
  }

  /// Whether it has an element.
  [[nodiscard]] bool found() const noexcept { return ok() && count > 0; }
  [[nodiscard]] const T& value() const noexcept { return value_; }

 private:
  T value_{};
};

/// A Queue is in the memory of one member, its host; all push and pop. First in, first out. One
/// thread uses it, the one that polls.
///
///     dunlin::Queue<Task> tasks(containers, {.name = "tasks", .capacity = 1024, .host = 0});
///     if (tasks.push(task).wait() == dunlin::remote::Status::full) later(task);
///     const auto next = tasks.pop().outcome();   // waits
///     if (next.found()) work_on(next.value());
template <class T>
class Queue {
  static_assert(Containable<T> && std::is_default_constructible_v<T>,
                "a queue's elements are trivially copyable, or have a ContainerTrait");

 public:
  using Push = remote::Call<container::QueueOutcome>;
  using Pop = remote::Call<Popped<T>>;

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
  [[nodiscard]] Push push(const T& element, Promise promise = Promise::both,
                          Style style = Style::automatic) {
    return push_wait(element, 0, promise, style);
  }
  /// Pops an element; ends `empty` if there is none.
  [[nodiscard]] Pop pop(Promise promise = Promise::both, Style style = Style::automatic) {
    return pop_wait(0, promise, style);
  }
  /// Pushes, and waits up to `wait_ns` for room, in flight; ends `timed_out` if there was none.
  [[nodiscard]] Push push_wait(const T& element, std::uint64_t wait_ns = remote::kForever,
                               Promise promise = Promise::both, Style style = Style::automatic) {
    alignas(8) container::QueuePayload<T> payload;
    if (!container::pack(element, payload.data(), core_.element_bytes()))
      return {core_.progress(), {.status = remote::Status::too_long}};
    return push_all(payload.data(), 1, {promise, style, wait_ns});
  }
  /// Pops, and waits up to `wait_ns` for an element, in flight; ends `timed_out` if there was none.
  [[nodiscard]] Pop pop_wait(std::uint64_t wait_ns = remote::kForever,
                             Promise promise = Promise::both, Style style = Style::automatic) {
    const container::QueueTerms terms{promise, style, wait_ns};
    alignas(8) container::QueuePayload<T> payload;
    std::uint32_t count = 1;
    const remote::Status status = core_.pop_at_once(payload.data(), count, terms);
    if (status == remote::Status::under_way) return {core_.progress(), core_.pop(1, terms)};
    const bool has_one = status == remote::Status::ok && count > 0;
    try {
      return {core_.progress(),
              Popped<T>(status, has_one ? payload.data() : nullptr, core_.element_bytes())};
    } catch (const std::bad_alloc&) {  // for an element of variable size
      return {core_.progress(), Popped<T>(remote::Status::no_memory, nullptr, 0)};
    }
  }

  /// Pushes all elements, one behind the other, or none; waits. A queue whose option is
  /// Style::message takes as many at a time as a message holds: if it ends with an error, some may
  /// have been pushed.
  remote::Status push_many(std::span<const T> elements, Promise promise = Promise::both,
                           Style style = Style::automatic) {
    std::size_t pushed = 0;
    return push_many(elements, pushed, promise, style);
  }
  /// As above; `pushed` says how many were pushed, from the first on.
  remote::Status push_many(std::span<const T> elements, std::size_t& pushed,
                           Promise promise = Promise::both, Style style = Style::automatic) {
    pushed = 0;
    if (elements.size() > kMaxSlots) return remote::Status::out_of_range;
    const auto count = static_cast<std::uint32_t>(elements.size());
    const container::QueueTerms terms{promise, style};
    if constexpr (VariableSize<T>) {
      const std::uint32_t bytes = core_.element_bytes();
      std::vector<std::byte> packed(elements.size() * bytes);
      for (std::size_t i = 0; i < elements.size(); ++i)
        if (!container::pack(elements[i], packed.data() + i * bytes, bytes))
          return remote::Status::too_long;
      return end_of(push_all(packed.data(), count, terms), pushed);
    } else {
      return end_of(push_all(std::as_bytes(elements).data(), count, terms), pushed);
    }
  }
  /// Pops up to `to.size()` elements, and waits. `count` says how many; the rest of `to` may have
  /// been written, too.
  remote::Status pop_many(std::span<T> to, std::size_t& count, Promise promise = Promise::both,
                          Style style = Style::automatic) {
    auto some = static_cast<std::uint32_t>(std::min<std::size_t>(to.size(), kMaxSlots));
    const container::QueueTerms terms{promise, style};
    const std::uint32_t bytes = core_.element_bytes();
    std::vector<std::byte> packed(VariableSize<T> ? std::size_t{some} * bytes : 0);
    std::byte* at = packed.data();
    if constexpr (!VariableSize<T>) at = std::as_writable_bytes(to).data();
    const std::byte* elements = at;
    remote::Call<container::PoppedElements> call;
    const remote::Status at_once = core_.pop_at_once(at, some, terms);
    const bool done = at_once != remote::Status::under_way;
    if (done)
      call = {core_.progress(), container::PoppedElements{{at_once, some}}};
    else
      call = {core_.progress(), core_.pop(some, terms)};
    const remote::Status status = call.wait();
    count = call.ok() ? call.result().count : 0;
    if (!done) elements = call.result().elements;
    if (VariableSize<T> || !done)
      for (std::size_t i = 0; i < count; ++i)
        to[i] = container::unpack<T>(elements + i * bytes, bytes);
    return status;
  }

  [[nodiscard]] Rank host() const noexcept { return core_.host(); }
  [[nodiscard]] std::uint64_t size() const noexcept { return core_.size(); }
  std::size_t poll() { return core_.containers().poll(); }

 private:
  // What a call says in the end is made here, where it stays in registers: a processor waits for a
  // struct that is written field by field and read as a whole.
  [[nodiscard]] Push push_all(const std::byte* elements, std::uint32_t count,
                              const container::QueueTerms& terms) {
    const remote::Status status = core_.push_at_once(elements, count, terms);
    if (status == remote::Status::under_way)
      return {core_.progress(), core_.push(elements, count, terms)};
    return {core_.progress(), {status, status == remote::Status::ok ? count : 0}};
  }

  [[nodiscard]] static remote::Status end_of(Push call, std::size_t& pushed) {
    const remote::Status status = call.wait();
    pushed = call.result().count;
    return status;
  }

  container::QueueCore core_;
};

}  // namespace dunlin
