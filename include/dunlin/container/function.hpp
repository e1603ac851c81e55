#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/container/call_memory.hpp>
#include <dunlin/container/containers.hpp>
#include <dunlin/container/hash_map.hpp>
#include <dunlin/container/trait.hpp>

/// A Function is a function of the program's that each member has under one name, and that any
/// member calls at any other. An Update is one that changes a map's value where the key is. One
/// thread uses them, the one that polls.
///
///     dunlin::Function<double(std::string)> free_share(    // at each member
///         containers, {.name = "free share"},
///         [&](const std::string& disk) { return disks.at(disk).free_share(); });
///     auto share = containers.at(2, free_share, "sda");    // under way
///     if (share.outcome().ok()) use(share.result().value());
///
///     dunlin::Update<std::string, Range, double> widen(map, {.name = "widen"},
///         [](const std::optional<Range>& range, double x) { return range_with(range, x); });
///     auto left = map.update("sda", widen, 0.5);           // inserts, or combines
///
/// The function runs in the poll() of the member that is called, and does local work only: it
/// waits for nothing and calls no container, no segment, and no store. What it throws ends the call
/// with `threw`, and the caller has its sentence.
///
/// Invariants (docs/container.md explains them):
///  CON-F1  A call of a Function runs it at most once; if the call ends `ok`, exactly once.
///  CON-F2  A function gets the arguments of its call whole, and a caller its result, or the call
///          does not end `ok`.
///  CON-F3  A function that begins a call of these layers or waits for one gets an Error, and its
///          own call ends `not_allowed`.
///  CON-F4  A buffer at another member is used again once the call that had it is answered there.
///  CON-F5  An update that ends `ok` has replaced what its function was given last, and nothing
///          else was in the map between.
namespace dunlin {

struct FunctionOptions {
  std::string name;  // the same at all members
  /// Most bytes of the arguments of a call, and of its result; 0: what a message has room for,
  /// `kMessageContentBytes`. More than that goes through buffers.
  std::uint32_t bytes = 0;
  /// Calls with a buffer that one member can have under way at another. Further ones wait. Each
  /// member has as many buffers for each other one.
  std::uint32_t buffers = 2;
};

namespace container {

/// The size of a result that is not always the same.
inline constexpr std::uint32_t kAnySize = UINT32_MAX;

struct FunctionSpec {
  const char* kind = "function";  // or "update"
  std::string name;
  std::string signature;          // sizes of arguments and result: the same at all members
  std::uint32_t least_bytes = 0;  // of arguments or result, if these are of a known size
  std::uint32_t result_bytes = 0;
  std::uint32_t bytes = 0;
  std::uint32_t buffers = 0;
};

/// The arguments of a call, in memory that has room for a word before them.
struct FunctionArguments {
  CallMemory memory = {};
  std::size_t bytes = 0;
  [[nodiscard]] std::byte* data() const noexcept { return memory.data() + kWordBytes; }
  [[nodiscard]] std::span<const std::byte> content() const noexcept { return {data(), bytes}; }
};

/// How a call has ended: with the bytes of the result, or with a sentence.
struct FunctionResult {
  remote::Status status = remote::Status::ok;
  std::span<const std::byte> content = {};
  CallMemory memory = {};  // that has the content
  std::string why = {};
};

struct FunctionState;

class FunctionCore {
 public:
  /// Runs the function on the bytes of its arguments, and appends its result. `busy`: the caller
  /// asks again; `refused`: these are no arguments of the function.
  using Handler = std::function<remote::Status(std::span<const std::byte> arguments,
                                               std::vector<std::byte>& result)>;

  /// Throws Error.
  FunctionCore(Containers& containers, const FunctionSpec& spec, Handler handler);
  ~FunctionCore();
  FunctionCore(const FunctionCore&) = delete;
  FunctionCore& operator=(const FunctionCore&) = delete;

  [[nodiscard]] remote::Progress& progress() const noexcept;
  /// Throws Error unless the function belongs to these containers, and there is such a member.
  void check_call(const Containers& by, Rank at) const;
  /// Memory for arguments of that many bytes; null if there is none.
  [[nodiscard]] FunctionArguments arguments_of(std::size_t bytes);
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept;
  [[nodiscard]] remote::Protocol<FunctionResult> run(Rank at, FunctionArguments arguments);
  [[nodiscard]] std::string describe() const;

