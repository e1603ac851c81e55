#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <dunlin/remote.hpp>
#include <dunlin/store/key.hpp>

namespace dunlin {

class Store;

namespace store {
struct CallMemory;
struct State;
}  // namespace store

/// A time to live is in nanoseconds from now on, by the clock of the member that holds the key.
inline constexpr std::uint64_t kNoExpiry = UINT64_MAX;        // the key stays until it is erased
inline constexpr std::uint64_t kKeepExpiry = UINT64_MAX - 1;  // keeps it; kNoExpiry for a new key

/// The decision of the caller of Store::update() about a key.
struct StoreUpdate {
  enum class Action : std::uint8_t { keep, put, erase };
  Action action = Action::keep;
  /// The new value; its bytes must stay until the function's next call, or the operation's end.
  std::span<const std::byte> value = {};
  std::uint64_t ttl_ns = kKeepExpiry;

  [[nodiscard]] static StoreUpdate keep() noexcept { return {}; }
  [[nodiscard]] static StoreUpdate put(std::span<const std::byte> value,
                                       std::uint64_t ttl_ns = kKeepExpiry) noexcept {
    return {Action::put, value, ttl_ns};
  }
  [[nodiscard]] static StoreUpdate put(std::string_view value,
                                       std::uint64_t ttl_ns = kKeepExpiry) noexcept {
    return put(std::as_bytes(std::span(value)), ttl_ns);
  }
  [[nodiscard]] static StoreUpdate erase() noexcept { return {.action = Action::erase}; }
};

/// Decides what update() does. Called under the key's lock, in Progress::poll() or in the call that
/// starts the operation, at least once unless the operation fails; the argument is nothing if the
/// key is absent. It must not throw, and must not call the store.
using StoreUpdater = std::function<StoreUpdate(std::optional<std::span<const std::byte>> current)>;

namespace store {

/// Gives the memory of a call back to its store.
struct GiveBack {
  State* state = nullptr;
  void operator()(CallMemory* memory) const noexcept;
};
using HeldMemory = std::unique_ptr<CallMemory, GiveBack>;

/// The result of a call, and the memory in which its key and value are.
struct CallResult {
  remote::Status status = remote::Status::ok;
  bool found = false;
  bool changed = false;
  std::uint32_t round_trips = 0;
  std::uint32_t bucket_reads = 0;
  std::uint32_t entry_reads = 0;
  std::uint64_t version = 0;
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t keys = 0;
  std::span<const std::byte> value = {};
  HeldMemory memory = {};
};

}  // namespace store

/// One call of a Store under way: poll until finished(), wait(), co_await it, or attach a callback
/// with then(). It may be moved, and its store outlives it. Destroyed, it is given up: a change has
/// then happened as a whole, or not.
///
/// How it ends: `ok`, `lost` (the key's member has failed), `no_room` (its memory is full), `full`
/// (its index is), `out_of_range` (a key or value over its limit), `refused` (the member's store
/// has another layout), `stopped`, `timed_out`, `abandoned`.
class StoreOperation final : public remote::BasicCall<store::CallResult> {
 public:
  /// Makes an operation that is not under way, and has ended with `ok`.
  StoreOperation() = default;

  /// Waits until the call ends.
  StoreOperation& outcome(std::uint64_t timeout_ns = remote::kForever) {
    wait(timeout_ns);
    return *this;
  }

  /// Whether the key was there when the call took effect.
  [[nodiscard]] bool found() const noexcept { return result().found; }
  /// Whether the call has changed, inserted, or erased the key.
  [[nodiscard]] bool changed() const noexcept { return result().changed; }
  /// The value that a get has read, or that an insert, replace, compare_and_set or update has
  /// found. The bytes stay as long as this object, and move with it.
  [[nodiscard]] std::span<const std::byte> value() const noexcept { return result().value; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(value().data()), value().size()};
  }
  /// The version that the key has now; 0: it is absent. Each change of a key gives it a higher one,
  /// and a key that was erased and is inserted again has a version that it never had.
  [[nodiscard]] std::uint64_t version() const noexcept { return result().version; }
  /// How long the key has to live, if it is there; kNoExpiry: forever.
  [[nodiscard]] std::uint64_t ttl_ns() const noexcept { return result().ttl_ns; }
  /// The key, once the call has ended by itself.
  [[nodiscard]] std::span<const std::byte> key() const noexcept;
  /// The result of a count: how many keys the members have.
  [[nodiscard]] std::uint64_t keys() const noexcept { return result().keys; }
  /// How many batches it has posted; each is one round trip if the fabric is not full.
  [[nodiscard]] std::uint32_t round_trips() const noexcept { return result().round_trips; }
  /// How many reads of buckets, and of entries, it has made.
  [[nodiscard]] std::uint32_t bucket_reads() const noexcept { return result().bucket_reads; }
  [[nodiscard]] std::uint32_t entry_reads() const noexcept { return result().entry_reads; }

  /// `co_await` of an operation that is a variable gives that variable; of one that is made in the
  /// expression, the operation itself.
  template <class Result>
  class AwaitingIt final : public remote::AwaitingCall {
   public:
    explicit AwaitingIt(StoreOperation& operation) noexcept : AwaitingCall(operation) {}
    [[nodiscard]] Result await_resume() const noexcept {
      return static_cast<Result&&>(static_cast<StoreOperation&>(*call_));
    }
  };
  [[nodiscard]] auto operator co_await() & noexcept { return AwaitingIt<StoreOperation&>(*this); }
  [[nodiscard]] auto operator co_await() && noexcept { return AwaitingIt<StoreOperation>(*this); }

 private:
  friend struct store::State;
  using BasicCall::BasicCall;
};

}  // namespace dunlin
