#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/container/map_core.hpp>

namespace dunlin {

/// Bytes that two equal values have in common: no padding, and no -0.0 beside 0.0.
template <class K>
concept PlainKey = std::is_trivially_copyable_v<K> && std::has_unique_object_representations_v<K>;

struct MapOptions {
  std::string name;         // the same at all members
  std::uint32_t slots = 0;  // of each member's part; some 1.3 for each key that it will hold
  Style style = Style::automatic;
  bool checked = false;  // find calls that break a promise: slow, for tests of programs
};

namespace container {

struct Nothing {};
/// What calls can add to.
template <class V>
concept Addable = std::is_unsigned_v<V> &&(sizeof(V) == 4 || sizeof(V) == 8);
template <class V>
inline constexpr std::uint32_t kBytesOf = std::is_same_v<V, Nothing>
                                              ? 0
                                              : static_cast<std::uint32_t>(sizeof(V));

/// A call on a map, with room for its key and value.
template <class K, class V>
class TypedMapOperation final : public MapOperation {
  static constexpr std::size_t kPayload = sizeof(K) + kBytesOf<V>;

 public:
  explicit TypedMapOperation(MapCore& map) noexcept : MapOperation(map) {
    use(payload_.data(), window_);
  }
  TypedMapOperation(MapCore& map, MapCall call, const K& key, const V* value, Promise promise,
                    Style style) noexcept
      : TypedMapOperation(map) {
    run(call, key, value, promise, style);
  }
  ~TypedMapOperation() override { abandon(); }

  /// Waits for the end.
  TypedMapOperation& outcome(std::uint64_t timeout_ns = remote::kForever) {
    wait(timeout_ns);
    return *this;
  }
  /// Of a find or insert that found the key.
  [[nodiscard]] V value() const noexcept {
    V value{};
    if constexpr (kBytesOf < V >> 0) std::memcpy(&value, payload_.data() + sizeof(K), sizeof(V));
    return value;
  }
  /// An insert that found no such key.
  [[nodiscard]] bool inserted() const noexcept { return ok() && !found(); }
  TypedMapOperation& await_resume() noexcept { return *this; }

  void run(MapCall call, const K& key, const V* value, Promise promise, Style style) noexcept {
    abandon();
    std::memcpy(payload_.data(), &key, sizeof(K));
    if constexpr (kBytesOf < V >> 0)
      if (value != nullptr) std::memcpy(payload_.data() + sizeof(K), value, sizeof(V));
    begin(call, promise, style);
  }

 private:
  alignas(8) std::array<std::byte, kPayload> payload_;
  alignas(kCacheLineBytes) std::array<
      std::byte, std::max<std::size_t>(kProbeBytes, shape_of(kPayload).slot_bytes)> window_;
};

}  // namespace container

/// A HashMap is a map that is spread over the members by the hash of its keys; each uses all of it.
/// One thread uses it, the one that polls.
///
///     dunlin::HashMap<std::uint64_t, double> prices(containers, {.name = "prices", .slots =
///     1000}); prices.insert(7, 1.5).wait(); auto found = prices.find(7);                      //
///     under way if (found.outcome().found()) use(found.value());  // waits
template <PlainKey K, class V>
class HashMap {
  static_assert(std::is_trivially_copyable_v<V>, "a map holds plain bytes");

 public:
  using Operation = container::TypedMapOperation<K, V>;

  /// Does not wait for the other members; throws Error.
  HashMap(Containers& containers, const MapOptions& options)
      : core_(containers, {.name = options.name,
                           .key_bytes = sizeof(K),
                           .value_bytes = container::kBytesOf<V>,
                           .slots = options.slots,
                           .style = options.style,
                           .checked = options.checked}) {}

  /// Changes nothing if the key is there: then it is found(), with its value.
  [[nodiscard]] Operation insert(const K& key, const V& value, Promise promise = Promise::both,
                                 Style style = Style::automatic) {
    return begun(container::MapCall::insert, key, &value, promise, style);
  }
  /// Inserts, or writes the value in place.
  [[nodiscard]] Operation assign(const K& key, const V& value, Promise promise = Promise::both,
                                 Style style = Style::automatic) {
    return begun(container::MapCall::assign, key, &value, promise, style);
  }
  /// Adds to the value of an unsigned integer in place, or inserts it; value() is the sum. With
  /// half_written, nobody knows what was there: `assign` mends that.
  [[nodiscard]] Operation add(const K& key, const V& value, Promise promise = Promise::both,
                              Style style = Style::automatic) requires container::Addable<V> {
    return begun(container::MapCall::add, key, &value, promise, style);
  }
  [[nodiscard]] Operation find(const K& key, Promise promise = Promise::both,
                               Style style = Style::automatic) {
    return begun(container::MapCall::find, key, nullptr, promise, style);
  }
  [[nodiscard]] Operation erase(const K& key, Promise promise = Promise::both,
                                Style style = Style::automatic) {
    return begun(container::MapCall::erase, key, nullptr, promise, style);
  }