 private:
  std::unique_ptr<FunctionState> state_;
};

/// Throws Error unless functions can update this map's values at their home.
void check_update(const MapCore& map, const std::string& name);

// --- how arguments and results become bytes ------------------------------------------------------

/// Types whose values mean the same at another member: no pointers, and no views.
template <class T>
concept Sendable = std::same_as<T, std::remove_cvref_t<T>> &&
    (VariableSize<T> || (std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> &&
                         !std::is_member_pointer_v<T> && !std::ranges::view<T>));

/// Bytes of a value among others: one of variable size has its length before it.
template <class T>
[[nodiscard]] std::size_t sent_bytes(const T& value) noexcept {
  if constexpr (VariableSize<T>)
    return sizeof(std::uint32_t) + ContainerTrait<T>::bytes(value).size();
  else
    return sizeof(T);
}

template <class T>
void send_to(std::byte*& to, const T& value) noexcept {
  if constexpr (VariableSize<T>) {
    const std::span<const std::byte> content = ContainerTrait<T>::bytes(value);
    const auto length = static_cast<std::uint32_t>(content.size());
    std::memcpy(to, &length, sizeof length);
    if (length > 0) std::memcpy(to + sizeof length, content.data(), length);
    to += sizeof length + length;
  } else {
    std::memcpy(to, &value, sizeof(T));
    to += sizeof(T);
  }
}

/// Takes a value from the beginning of what a peer has sent; false if that is too short.
template <class T>
[[nodiscard]] bool take_from(std::span<const std::byte>& from, std::optional<T>& value) {
  std::uint32_t bytes = sizeof(T);
  if constexpr (VariableSize<T>) {
    if (from.size() < sizeof bytes) return false;
    std::memcpy(&bytes, from.data(), sizeof bytes);
    from = from.subspan(sizeof bytes);
  }
  if (from.size() < bytes) return false;
  if constexpr (VariableSize<T>) {
    value = ContainerTrait<T>::value(from.first(bytes));
  } else {
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), from.data(), sizeof(T));
    value = std::bit_cast<T>(raw);
  }
  from = from.subspan(bytes);
  return true;
}
/// Takes all of them, and demands that nothing is left.
template <class... T>
[[nodiscard]] bool take_all(std::span<const std::byte> from, std::tuple<std::optional<T>...>& all) {
  const bool taken = std::apply([&](auto&... each) { return (take_from(from, each) && ...); }, all);
  return taken && from.empty();
}

/// A result's bytes, without a length. A function without a result returns Nothing.
template <class R>
using ResultOf = std::conditional_t<std::is_void_v<R>, Nothing, R>;
template <class R>
inline constexpr std::uint32_t kResultBytes = VariableSize<R> ? kAnySize : packed_bytes<R>(0);
template <class R>
[[nodiscard]] std::span<const std::byte> result_bytes(const R& result) noexcept {
  if constexpr (VariableSize<R>)
    return ContainerTrait<R>::bytes(result);
  else
    return std::as_bytes(std::span(&result, 1)).first(kResultBytes<R>);
}
template <class R>
void append_result(std::vector<std::byte>& to, const R& result) {
  const std::span<const std::byte> bytes = result_bytes(result);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class... T>
[[nodiscard]] std::string sizes_of() {
  std::string all;
  ((all += " " + (VariableSize<T> ? std::string("any") : std::to_string(sizeof(T)))), ...);
  return all;
}
template <class... T>
inline constexpr std::uint32_t kLeastBytes =
    (0 + ... + static_cast<std::uint32_t>(VariableSize<T> ? kWordBytes / 2 : sizeof(T)));

/// Begins a call, or refuses it; `Result` is what becomes of a FunctionResult.
template <class Result, class... A>
[[nodiscard]] remote::Call<Result> begin_function(FunctionCore& core, Rank at, const A&... values) {
  const std::size_t bytes = (std::size_t{0} + ... + sent_bytes(values));
  if (!core.fits(bytes)) return {core.progress(), Result(remote::Status::too_long)};
  FunctionArguments arguments = core.arguments_of(bytes);
  if (arguments.memory.data() == nullptr)
    return {core.progress(), Result(remote::Status::no_memory)};
  [[maybe_unused]] std::byte* to = arguments.data();
  (send_to(to, values), ...);
  return {core.progress(), core.run(at, std::move(arguments))};
}

}  // namespace container

