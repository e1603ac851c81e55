#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/container/map_core.hpp>
#include <dunlin/container/map_scan.hpp>
#include <dunlin/container/pooled_value.hpp>
#include <dunlin/container/trait.hpp>

namespace dunlin {

struct MapOptions {
  std::string name = {};    // the same at all members
  std::uint32_t slots = 0;  // in each member's part; some 1.3 for each key that it will hold
  Style style = Style::automatic;
  /// Most bytes of a key, and of a value, if their sizes vary (ContainerTrait). A slot has room for
  /// as many, unless the map has a pool.
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;  // see key_bytes
  bool checked = false;           // find calls that break a promise: slow, for tests of programs
  std::uint32_t grow_to = 0;      // a part grows up to so many slots; 0: it does not grow
  std::size_t pool_bytes = 0;     // each member's pool, for values too long for a slot
  /// With a pool: bytes of a value for which a slot has room; 0: what the slot's lines leave.
  std::uint32_t inline_bytes = 0;
  /// Half the memory for keys of 8 bytes and values of up to 4, and faster changes of values; but
  /// the slot of an erased key stays that key's. docs/container.md: Packed slots.
  bool packed = false;
};

namespace container {

/// Types to which calls can add.
template <class V>
concept Addable = std::is_unsigned_v<V> &&(sizeof(V) == 4 || sizeof(V) == 8);
template <class V>
inline constexpr std::uint32_t kBytesOf = packed_bytes<V>(0);

/// Memory for a key and, behind it, its value, as a slot has them.
template <class K, class V>
using MapPayload =
    std::array<std::byte,
               VariableSize<K> || VariableSize<V> ? kMaxElementBytes : kBytesOf<K> + kBytesOf<V>>;

}  // namespace container

template <class V>
class Updated;
template <class K, class V, class... A>
class Update;

/// How a call on a map has ended, and what it found.
template <class V>
class Found {
 public:
  Found() = default;
  explicit Found(remote::Status its_status) noexcept : status(its_status) {}
  Found(const container::MapApplied& applied, std::span<const std::byte> value)
      : Found(applied.status(), applied.found(), 0) {
    if (!value.empty()) set_value(value);
  }
  explicit Found(const container::MapResult& result)
      : Found(result.status, result.found, result.round_trips) {
    if (!result.value.empty()) set_value(result.value);
  }
  explicit Found(container::PooledResult&& result) noexcept requires VariableSize<V>
      : Found(result.status, result.found, result.round_trips) {
    value_ = std::move(result.value);
  }

  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
  /// Whether the key was there when the call took effect.
  [[nodiscard]] bool found() const noexcept { return found_; }
  /// Whether an insert added the key, because the map had no such key.
  [[nodiscard]] bool inserted() const noexcept { return ok() && !found_; }
  /// The value that a find or insert found with the key, or the sum of an add.
  [[nodiscard]] V value() const noexcept(!VariableSize<V>) {
    if constexpr (VariableSize<V>)
      return ContainerTrait<V>::value(value_);
    else
      return container::unpack<V>(value_.data(), container::kBytesOf<V>);
  }
  /// How many round trips the call has taken, of any kind.
  [[nodiscard]] std::uint32_t round_trips() const noexcept { return round_trips_; }

  remote::Status status = remote::Status::ok;

 private:
  Found(remote::Status its_status, bool found, std::uint32_t round_trips) noexcept
      : status(its_status), found_(found), round_trips_(round_trips) {}
  void set_value(std::span<const std::byte> value) {
    if constexpr (VariableSize<V>)
      value = container::value_in(value.data(), static_cast<std::uint32_t>(value.size()));
    if constexpr (VariableSize<V>)
      value_.assign(value.begin(), value.end());
    else
      std::copy_n(value.begin(), value_.size(), value_.begin());
  }

  bool found_ = false;
  std::uint32_t round_trips_ = 0;
  std::conditional_t<VariableSize<V>, std::vector<std::byte>,
                     std::array<std::byte, container::kBytesOf<V>>>
      value_{};
};

/// A HashMap is a map that is spread over the members by the hash of its keys; each uses all of it.
/// One thread uses it, the one that polls.
///
///     dunlin::HashMap<std::uint64_t, double> prices(
///         containers, {.name = "prices", .slots = 1000});
///     prices.insert(7, 1.5).wait();
///     auto found = prices.find(7);                             // under way
///     if (found.outcome().found()) use(found.result().value());   // outcome() waits
template <ContainerKey K, class V>
class HashMap {
  static_assert(Containable<V>, "a map's values are trivially copyable, or have a ContainerTrait");

