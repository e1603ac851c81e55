#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <dunlin/limits.hpp>

/// The compile-time refusals: which types may be an entry of a row, and the error message for other
/// types. Each message has a program in tests/table/compile_fail that must not compile.
namespace dunlin::detail {

/// Converts to scalars only, so that brace elision goes down to the innermost members.
struct AnyScalar {
  template <class U>
  requires(std::is_scalar_v<U>) constexpr operator U() const noexcept;
};
struct AnyPointer {
  template <class U>
  requires(std::is_pointer_v<U> || std::is_member_pointer_v<U>) constexpr operator U()
      const noexcept;
};

template <std::size_t>
using Scalar = AnyScalar;

template <class T, std::size_t... I>
consteval bool takes_scalars(std::index_sequence<I...>) {
  return requires { T{Scalar<I>{}...}; };
}
template <class T, std::size_t... I>
consteval bool takes_pointer_after(std::index_sequence<I...>) {
  return requires { T{Scalar<I>{}..., AnyPointer{}}; };
}

/// The number of scalars (up to the first member that hides its own) in an aggregate.
template <class T, std::size_t N = 0>
consteval std::size_t scalar_count() {
  if constexpr (N > kMaxEntryBytes || !takes_scalars<T>(std::make_index_sequence<N + 1>{})) {
    return N;
  } else {
    return scalar_count<T, N + 1>();
  }
}
template <class T, std::size_t... I>
consteval bool any_pointer_among(std::index_sequence<I...>) {
  return (takes_pointer_after<T>(std::make_index_sequence<I>{}) || ...);
}

template <class T>
consteval bool holds_pointer();

/// Class types of the standard library with constructors, into which a check cannot look.
template <class T>
struct StandardPointerHolder : std::false_type {};
template <class Char, class Traits>
struct StandardPointerHolder<std::basic_string_view<Char, Traits>> : std::true_type {};
template <class T, std::size_t N>
struct StandardPointerHolder<std::span<T, N>> : std::true_type {};
template <class T>
struct StandardPointerHolder<std::optional<T>> : std::bool_constant<holds_pointer<T>()> {};
template <class... T>
struct StandardPointerHolder<std::variant<T...>> : std::bool_constant<(holds_pointer<T>() || ...)> {
};

/// Whether a type has pointers, also hidden in aggregates; only pointers in a class with
/// constructors, and behind the first member of a union, are not found.
template <class T>
consteval bool holds_pointer() {
  if constexpr (std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>) {
    return true;
  } else if constexpr (StandardPointerHolder<T>::value) {
    return true;
  } else if constexpr ((std::is_class_v<T> || std::is_union_v<T>)&&std::is_aggregate_v<T> &&
                       sizeof(T) >= sizeof(void*)) {
    // An aggregate of more scalars than fit in a cache line cannot be a Cell; looking at its first
    // 64 keeps compile times short.
    return any_pointer_among<T>(std::make_index_sequence<scalar_count<T>()>{});
  } else {
    return false;
  }
}

/// The error messages, which every Cell, Versioned and List instantiates.
template <class T>
struct EntryCheck {
  static_assert(!std::is_reference_v<T>,
                "dunlin: an entry of a row cannot be a reference: it would refer to memory of "
                "another process. Store the value itself.");
  static_assert(!std::is_const_v<T>,
                "dunlin: an entry of a row cannot be const: the owner of the row must be able to "
                "write it, and to everyone else it is const anyway.");
  static_assert(
      !std::is_array_v<T>,
      "dunlin: an entry of a row cannot be a C array. Use std::array<T, N> for one entry, "
      "or std::array<dunlin::Cell<T>, N> for a column of N entries.");
  static_assert(
      !holds_pointer<std::remove_cv_t<std::remove_reference_t<T>>>(),
      "dunlin: an entry of a row cannot be or hold a pointer: an address means nothing in "
      "another process. Store an index or the value itself.");
  static_assert(std::is_trivially_copyable_v<T>,
                "dunlin: an entry of a row must be trivially copyable: its bytes travel between "
                "processes as they are (so no std::string, std::vector, std::map, ...). Use "
                "std::array for fixed-size data, dunlin::List for a growing one.");
  static_assert(
      std::is_default_constructible_v<T>,
      "dunlin: an entry of a row must be default constructible: every row starts out with "
      "a value before its owner has written one.");
  static constexpr bool ok = true;
};

template <class T>
struct CellCheck : EntryCheck<T> {
  static_assert(sizeof(std::remove_reference_t<T>) <= kMaxEntryBytes,
                "dunlin: the entry of a Cell must fit in a cache line (64 bytes). Use "
                "dunlin::Versioned<T> for a larger value that must be seen whole, "
                "std::array<dunlin::Cell<T>, N> for independent entries, or dunlin::List<T, N>.");
};

template <class T>
inline constexpr bool kAlwaysFalse = false;

}  // namespace dunlin::detail
