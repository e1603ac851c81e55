#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

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
namespace dunlin::container {

struct QueueSpec {
  std::string name;
  std::uint32_t element_bytes = 0;
  std::uint32_t capacity = 0;
  Rank host = 0;
  Style style = Style::automatic;
  bool checked = false;  // whether promises are checked
};

struct QueueState;
struct Reservation;
class QueueCore;

class QueueOperation : public ContainerOperation {
 public:
  /// How many elements were pushed or popped.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// How often a call that waits has found no room, or no element.
  [[nodiscard]] std::uint32_t vain_attempts() const noexcept { return vain_attempts_; }

 protected:
  explicit QueueOperation(QueueCore& queue) noexcept;
  /// Begins a push that waits up to `wait_ns` for room; 0: it ends `full` at once.
  void begin_push(std::uint32_t count, Promise promise, Style style,
                  std::uint64_t wait_ns = 0) noexcept;
  /// Begins a pop of up to `most` elements that waits up to `wait_ns` for one; 0: it ends `empty`
  /// at once.
  void begin_pop(std::uint32_t most, Promise promise, Style style,
                 std::uint64_t wait_ns = 0) noexcept;
  /// Ends the call at once with that status. Requires that it is not under way.
  void refuse(remote::Status status) noexcept;
  /// Sets the memory of the operation: `elements` are pushed from it, or popped to it; `image` has
  /// room for as many slots, and begins on a cache line. Both belong to the derived class.
  void use(std::byte* elements, std::span<std::byte> image) noexcept {
    elements_ = elements;
    image_ = image;
  }

 private:
  friend struct QueueState;
  enum class Stage : std::uint8_t {
    choose,
    ask,
    asked,
    look,  // reads head and tail
    looked,
    reserve,  // reserves tickets
    reserved,
    room,  // waits for room, with tickets
    fill,
    get,  // reads the slots at the head
    got,
    take,
    taken,
    rest,  // backoff between two attempts of a call that waits
    done
  };
  void begin(bool pushes, std::uint32_t count, Promise promise, Style style,
             std::uint64_t wait_ns) noexcept;
  /// Whether the call has waited as long as it may.
  [[nodiscard]] bool expired() const noexcept;
  void advance() noexcept override;
  void clean_up() noexcept override;
  void replied(remote::Status status, bool flag,
               std::span<const std::byte> content) noexcept override;

  QueueState& queue_;
  std::byte* elements_ = nullptr;
  std::span<std::byte> image_;
  bool pushes_ = false;
  Promise promise_ = Promise::both;
  Style style_ = Style::automatic;
  Stage stage_ = Stage::done;
  bool has_tickets_ = false;
  bool skips_ = false;  // whether a pop skips marks
  std::uint32_t wanted_ = 0;
  std::uint32_t count_ = 0;
  std::uint64_t ticket_ = 0;  // the first ticket
  std::uint64_t before_ = 0;
  std::uint64_t known_tail_ = 0;     // the tail when head and tail were read
  std::uint32_t asked_for_ = 0;      // elements that the last request asked for
  std::uint64_t wait_until_ns_ = 0;  // 0: the call does not wait
  std::uint32_t vain_attempts_ = 0;
  Stage after_rest_ = Stage::done;
  Reservation* reservation_ = nullptr;
  std::uint64_t ends_[kCacheLineBytes / 8 + 1] = {};  // the tail, and one line further the head
  /// The call before this one in the list of those that hold tickets, or are about to.
  QueueOperation* before_this_ = nullptr;
  QueueOperation* after_this_ = nullptr;
  bool listed_ = false;
};

class QueueCore {
 public:
  /// Throws Error.
  QueueCore(Containers& containers, const QueueSpec& spec);
  ~QueueCore();
  QueueCore(const QueueCore&) = delete;
  QueueCore& operator=(const QueueCore&) = delete;

  [[nodiscard]] Containers& containers() const noexcept;
  [[nodiscard]] Rank host() const noexcept;
  [[nodiscard]] std::uint32_t element_bytes() const noexcept;
  /// How many elements the queue has: exactly at the host; elsewhere as far as this process knows.
  [[nodiscard]] std::uint64_t size() const noexcept;

 private:
  friend class QueueOperation;
  std::unique_ptr<QueueState> state_;
};

}  // namespace dunlin::container
