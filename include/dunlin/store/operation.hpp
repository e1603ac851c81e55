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
struct State;
struct Work;
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

/// One call of a Store under way: poll until finished(), wait(), co_await it, or attach a callback
/// with then(). It stays where it is made, its store outlives it, and it can be used again once it
/// has ended. Destroyed, it is abandoned: a change has then happened as a whole, or not.
///
/// How it ends: `ok`, `lost` (the key's member has failed), `no_room` (its memory is full), `full`
/// (its index is), `out_of_range` (a key or value over its limit), `refused` (the member's store
/// has another layout), `stopped`, `timed_out`, `abandoned`.
class StoreOperation final : public remote::InFlight {
 public:
  /// Makes an operation that is not under way, for the Store's calls with an operation of the
  /// caller's.
  explicit StoreOperation(Store& store) noexcept;
  ~StoreOperation() override;

  /// Waits until the call ends.
  StoreOperation& outcome(std::uint64_t timeout_ns = remote::kForever) {
    wait(timeout_ns);
    return *this;
  }
  StoreOperation& await_resume() noexcept { return *this; }

  /// Whether the key was there when the call took effect.
  [[nodiscard]] bool found() const noexcept { return found_; }
  /// Whether the call has changed, inserted, or erased the key.
  [[nodiscard]] bool changed() const noexcept { return changed_; }
  /// The value that a get has read, or that an insert, replace, compare_and_set or update has
  /// found. The bytes stay until the operation is used again.
  [[nodiscard]] std::span<const std::byte> value() const noexcept { return {value_, value_bytes_}; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(value_), value_bytes_};
  }
  /// The version that the key has now; 0: it is absent. Each change of a key gives it a higher one,
  /// and a key that was erased and is inserted again has a version that it never had.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// How long the key has to live, if it is there; kNoExpiry: forever.
  [[nodiscard]] std::uint64_t ttl_ns() const noexcept { return ttl_ns_; }
  [[nodiscard]] std::span<const std::byte> key() const noexcept;
  /// The result of a count: how many keys the members have.
  [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
  /// How many batches it has posted so far; each is one round trip if the fabric is not full.
  [[nodiscard]] std::uint32_t round_trips() const noexcept { return round_trips_; }
  /// How many reads of buckets, and of entries, it has made.
  [[nodiscard]] std::uint32_t bucket_reads() const noexcept { return bucket_reads_; }
  [[nodiscard]] std::uint32_t entry_reads() const noexcept { return entry_reads_; }

 private:
  friend class Store;
  friend struct store::State;

  /// Begins the call in its constructor, because an operation stays where it is made.
  template <class Begin>
  StoreOperation(Store& store, const Begin& begin) : StoreOperation(store) {
    begin(*this);
  }
  void advance() noexcept override;
  void clean_up() noexcept override;

  store::State& store_;
  std::unique_ptr<store::Work> work_;
  bool found_ = false;
  bool changed_ = false;
  std::uint32_t round_trips_ = 0;
  std::uint32_t bucket_reads_ = 0;
  std::uint32_t entry_reads_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t ttl_ns_ = kNoExpiry;
  std::uint64_t keys_ = 0;
  const std::byte* value_ = nullptr;
  std::size_t value_bytes_ = 0;
};

}  // namespace dunlin