/// How a call of a function has ended, and what the function has returned.
template <class R>
class Returned {
  using Result = container::ResultOf<R>;

 public:
  Returned() = default;
  explicit Returned(remote::Status its_status) noexcept : status(its_status) {}
  explicit Returned(container::FunctionResult&& result) : Returned(result, result.content) {}

  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
  /// What the function has returned; requires ok().
  [[nodiscard]] Result value() const {
    if constexpr (std::is_same_v<Result, container::Nothing>)
      return {};
    else if constexpr (VariableSize<Result>)
      return ContainerTrait<Result>::value(bytes_);
    else
      return std::bit_cast<Result>(bytes_);
  }
  /// A sentence that says how the call has ended, and where; of `threw`, what was thrown.
  [[nodiscard]] std::string describe() const {
    return why_.empty() ? std::string(remote::describe(status)) : why_;
  }

  remote::Status status = remote::Status::ok;

 protected:
  Returned(container::FunctionResult& result, std::span<const std::byte> content)
      : status(result.status), why_(std::move(result.why)) {
    if (!ok()) return;
    if constexpr (VariableSize<Result>) bytes_.assign(content.begin(), content.end());
    if constexpr (!VariableSize<Result>)
      std::memcpy(bytes_.data(), content.data(), std::min(content.size(), bytes_.size()));
  }

 private:
  std::conditional_t<VariableSize<Result>, std::vector<std::byte>,
                     std::array<std::byte, sizeof(Result)>>
      bytes_{};
  std::string why_;
};

template <class R, class... A>
class Function<R(A...)> {
  static_assert((container::Sendable<A> && ...) && container::Sendable<container::ResultOf<R>>,
                "arguments and results of a Function are values that are trivially copyable, or "
                "have a ContainerTrait: no references, pointers or views");

 public:
  /// Does not wait for the other members: calls of this one wait until the called one has made its
  /// own. Throws Error.
  template <class F>
  requires std::is_invocable_r_v<R, F&, const A&...> Function(Containers& containers,
                                                              const FunctionOptions& options, F f)
      : core_(containers,
              {.name = options.name,
               .signature = "arguments" + container::sizes_of<A...>() + "\nresult" +
                            container::sizes_of<container::ResultOf<R>>(),
               .least_bytes = std::max(container::kLeastBytes<A...>,
                                       container::kLeastBytes<container::ResultOf<R>>),
               .result_bytes = container::kResultBytes<container::ResultOf<R>>,
               .bytes = options.bytes,
               .buffers = options.buffers},
              [f = std::move(f)](std::span<const std::byte> bytes,
                                 std::vector<std::byte>& result) mutable {
                std::tuple<std::optional<A>...> arguments;
                if (!container::take_all(bytes, arguments)) return remote::Status::refused;
                const auto call = [&](const auto&... each) -> R { return f(*each...); };
                if constexpr (std::is_void_v<R>)
                  std::apply(call, arguments);
                else
                  container::append_result(result, std::apply(call, arguments));
                return remote::Status::ok;
              }) {}

  /// A sentence that says which members have it, and which lack it.
  [[nodiscard]] std::string describe() const { return core_.describe(); }

 private:
  friend class Containers;
  remote::Call<Returned<R>> begin(const Containers& by, Rank at, const A&... arguments) {
    core_.check_call(by, at);
    return container::begin_function<Returned<R>>(core_, at, arguments...);
  }
  container::FunctionCore core_;
};

template <class R, class... A>
remote::Call<Returned<R>> Containers::at(Rank rank, Function<R(A...)>& function,
                                         const std::type_identity_t<A>&... arguments) {
  return function.begin(*this, rank, arguments...);
}

// --- updates of a map ----------------------------------------------------------------------------

/// How an update has ended, and the value that it has left.
template <class V>
class Updated : public Returned<V> {
 public:
  Updated() = default;
  explicit Updated(remote::Status its_status) noexcept : Returned<V>(its_status) {}
  explicit Updated(container::FunctionResult&& result)
      : Updated(result, result.content.empty() ? result.content : result.content.subspan(1)) {}

