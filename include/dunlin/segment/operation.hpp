#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <dunlin/remote/in_flight.hpp>
#include <dunlin/remote/lock.hpp>
#include <dunlin/segment/spec.hpp>

namespace dunlin {

class SegmentPort;
class SegmentSpace;

/// One call of a SegmentSpace under way: poll until finished(), wait(), co_await it, or attach a
/// callback with then(). It stays where it is made, and its space outlives it. Its destruction
/// abandons the call.
///
///     dunlin::Outcome got = space.get(key, buffer).outcome();   // waits
///     auto put = space.put(key, buffer);                        // goes on by itself
class SegmentOperation final : public remote::InFlight {
 public:
  /// Makes an operation that is not under way, for SegmentSpace::get(operation, ...) and put: many
  /// times.
  explicit SegmentOperation(SegmentSpace& space) noexcept;
  ~SegmentOperation() override { abandon(); }

  /// Waits for the end, and returns how the operation ended.
  Outcome outcome(std::uint64_t timeout_ns = remote::kForever) {
    wait(timeout_ns);
    return result();
  }
  /// How the operation ended; `under_way` if it has not.
  [[nodiscard]] Outcome result() const noexcept;
  [[nodiscard]] Outcome await_resume() const noexcept { return result(); }
  /// A sentence with operation, key, place and reason.
  [[nodiscard]] std::string describe() const;

 private:
  friend class SegmentPort;
  friend class SegmentSpace;
  friend struct SegmentState;
  friend struct SegmentAccess;
  enum class Kind : std::uint8_t { none, allocate, release, find, get, put, lock, unlock };
  enum class Stage : std::uint8_t;
  /// The caller's request.
  struct Request {
    Kind kind = Kind::none;
    Key key = {};
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::uint64_t offset = 0;
    std::uint64_t known_version = UINT64_MAX;
    std::uint64_t wanted_version = UINT64_MAX;  // for delta
    bool try_only = false;
    std::uint64_t timeout_ns = remote::kForever;
    Coherence coherence = Coherence::null;  // for allocate
    std::uint64_t stale_ns = 0;
    std::uint32_t versions = 0;
    std::uint32_t copies = 1;
    Rank place = 0;
    std::uint64_t owner = 0;   // for locks: 0: this process; else an attached one
    bool holder_died = false;  // for unlock
  };

  SegmentOperation(SegmentSpace& space, const Request& request, std::string name = {});
  void start_as(const Request& request) noexcept;
  void reset(const Request& request) noexcept;
  void advance() noexcept override;
  void clean_up() noexcept override;

  SegmentSpace& space_;
  Request request_;
  Stage stage_{};
  bool using_ = false;       // whether it is counted among the segment's users
  bool locked_ = false;      // whether it holds the lock, its own or the process's
  bool odd_ = false;         // whether an earlier put was cut off
  bool changing_ = false;    // whether a put has begun and is not complete
  std::uint8_t posted_ = 0;  // the put's next step
  std::uint8_t torn_ = 0;    // attempts to get without a lock that found torn bytes
  remote::LockNode node_;
  std::uint64_t id_ = 0;  // a request to another member; 0 once it is answered
  Rank asked_ = 0;
  remote::Status answer_ = remote::Status::ok;
  std::string name_;         // for allocate, find and release
  bool using_name_ = false;  // whether the name is being bound or unbound
  std::uint64_t posted_at_ns_ = 0;
  std::uint64_t first_word_ = 0;  // the version words that were read
  std::uint64_t second_word_ = 0;
  std::uint64_t data_version_ = 0;  // delta: the version that is read or written
  std::uint64_t final_word_ = 0;    // the version's word once the put is complete; 0: not known yet
  std::uint64_t low_word_ = 0;  // for the second copy: its version's word before the put, and after
  std::uint64_t high_word_ = 0;
  std::uint64_t placement_ = 0;  // the segment's, when the present attempt began
  Rank second_ = 0;              // the put's second copy, when it began; UINT32_MAX: none
  std::uint64_t second_offset_ = 0;
  std::uint32_t searched_ = 0;  // members that were asked for the segment's present holder
  std::uint64_t search_generation_ = 0;
  bool in_turn_ = false;  // whether it has the turn among the operations under its lock
  Outcome outcome_;
};

/// The bytes of a value, to get into or to put from.
template <class T>
[[nodiscard]] std::span<std::byte> bytes_of(T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>, "a segment holds plain bytes");
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace dunlin
