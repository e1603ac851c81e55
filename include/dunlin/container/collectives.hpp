#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dunlin/container/containers.hpp>

/// A Collectives is a set of members that meet: they wait for each other at a barrier, combine a
/// value of each, or hand values to all or to one. Every member of the set makes the same calls in
/// the same order, one at a time. One thread uses it, the one that polls.
///
///     dunlin::Collectives team(containers, {.name = "team"});
///     if (!team.barrier().outcome().ok()) return;               // a member has died
///     const auto sum = team.all_reduce(mine, std::plus<>());
///     if (sum.outcome().ok()) use(sum.result().value());
///
/// Invariants (docs/container.md explains and proves them):
///  CON-L1  No barrier, all_reduce or all_gather ends `ok` before all members have begun it.
///  CON-L2  All members get the same bytes: values are combined in the order of the set, always
///          with the same brackets.
///  CON-L3  Nothing is written to a member that has not read what was written there before.
///  CON-L4  If a member leaves the set, by death or otherwise, no call hangs; once a call has ended
///          otherwise than `ok`, so does every later one, and that member's part is withdrawn.
///  CON-L5  A call that waits for another member's call posts nothing, but for reads with rests
///          while a member is `calls_ahead()` calls behind.
namespace dunlin {

struct CollectivesOptions {
  std::string name;                // the same at all members
  std::vector<Rank> members = {};  // in the same order at all; empty: the founders that are there
  std::uint32_t bytes = 1024;      // most bytes of a call: of a gather, those of all together
};

namespace container {

enum class CollectiveKind : std::uint8_t { barrier, all_reduce, broadcast, gather, all_gather };

/// A call, as the typed functions hand it over. Sizes are the same at all members.
struct CollectiveCall {
  using Combine = void (*)(const std::byte* function, std::byte* mine, const std::byte* theirs,
                           std::size_t bytes);
  static constexpr std::size_t kMaxFunctionBytes = 64;

  CollectiveKind kind = CollectiveKind::barrier;
  Rank root = 0;                    // of a broadcast or gather
  const std::byte* mine = nullptr;  // copied when the call is made; null: this member has none
  std::size_t bytes = 0;            // of each member
  std::byte* result = nullptr;      // written when the call ends; null: not wanted
  Combine combine = nullptr;        // of an all_reduce
  alignas(16) std::array<std::byte, kMaxFunctionBytes> function{};
};

/// How a call has ended, and what has come of it.
struct CollectiveOutcome {
  remote::Status status = remote::Status::ok;
  const std::byte* data = nullptr;
  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
};

struct CollectivesState;

}  // namespace container

/// How a call on one value has ended, and the value.
template <class T>
class Collected : public container::CollectiveOutcome {
 public:
  Collected() = default;
  explicit Collected(const container::CollectiveOutcome& outcome) noexcept
      : CollectiveOutcome{outcome.status} {
    if (ok() && outcome.data != nullptr) std::memcpy(&value_, outcome.data, sizeof(T));
  }
  [[nodiscard]] const T& value() const noexcept { return value_; }

 private:
  T value_{};
};

/// Values that travel as their bytes.
template <class T>
concept Collectable = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>;

/// A function of two values. It travels nowhere, but is kept with the call.
template <class F, class T>
concept Combines = std::is_invocable_r_v<T, const F&, const T&, const T&> &&
                       std::is_trivially_copyable_v<F> &&
                       sizeof(F) <= container::CollectiveCall::kMaxFunctionBytes
                   && alignof(F) <= 16;

/// Outlives its calls: the destructor ends the process if one is under way.
class Collectives {
 public:
  using Outcome = container::CollectiveOutcome;

  /// Does not wait for the other members. Throws Error.
  Collectives(Containers& containers, const CollectivesOptions& options);
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // Each of these throws Error if the call before has not ended, or `root` is not of the set. It
  // ends `too_long` if it has more bytes than the option says. Spans are of the same size at all
  // members; those that are written must outlive the call.

  /// Ends once all members have begun it.
  [[nodiscard]] remote::Call<Outcome> barrier() { return begin<Outcome>({}); }