  /// Whether the key was there.
  [[nodiscard]] bool found() const noexcept { return found_; }
  /// Whether the update has inserted the key.
  [[nodiscard]] bool inserted() const noexcept { return this->ok() && !found_; }

 private:
  Updated(container::FunctionResult& result, std::span<const std::byte> value)
      : Returned<V>(result, value) {
    found_ = this->ok() && !result.content.empty() && result.content[0] != std::byte{0};
  }
  bool found_ = false;
};

/// The map must outlive it. Its function may be called again with a newer value, if another call
/// has changed the one that it was given: so it should have no effect but its result.
template <class K, class V, class... A>
class Update {
  static_assert(container::Sendable<K> && container::Sendable<V> && (container::Sendable<A> && ...),
                "keys, values and arguments of an Update are trivially copyable, or have a "
                "ContainerTrait: no references, pointers or views");

 public:
  /// Throws Error.
  template <class F>
  requires std::is_invocable_r_v < V, F&, const std::optional<V>
  &,
      const A&... > Update(HashMap<K, V>& map, const FunctionOptions& options, F f)
      : map_(map.core()),
  core_(map.core().containers(), spec_of(map.core(), options),
        [this, f = std::move(f)](std::span<const std::byte> bytes,
                                 std::vector<std::byte>& result) mutable {
          return update(f, bytes, result);
        }) {}

  /// A sentence that says which members have it, and which lack it.
  [[nodiscard]] std::string describe() const { return core_.describe(); }

 private:
  friend class HashMap<K, V>;
  using Payload = container::MapPayload<K, V>;

  static container::FunctionSpec spec_of(const container::MapCore& map,
                                         const FunctionOptions& options) {
    container::check_update(map, options.name);
    const container::MapSpec& of = map.spec();
    // Where it is sent, a key of variable size has its length in more bytes than in its slot.
    const std::uint32_t key_bytes =
        of.key_bytes + (VariableSize<K> ? container::kLeastBytes<K> - kLengthBytes : 0);
    return {.kind = "update",
            .name = options.name,
            .signature = "map " + of.name + "\narguments" + container::sizes_of<K, A...>() +
                         "\nvalue" + container::sizes_of<V>(),
            .least_bytes = std::max(key_bytes + container::kLeastBytes<A...>, 1 + of.value_bytes),
            .result_bytes = VariableSize<V> ? container::kAnySize : 1 + of.value_bytes,
            .bytes = options.bytes,
            .buffers = options.buffers};
  }
  remote::Call<Updated<V>> begin(const K& key, const A&... arguments) {
    Payload payload;
    if (!container::pack(key, payload.data(), map_.spec().key_bytes))
      return {core_.progress(), Updated<V>(remote::Status::too_long)};
    return container::begin_function<Updated<V>>(core_, map_.home_of(payload.data()), key,
                                                 arguments...);
  }
  template <class F>
  remote::Status update(F& f, std::span<const std::byte> bytes, std::vector<std::byte>& result) {
    const std::uint32_t key_bytes = map_.spec().key_bytes, value_bytes = map_.spec().value_bytes;
    std::optional<K> key;
    std::tuple<std::optional<A>...> arguments;
    if (!container::take_from(bytes, key) || !container::take_all(bytes, arguments))
      return remote::Status::refused;
    alignas(8) Payload payload;
    if (!container::pack(*key, payload.data(), key_bytes)) return remote::Status::too_long;
    const auto change = [&](bool found, std::byte* value) {
      std::optional<V> former;
      if (found) former = container::unpack<V>(value, value_bytes);
      const V left = std::apply(
          [&](const auto&... each) -> V { return f(std::as_const(former), *each...); }, arguments);
      result.assign(1, std::byte{found});
      container::append_result(result, left);
      const bool fits = container::pack(left, value, value_bytes);
      return fits ? remote::Status::ok : remote::Status::too_long;
    };
    return map_.update(payload.data(), change);
  }

  container::MapCore& map_;
  container::FunctionCore core_;
};

template <ContainerKey K, class V>
template <class... A>
remote::Call<Updated<V>> HashMap<K, V>::update(const K& key, Update<K, V, A...>& function,
                                               const std::type_identity_t<A>&... arguments) {
  return function.begin(key, arguments...);
}

}  // namespace dunlin