  /// The same with an operation of the caller's, which is not under way: many times.
  [[nodiscard]] Operation operation() { return Operation(core_); }
  void insert(Operation& op, const K& key, const V& value, Promise promise = Promise::both,
              Style style = Style::automatic) noexcept {
    op.run(container::MapCall::insert, key, &value, promise, style);
  }
  void assign(Operation& op, const K& key, const V& value, Promise promise = Promise::both,
              Style style = Style::automatic) noexcept {
    op.run(container::MapCall::assign, key, &value, promise, style);
  }
  void add(Operation& op, const K& key, const V& value, Promise promise = Promise::both,
           Style style = Style::automatic) noexcept requires container::Addable<V> {
    op.run(container::MapCall::add, key, &value, promise, style);
  }
  void find(Operation& op, const K& key, Promise promise = Promise::both,
            Style style = Style::automatic) noexcept {
    op.run(container::MapCall::find, key, nullptr, promise, style);
  }
  void erase(Operation& op, const K& key, Promise promise = Promise::both,
             Style style = Style::automatic) noexcept {
    op.run(container::MapCall::erase, key, nullptr, promise, style);
  }

  /// Inserts all, with many under way at once; waits. The first error, or ok; the rest is inserted
  /// in any case.
  remote::Status insert_many(std::span<const std::pair<K, V>> elements,
                             Promise promise = Promise::both, Style style = Style::automatic) {
    if (!many_) many_ = std::make_unique<Many>(core_);
    remote::Status status = remote::Status::ok;
    std::size_t turn = 0;
    const auto finish = [&](Operation& op) {
      if (!op.finished()) op.wait();
      if (status == remote::Status::ok) status = op.status();
    };
    for (const auto& [key, value] : elements) {
      Operation& op = (*many_)[turn++ % Many::kUnderWay];
      if (turn > Many::kUnderWay) finish(op);
      insert(op, key, value, promise, style);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(turn, Many::kUnderWay); ++i)
      finish((*many_)[i]);
    return status;
  }

  /// Calls `see(key, value)` for the elements of this member's part.
  template <class See>
  void for_each_local(const See& see) const {
    core_.for_each_local([&](const std::byte* key, const std::byte* value) {
      K k;
      V v;
      std::memcpy(&k, key, sizeof k);
      std::memcpy(&v, value, container::kBytesOf<V>);
      see(k, v);
    });
  }
  [[nodiscard]] Rank home_of(const K& key) const noexcept { return core_.home_of(&key); }
  [[nodiscard]] container::MapUse local_use() const noexcept { return core_.local_use(); }
  [[nodiscard]] container::MapCore& core() noexcept { return core_; }
  std::size_t poll() { return core_.containers().poll(); }

 private:
  /// Operations of insert_many.
  class Many {
   public:
    static constexpr std::size_t kUnderWay = 32;
    explicit Many(container::MapCore& core) {
      for (auto& op : operations_) op = std::make_unique<Operation>(core);
    }
    Operation& operator[](std::size_t i) { return *operations_[i]; }

   private:
    std::array<std::unique_ptr<Operation>, kUnderWay> operations_;
  };

  /// Made where it stays, as it cannot be moved.
  Operation begun(container::MapCall call, const K& key, const V* value, Promise promise,
                  Style style) {
    return Operation(core_, call, key, value, promise, style);
  }

  container::MapCore core_;
  std::unique_ptr<Many> many_;
};

/// A Set is a HashMap without values.
template <PlainKey K>
class Set {
 public:
  using Operation = container::TypedMapOperation<K, container::Nothing>;

  Set(Containers& containers, const MapOptions& options) : map_(containers, options) {}

  [[nodiscard]] Operation insert(const K& key, Promise promise = Promise::both,
                                 Style style = Style::automatic) {
    return map_.insert(key, {}, promise, style);
  }
  /// Whether it is there says found().
  [[nodiscard]] Operation contains(const K& key, Promise promise = Promise::both,
                                   Style style = Style::automatic) {
    return map_.find(key, promise, style);
  }
  [[nodiscard]] Operation erase(const K& key, Promise promise = Promise::both,
                                Style style = Style::automatic) {
    return map_.erase(key, promise, style);
  }
  template <class See>
  void for_each_local(const See& see) const {
    map_.for_each_local([&](const K& key, container::Nothing) { see(key); });
  }
  [[nodiscard]] container::MapUse local_use() const noexcept { return map_.local_use(); }
  std::size_t poll() { return map_.poll(); }

 private:
  HashMap<K, container::Nothing> map_;
};

}  // namespace dunlin
