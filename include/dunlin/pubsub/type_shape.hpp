#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <dunlin/limits.hpp>
#include <dunlin/pubsub/type_support.hpp>
#include <dunlin/table/entry_check.hpp>
#include <dunlin/table/entry_type.hpp>
#include <dunlin/table/layout.hpp>
#include <dunlin/table/reflect.hpp>

namespace dunlin::detail {

/// Never called; std::optional's constructor, which is only examined, needs to see it defined.
template <class U>
constexpr AnyMember::operator U() const noexcept {
  __builtin_unreachable();
}

}  // namespace dunlin::detail

/// Which types can be a topic's type, and what shape they have: plain, an array, a sequence, an
/// optional member, or a struct of these.
namespace dunlin::pubsub::detail {

using dunlin::detail::kAlwaysFalse;
using dunlin::detail::Number;
using dunlin::detail::tie_members;

template <class T>
consteval Extensibility extensibility() {
  if constexpr (requires { T::kExtensibility; })
    return T::kExtensibility;
  else
    return Extensibility::final_;
}

template <class T>
struct ArrayTraits : std::false_type {};
template <class T, std::size_t N>
struct ArrayTraits<std::array<T, N>> : std::true_type {
  using Element = T;
  static constexpr std::size_t kCount = N;
};
/// The innermost element type of an array of arrays: XTypes knows it as one array of several
/// dimensions.
template <class T>
struct ArrayLeaf {
  using type = T;
};
template <class T, std::size_t N>
struct ArrayLeaf<std::array<T, N>> : ArrayLeaf<T> {};
template <class T>
struct SequenceTraits : std::false_type {};
template <class T>
struct SequenceTraits<std::vector<T>> : std::true_type {
  using Element = T;
};
template <class T>
struct OptionalTraits : std::false_type {};
template <class T>
struct OptionalTraits<std::optional<T>> : std::true_type {
  using Value = T;
};
template <class T>
concept Array = ArrayTraits<T>::value;
template <class T>
concept Sequence = SequenceTraits<T>::value;
template <class T>
concept Optional = OptionalTraits<T>::value;
template <class T>
concept Struct = std::is_class_v<T> && std::is_aggregate_v<T> && !Array<T>;

/// The error messages for a type that cannot be a topic's type.
template <class T>
consteval bool check_topic_type() {
  if constexpr (Number<T>) {
    static_assert(!std::is_same_v<T, long double>, "dunlin: a topic's type has no long double.");
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return true;
  } else if constexpr (Array<T>) {
    return check_topic_type<typename ArrayTraits<T>::Element>();
  } else if constexpr (Sequence<T>) {
    static_assert(!std::is_same_v<typename SequenceTraits<T>::Element, bool>,
                  "dunlin: std::vector<bool> has no elements; use std::vector<std::uint8_t>.");
    return check_topic_type<typename SequenceTraits<T>::Element>();
  } else if constexpr (Optional<T>) {
    return check_topic_type<typename OptionalTraits<T>::Value>();
  } else {
    static_assert(!std::is_pointer_v<T> && !std::is_reference_v<T>,
                  "dunlin: a topic's type holds no pointer: an address means nothing in another "
                  "process.");
    static_assert(Struct<T>,
                  "dunlin: a topic's type is a plain struct of numbers, enums, std::array, "
                  "std::string, std::vector, std::optional, and structs of these.");
    constexpr std::size_t kCount = dunlin::detail::member_count<T>();
    static_assert(kCount > 0, "dunlin: a topic's type has at least one member.");
    static_assert(kCount <= kMaxColumns,
                  "dunlin: a struct of a topic's type has at most 32 members (kMaxColumns), and no "
                  "C arrays.");
    static_assert(!dunlin::detail::has_base<T>(), "dunlin: a topic's type inherits nothing.");
    using Members = decltype(tie_members(std::declval<T&>()));
    return []<class... M>(std::tuple<M&...>*) {
      return (check_topic_type<M>() && ...);
    }(static_cast<Members*>(nullptr));
  }
}

/// Whether the bytes of a T mean the same value at all members: numbers, and arrays and structs of
/// them.
template <class T>
consteval bool is_plain() {
  if constexpr (Number<T>) {
    return true;
  } else if constexpr (Array<T>) {
    return is_plain<typename ArrayTraits<T>::Element>();
  } else if constexpr (Struct<T>) {
    if constexpr (extensibility<T>() != Extensibility::final_) return false;
    using Members = decltype(tie_members(std::declval<T&>()));
    return []<class... M>(std::tuple<M&...>*) {
      return (is_plain<M>() && ...);
    }(static_cast<Members*>(nullptr)) &&
           std::is_trivially_copyable_v<T>;
  } else {
    return false;
  }
}

template <class T>
consteval bool has_bool() {
  if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else if constexpr (Array<T>) {
    return has_bool<typename ArrayTraits<T>::Element>();
  } else if constexpr (Struct<T>) {
    using Members = decltype(tie_members(std::declval<T&>()));
    return []<class... M>(std::tuple<M&...>*) {
      return (has_bool<M>() || ...);
    }(static_cast<Members*>(nullptr));
  } else {
    return false;
  }
}

/// Whether each bool in the value is 0 or 1; reads no bool before its byte is known to be either.
template <class T>
bool bools_are_valid(const T& value) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    unsigned char byte = 0;
    std::memcpy(&byte, &value, 1);
    return byte <= 1;
  } else if constexpr (!has_bool<T>()) {
    return true;
  } else if constexpr (Array<T>) {
    for (const auto& element : value)
      if (!bools_are_valid(element)) return false;
    return true;
  } else {
    return std::apply([](const auto&... m) { return (bools_are_valid(m) && ...); },
                      tie_members(value));
  }
}

}  // namespace dunlin::pubsub::detail