 public:
  using Operation = remote::Call<Found<V>>;
  using Scan = container::TypedMapScan<K, V>;

  /// Does not wait for the other members; throws Error.
  HashMap(Containers& containers, const MapOptions& options)
      : core_(containers, spec_of(options)) {}

  /// Adds the key. If the map has the key already, changes nothing: found() is true then, and
  /// value() is its value.
  [[nodiscard]] Operation insert(const K& key, const V& value, Promise promise = Promise::both,
                                 Style style = Style::automatic) {
    return begun(container::MapCall::insert, key, &value, promise, style);
  }
  /// Inserts the key, or writes the value of a key that is there in place.
  [[nodiscard]] Operation assign(const K& key, const V& value, Promise promise = Promise::both,
                                 Style style = Style::automatic) {
    return begun(container::MapCall::assign, key, &value, promise, style);
  }
  /// Adds to the unsigned integer under the key in place, or inserts it; value() is the sum. If the
  /// call ends with half_written, the former value is unknown: `assign` repairs that.
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
  /// Gives the key the value that the function makes of the former one, if there is one, and of the
  /// arguments, at the key's home (function.hpp).
  template <class... A>
  [[nodiscard]] remote::Call<Updated<V>> update(const K& key, Update<K, V, A...>& function,
                                                const std::type_identity_t<A>&... arguments);

  // The next four have many calls under way at once, and wait; where memory is mapped, the cache
  // misses of many calls pass at once. They return the first error, or ok; the others are done in
  // any case. Calls on one key may take effect in any order.
  remote::Status insert_many(std::span<const std::pair<K, V>> elements,
                             Promise promise = Promise::both, Style style = Style::automatic) {
    return write_many({container::MapCall::insert, promise, style}, elements);
  }
  remote::Status assign_many(std::span<const std::pair<K, V>> elements,
                             Promise promise = Promise::both, Style style = Style::automatic) {
    return write_many({container::MapCall::assign, promise, style}, elements);
  }
  remote::Status erase_many(std::span<const K> keys, Promise promise = Promise::both,
                            Style style = Style::automatic) {
    return many({container::MapCall::erase, promise, style}, keys.size(), keys_of(keys),
                [](std::size_t, const Found<V>&) {});
  }
  /// `found[i]` is how the find of `keys[i]` ends. Requires as many of both.
  remote::Status find_many(std::span<const K> keys, std::span<Found<V>> found,
                           Promise promise = Promise::both, Style style = Style::automatic) {
    return many({container::MapCall::find, promise, style}, keys.size(), keys_of(keys),
                [&](std::size_t i, const Found<V>& one) { found[i] = one; });
  }

  /// Calls `see(key, value)` for the elements of this member's part.
  template <class See>
  void for_each_local(const See& see) const {
    const std::uint32_t key_bytes = core_.spec().key_bytes, value_bytes = core_.spec().value_bytes;
    if constexpr (VariableSize<V>)
      if (core_.values() != nullptr)
        return core_.for_each_local([&](const std::byte* key, std::span<const std::byte> value) {
          see(container::unpack<K>(key, key_bytes), ContainerTrait<V>::value(value));
        });
    core_.for_each_local([&](const std::byte* key, std::span<const std::byte> value) {
      see(container::unpack<K>(key, key_bytes), container::unpack<V>(value.data(), value_bytes));
    });
  }
  /// A scan of the parts of all members; the caller reads it piece by piece.
  [[nodiscard]] Scan scan(Promise promise = Promise::both) { return Scan(core_, promise); }
  /// Calls `see(key, value)` for the elements of all members, and waits. Returns the first error,
  /// or ok; `stopped`, `broken_promise` and `no_memory` end the scan.
  template <class See>
  remote::Status for_each(const See& see, Promise promise = Promise::both) {
    Scan all(core_, promise);
    remote::Status status = remote::Status::ok;
    for (;;) {
      const remote::Status piece = all.next().wait();
      all.for_each_found(see);
      if (status == remote::Status::ok) status = piece;
      if (all.at_end() || piece == remote::Status::stopped ||
          piece == remote::Status::broken_promise || piece == remote::Status::no_memory)
        return status;
    }
  }
  /// The member that holds the key; requires that the key is not too long.
  [[nodiscard]] Rank home_of(const K& key) const noexcept {
    if constexpr (VariableSize<K>) {
      std::array<std::byte, kMaxElementBytes> packed{};
      static_cast<void>(container::pack(key, packed.data(), core_.spec().key_bytes));
      return core_.home_of(packed.data());
    } else {
      return core_.home_of(&key);
    }
  }
  [[nodiscard]] container::MapUse local_use() const noexcept { return core_.local_use(); }
  /// The use of this member's memory for long values.
  [[nodiscard]] remote::PoolUse pool_use() const noexcept { return container::pool_use(core_); }
  /// A sentence that says why this member's part grows no more although it may; empty otherwise.
  [[nodiscard]] const std::string& why_not_grown() const noexcept { return core_.why_not_grown(); }
  [[nodiscard]] container::MapCore& core() noexcept { return core_; }
  std::size_t poll() { return core_.containers().poll(); }