  /// Combines a value of each member, in the order of the set: f(f(a, b), f(c, d)). So `f` should
  /// be associative, and need not be commutative. It throws nothing.
  template <Collectable T, Combines<T> F>
  [[nodiscard]] remote::Call<Collected<T>> all_reduce(const T& value, const F& f) {
    return begin<Collected<T>>(reduction(std::span(&value, 1), f));
  }
  /// Combines spans element by element, in place.
  template <Collectable T, std::size_t N, Combines<T> F>
  [[nodiscard]] remote::Call<Outcome> all_reduce(std::span<T, N> values, const F& f) {
    container::CollectiveCall call = reduction(std::span<const T>(values), f);
    call.result = std::as_writable_bytes(values).data();
    return begin<Outcome>(call);
  }

  /// Gives all members the value that `root` has; the others' does not matter.
  template <Collectable T>
  [[nodiscard]] remote::Call<Collected<T>> broadcast(Rank root, const T& value) {
    return begin<Collected<T>>(call_of(Kind::broadcast, root, std::span(&value, 1)));
  }
  template <Collectable T, std::size_t N>
  [[nodiscard]] remote::Call<Outcome> broadcast(Rank root, std::span<T, N> values) {
    container::CollectiveCall call = call_of(Kind::broadcast, root, std::span<const T>(values));
    call.result = std::as_writable_bytes(values).data();
    return begin<Outcome>(call);
  }

  /// Brings a value of each member to `root`, where `all` has size() elements, in the order of the
  /// set; elsewhere it may be empty.
  template <Collectable T>
  [[nodiscard]] remote::Call<Outcome> gather(Rank root, const T& value,
                                             std::span<std::type_identity_t<T>> all) {
    return begin_gather(Kind::gather, root, value, all);
  }
  /// Brings a value of each member to all.
  template <Collectable T>
  [[nodiscard]] remote::Call<Outcome> all_gather(const T& value,
                                                 std::span<std::type_identity_t<T>> all) {
    return begin_gather(Kind::all_gather, members().front(), value, all);
  }

  [[nodiscard]] std::span<const Rank> members() const noexcept;
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(members().size());
  }
  /// So many broadcasts can a root have ended before a child has begun the first of them.
  [[nodiscard]] std::uint32_t calls_ahead() const noexcept;
  /// A sentence about the call under way, or how the set has ended.
  [[nodiscard]] std::string describe() const;
  std::size_t poll() { return progress().poll(); }

 private:
  using Kind = container::CollectiveKind;

  template <class T>
  [[nodiscard]] static container::CollectiveCall call_of(Kind kind, Rank root,
                                                         std::span<const T> values) {
    return {.kind = kind,
            .root = root,
            .mine = std::as_bytes(values).data(),
            .bytes = values.size_bytes()};
  }
  template <class T, class F>
  [[nodiscard]] container::CollectiveCall reduction(std::span<const T> values, const F& f) const {
    container::CollectiveCall call = call_of(Kind::all_reduce, members().front(), values);
    std::memcpy(call.function.data(), &f, sizeof(F));
    call.combine = combine<T, F>;
    return call;
  }
  template <class T, class F>
  static void combine(const std::byte* function, std::byte* mine, const std::byte* theirs,
                      std::size_t bytes) {
    const F& f = *std::launder(reinterpret_cast<const F*>(function));
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
      T one, other;
      std::memcpy(&one, mine + at, sizeof(T));
      std::memcpy(&other, theirs + at, sizeof(T));
      one = f(one, other);
      std::memcpy(mine + at, &one, sizeof(T));
    }
  }
  template <class T>
  remote::Call<Outcome> begin_gather(Kind kind, Rank root, const T& value, std::span<T> all) {
    container::CollectiveCall call = call_of(kind, root, std::span(&value, 1));
    check_room(call, all.size());
    call.result = std::as_writable_bytes(all).data();
    return begin<Outcome>(call);
  }
  template <class Result>
  remote::Call<Result> begin(const container::CollectiveCall& call) {
    if (!fits(call)) return {progress(), Result(Outcome{remote::Status::too_long})};
    remote::Call<Result> begun(progress(), run(call));
    if (begun.status() == remote::Status::no_memory) give_up();
    return begun;
  }

  [[nodiscard]] remote::Progress& progress() const noexcept;
  void check_room(const container::CollectiveCall& call, std::size_t elements) const;
  [[nodiscard]] bool fits(const container::CollectiveCall& call) const noexcept;
  [[nodiscard]] remote::Protocol<Outcome> run(const container::CollectiveCall& call);
  void give_up() noexcept;

  std::unique_ptr<container::CollectivesState> state_;
};

}  // namespace dunlin
