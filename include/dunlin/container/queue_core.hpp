#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <dunlin/container/call_memory.hpp>
#include <dunlin/container/containers.hpp>
#include <dunlin/container/slot.hpp>

/// A QueueCore is a queue of plain bytes in the memory of one member, its host; Queue is a typed
/// view of it. One thread uses it, the one that polls.
///
/// Invariants (docs/container.md explains and proves them):
///  CON-Q1  Elements leave in the order of their tickets, each at most once.
///  CON-Q2  No slot is written before the head has passed its former ticket.
///  CON-Q3  Each ticket is used: by its element, or by a mark that pops skip.
///  CON-Q5  A call that waits and ends `timed_out` has pushed or popped nothing.
///  CON-Q6  A call that waits posts nothing between two attempts, for 0.5 us at first and then for
///          up to 128 us.
///  CON-Q4  `empty` means that head and tail were equal at some moment of the call; `full` means
///          that they were `capacity` apart, marks included.
///  CON-Q7  Of the tickets that pops under Promise::reads or local take, each one below the tail is
///          taken once, and its element is read before its slot gets another one. Those beyond the
///          tail are given back before the pop ends.
///  CON-Q8  Behind a death, nothing is pushed before the head is at the tail or below it for good.
namespace dunlin::container {

struct QueueSpec {
  std::string name;
  std::uint32_t element_bytes = 0;
  std::uint32_t capacity = 0;
  Rank host = 0;
  Style style = Style::automatic;
  bool checked = false;  // whether promises are checked
};

/// How a call on a queue is to be done.
struct QueueTerms {
  Promise promise = Promise::both;
  Style style = Style::automatic;
  std::uint64_t wait_ns = 0;  // how long it waits for room, or for an element
};

/// How a call on a queue has ended.
struct QueueOutcome {
  remote::Status status = remote::Status::ok;
  std::uint32_t count = 0;          // elements pushed or popped
  std::uint32_t vain_attempts = 0;  // how often a call that waits found no room, or no element
  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
};

/// How a pop has ended, and its elements.
struct PoppedElements : QueueOutcome {
  std::uint32_t element_bytes = 0;
  const std::byte* elements = nullptr;
  CallMemory memory = {};  // that has them
};

struct QueueState;

class QueueCore {
 public:
  /// Throws Error.
  QueueCore(Containers& containers, const QueueSpec& spec);
  ~QueueCore();
  QueueCore(const QueueCore&) = delete;
  QueueCore& operator=(const QueueCore&) = delete;

  [[nodiscard]] Containers& containers() const noexcept { return containers_; }
  [[nodiscard]] remote::Progress& progress() const noexcept { return progress_; }
  [[nodiscard]] Rank host() const noexcept;
  [[nodiscard]] std::uint32_t element_bytes() const noexcept { return element_bytes_; }
  /// A whole push of all elements, or of none, if it needs no round trip and meets no other call;
  /// else `under_way`, and nothing is done.
  [[nodiscard]] remote::Status push_at_once(const std::byte* elements, std::uint32_t count,
                                            const QueueTerms& terms) noexcept;
  /// A whole pop of up to `count` elements, and how many it had; else as above.
  [[nodiscard]] remote::Status pop_at_once(std::byte* to, std::uint32_t& count,
                                           const QueueTerms& terms) noexcept;
  /// The protocol of any push, of all elements or of none, and of any pop.
  [[nodiscard]] remote::Protocol<PoppedElements> push(const std::byte* elements,
                                                      std::uint32_t count, const QueueTerms& terms);
  [[nodiscard]] remote::Protocol<PoppedElements> pop(std::uint32_t most, const QueueTerms& terms);
  /// How many elements the queue has: exactly at the host; elsewhere as far as this process knows.
  [[nodiscard]] std::uint64_t size() const noexcept;

 private:
  Containers& containers_;
  remote::Progress& progress_;
  std::uint32_t element_bytes_;
  std::unique_ptr<QueueState> state_;
};

}  // namespace dunlin::container