 private:
  static constexpr std::size_t kManyAtOnce = 32;  // calls under way
  static constexpr std::size_t kAhead = 16;       // keys whose memory is asked for

  struct Kind {
    container::MapCall call;
    Promise promise;
    Style style;
  };
  struct Operands {
    const K& key;
    const V* value;  // null: the call writes none
  };
  static auto keys_of(std::span<const K> keys) noexcept {
    return [keys](std::size_t i) { return Operands{keys[i], nullptr}; };
  }
  remote::Status write_many(const Kind& kind, std::span<const std::pair<K, V>> elements) {
    return many(
        kind, elements.size(),
        [&](std::size_t i) {
          return Operands{elements[i].first, &elements[i].second};
        },
        [](std::size_t, const Found<V>&) {});
  }
  /// Calls `end(i, result)` for each call; `of(i)` are its operands.
  template <class Of, class End>
  remote::Status many(const Kind& kind, std::size_t count, const Of& of, const End& end) {
    struct UnfinishedCall {
      Operation call;
      std::size_t i = 0;
    };
    std::vector<UnfinishedCall> unfinished;  // of calls that have not ended at once
    remote::Status status = remote::Status::ok;
    const auto finish = [&](std::size_t i, const Found<V>& result) {
      if (status == remote::Status::ok) status = result.status;
      end(i, result);
    };
    for (std::size_t i = 0; i < std::min(kAhead, count); ++i) prefetch(of(i).key);
    std::size_t turn = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) prefetch(of(i + kAhead).key);
      if (i % kAhead == 0) static_cast<void>(Operation(core_.progress(), {}).wait());  // it polls
      if (ends_at_once(kind, of(i), [&](const Found<V>& result) { finish(i, result); })) continue;
      Operation call = begun(kind.call, of(i).key, of(i).value, kind.promise, kind.style);
      if (call.finished()) {
        finish(i, call.result());
      } else if (unfinished.size() < kManyAtOnce) {
        unfinished.push_back({std::move(call), i});
      } else {
        UnfinishedCall& next = unfinished[turn++ % kManyAtOnce];
        finish(next.i, next.call.outcome());
        next = {std::move(call), i};
      }
    }
    for (UnfinishedCall& last : unfinished) finish(last.i, last.call.outcome());
    return status;
  }
  /// As begun(), but a call that needs no protocol makes no object; false: nothing is done.
  template <class End>
  bool ends_at_once(const Kind& kind, const Operands& of, const End& end) {
    if constexpr (!VariableSize<K> && !VariableSize<V>) {
      constexpr std::uint32_t kKeyBytes = container::kBytesOf<K>;
      constexpr std::uint32_t kValueBytes = container::kBytesOf<V>;
      alignas(8) container::MapPayload<K, V> payload;
      static_cast<void>(container::pack(of.key, payload.data(), kKeyBytes));
      if (of.value != nullptr)
        static_cast<void>(container::pack(*of.value, payload.data() + kKeyBytes, kValueBytes));
      const container::MapApplied done =
          core_.at_once(kind.call, kind.promise, kind.style, payload.data());
      if (done.is_again()) return false;
      const bool has_value = container::has_value(kind.call, done.found());
      end(Found<V>(done, {payload.data() + kKeyBytes, has_value ? kValueBytes : 0}));
      return true;
    }
    return false;
  }
  void prefetch(const K& key) const noexcept {
    if constexpr (!VariableSize<K>) core_.prefetch(&key);
  }

  static container::MapSpec spec_of(const MapOptions& options) {
    const std::string who = "map '" + options.name + "'";
    const bool is_pooled =
        container::checked_pool(who, VariableSize<V>, options.pool_bytes, options.inline_bytes);
    const std::uint32_t longest =
        container::checked_most(who, "value_bytes", VariableSize<V>, options.value_bytes,
                                is_pooled ? kMaxPooledValueBytes : kMaxElementBytes - kLengthBytes);
    container::MapSpec spec{.name = options.name,
                            .key_bytes = container::packed_bytes<K>(container::checked_most(
                                who, "key_bytes", VariableSize<K>, options.key_bytes)),
                            .value_bytes = container::packed_bytes<V>(longest),
                            .slots = options.slots,
                            .style = options.style,
                            .checked = options.checked,
                            .grow_to = options.grow_to,
                            .packed = options.packed};
    if (!is_pooled) return spec;
    spec.value_bytes = kLengthBytes + container::inline_bytes(spec.key_bytes, options.inline_bytes);
    spec.longest_value = longest;
    spec.pool_bytes = options.pool_bytes;
    return spec;
  }
  Operation begun(container::MapCall call, const K& key, const V* value, Promise promise,
                  Style style) {
    remote::Progress& progress = core_.progress();
    std::uint32_t key_bytes = container::kBytesOf<K>, value_bytes = container::kBytesOf<V>;
    if constexpr (VariableSize<K> || VariableSize<V>) {
      key_bytes = core_.spec().key_bytes;
      value_bytes = core_.spec().value_bytes;
    }
    alignas(8) container::MapPayload<K, V> payload;
    std::byte* const cell = payload.data() + key_bytes;
    bool fits = container::pack(key, payload.data(), key_bytes);
    if constexpr (VariableSize<V>)
      if (core_.values() != nullptr) {
        const auto content =
            value != nullptr ? ContainerTrait<V>::bytes(*value) : std::span<const std::byte>();
        if (!fits || content.size() > core_.spec().longest_value)
          return {progress, Found<V>(remote::Status::too_long)};
        if (auto done = core_.at_once_pooled(call, promise, style, payload.data(), content))
          return {progress, Found<V>(std::move(*done))};
        return {progress, core_.run_pooled(call, promise, style, payload.data(), content)};
      }
    if (fits && value != nullptr) fits = container::pack(*value, cell, value_bytes);
    if (!fits) return {progress, Found<V>(remote::Status::too_long)};
    const container::MapApplied done = core_.at_once(call, promise, style, payload.data());
    if (done.is_again()) return {progress, core_.run(call, promise, style, payload.data())};
    const bool has_value = container::has_value(call, done.found());
    try {
      return {progress, Found<V>(done, {cell, has_value ? value_bytes : 0})};
    } catch (const std::bad_alloc&) {  // for a value of variable size
      return {progress, Found<V>(remote::Status::no_memory)};
    }
  }

  container::MapCore core_;
};

/// A Set is a HashMap without values.
template <ContainerKey K>
class Set {
 public:
  using Operation = remote::Call<Found<container::Nothing>>;

  Set(Containers& containers, const MapOptions& options) : map_(containers, options) {}

  [[nodiscard]] Operation insert(const K& key, Promise promise = Promise::both,
                                 Style style = Style::automatic) {
    return map_.insert(key, {}, promise, style);
  }
  /// Searches for the key; found() says whether it is there.
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
  /// Calls `see(key)` for the keys of all members, and waits.
  template <class See>
  remote::Status for_each(const See& see, Promise promise = Promise::both) {
    return map_.for_each([&](const K& key, container::Nothing) { see(key); }, promise);
  }
  [[nodiscard]] container::MapUse local_use() const noexcept { return map_.local_use(); }
  std::size_t poll() { return map_.poll(); }

 private:
  HashMap<K, container::Nothing> map_;
};

}  // namespace dunlin
