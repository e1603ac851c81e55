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
#include <dunlin/container/map_scan.hpp>
#include <dunlin/container/pooled_value.hpp>
#include <dunlin/container/trait.hpp>

namespace dunlin {

struct MapOptions {
  std::string name;         // the same at all members
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
};

namespace container {

/// Types to which calls can add.
template <class V>
concept Addable = std::is_unsigned_v<V> &&(sizeof(V) == 4 || sizeof(V) == 8);
template <class V>
inline constexpr std::uint32_t kBytesOf = packed_bytes<V>(0);

/// Memory in the operation for a key, its value, and the slots that a search reads.
template <class K, class V>
class MapRoom {
  static constexpr std::size_t kPayload = kBytesOf<K> + kBytesOf<V>;

 public:
  explicit MapRoom(const MapSpec&) noexcept {}
  [[nodiscard]] std::byte* payload() noexcept { return payload_.data(); }
  [[nodiscard]] const std::byte* payload() const noexcept { return payload_.data(); }
  [[nodiscard]] std::span<std::byte> window() noexcept { return window_; }
  [[nodiscard]] static constexpr std::uint32_t key_bytes() noexcept { return kBytesOf<K>; }
  [[nodiscard]] static constexpr std::uint32_t value_bytes() noexcept { return kBytesOf<V>; }

 private:
  alignas(8) std::array<std::byte, kPayload> payload_;
  alignas(kCacheLineBytes) std::array<
      std::byte, std::max<std::size_t>(kProbeBytes, shape_of(kPayload).slot_bytes)> window_;
};

/// On the heap: memory for a key, a value and slots whose sizes only the map's options say.
template <class K, class V>
requires(VariableSize<K> || VariableSize<V>) class MapRoom<K, V> {
 public:
  explicit MapRoom(const MapSpec& spec)
      : key_bytes_(spec.key_bytes),
        value_bytes_(spec.value_bytes),
        payload_(spec.key_bytes + spec.value_bytes),
        window_(
            lines_for(std::max<std::size_t>(kProbeBytes, shape_of(payload_.size()).slot_bytes))) {}
  [[nodiscard]] std::byte* payload() noexcept { return payload_.data(); }
  [[nodiscard]] const std::byte* payload() const noexcept { return payload_.data(); }
  [[nodiscard]] std::span<std::byte> window() noexcept {
    return std::as_writable_bytes(std::span(window_));
  }
  [[nodiscard]] std::uint32_t key_bytes() const noexcept { return key_bytes_; }
  [[nodiscard]] std::uint32_t value_bytes() const noexcept { return value_bytes_; }

 private:
  std::uint32_t key_bytes_;
  std::uint32_t value_bytes_;
  std::vector<std::byte> payload_;
  std::vector<CacheLine> window_;
};

/// A call on a map, with room for its key and value.
template <class K, class V>
class TypedMapOperation final
    : public std::conditional_t<VariableSize<V>, PooledMapOperation, MapOperation> {
  using Base = std::conditional_t<VariableSize<V>, PooledMapOperation, MapOperation>;

 public:
  explicit TypedMapOperation(MapCore& map) noexcept : Base(map), room_(map.spec()) {
    this->use(room_.payload(), room_.window());
  }
  TypedMapOperation(MapCore& map, MapCall call, const K& key, const V* value, Promise promise,
                    Style style) noexcept
      : TypedMapOperation(map) {
    run(call, key, value, promise, style);
  }
  ~TypedMapOperation() override { this->abandon(); }

  /// Waits until the call ends.
  TypedMapOperation& outcome(std::uint64_t timeout_ns = remote::kForever) {
    this->wait(timeout_ns);
    return *this;
  }
  /// The value that a find or insert found with the key.
  [[nodiscard]] V value() const noexcept(!VariableSize<V>) {
    if constexpr (VariableSize<V>)
      if (this->is_pooled()) return ContainerTrait<V>::value(this->pooled_value());
    return unpack<V>(room_.payload() + room_.key_bytes(), room_.value_bytes());
  }
  /// Whether an insert added the key, because the map had no such key.
  [[nodiscard]] bool inserted() const noexcept { return this->ok() && !this->found(); }
  TypedMapOperation& await_resume() noexcept { return *this; }

  void run(MapCall call, const K& key, const V* value, Promise promise, Style style) noexcept {
    this->abandon();
    if constexpr (VariableSize<V>)
      if (this->is_pooled()) return run_pooled(call, key, value, promise, style);
    const bool fits = pack(key, room_.payload(), room_.key_bytes()) &&
                      (value == nullptr ||
                       pack(*value, room_.payload() + room_.key_bytes(), room_.value_bytes()));
    if (!fits) return this->refuse(remote::Status::too_long);
    this->begin(call, promise, style);
  }

 private:
  void run_pooled(MapCall call, const K& key, const V* value, Promise promise,
                  Style style) noexcept requires VariableSize<V> {
    if (!pack(key, room_.payload(), room_.key_bytes()))
      return this->refuse(remote::Status::too_long);
    const auto bytes =
        value != nullptr ? ContainerTrait<V>::bytes(*value) : std::span<const std::byte>();
    this->begin_pooled(call, room_.payload(), bytes, promise, style);
  }

  MapRoom<K, V> room_;
};

}  // namespace container

/// A HashMap is a map that is spread over the members by the hash of its keys; each uses all of it.
/// One thread uses it, the one that polls.
///
///     dunlin::HashMap<std::uint64_t, double> prices(
///         containers, {.name = "prices", .slots = 1000});
///     prices.insert(7, 1.5).wait();
///     auto found = prices.find(7);                             // under way
///     if (found.outcome().found()) use(found.value());         // outcome() waits
template <ContainerKey K, class V>
class HashMap {
  static_assert(Containable<V>, "a map's values are trivially copyable, or have a ContainerTrait");

 public:
  using Operation = container::TypedMapOperation<K, V>;
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

  /// An operation of the caller's for many calls; each of the functions below needs one that is not
  /// under way.
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

  /// Inserts all elements, with many calls under way at once, and waits. Returns the first error,
  /// or ok; the others are inserted in any case.
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
  /// or ok; `stopped` and `broken_promise` end the scan.
  template <class See>
  remote::Status for_each(const See& see, Promise promise = Promise::both) {
    Scan all(core_, promise);
    remote::Status status = remote::Status::ok;
    do {
      all.next().wait();
      all.for_each_found(see);
      if (status == remote::Status::ok) status = all.status();
    } while (!all.at_end() && all.status() != remote::Status::stopped &&
             all.status() != remote::Status::broken_promise);
    return status;
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
  /// The operations that insert_many() has under way.
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
                            .grow_to = options.grow_to};
    if (!is_pooled) return spec;
    spec.value_bytes = kLengthBytes + container::inline_bytes(spec.key_bytes, options.inline_bytes);
    spec.longest_value = longest;
    spec.pool_bytes = options.pool_bytes;
    return spec;
  }
  /// Makes an operation where it stays, because operations cannot be moved.
  Operation begun(container::MapCall call, const K& key, const V* value, Promise promise,
                  Style style) {
    return Operation(core_, call, key, value, promise, style);
  }

  container::MapCore core_;
  std::unique_ptr<Many> many_;
};

/// A Set is a HashMap without values.
template <ContainerKey K>
class Set {
 public:
  using Operation = container::TypedMapOperation<K, container::Nothing>;

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
