#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dunlin/table/entry_check.hpp>
#include <dunlin/table/entry_type.hpp>

/// The fields of a value that is not a single number, as text: "i32,f64*3" for an int and three
/// doubles. The text is part of a layout, so that peers whose values agree in nothing but their
/// size are told apart (TAB-T5). As for pointers, the fields are found by what the type can be
/// brace-initialised from.
namespace dunlin::detail {

inline constexpr std::size_t kMaxDescribedFields = 32;  // one class shows; the others become "..."

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Converts to numbers of one type only.
template <EntryType Type>
struct NumberOf {
  template <Number U>
  requires(entry_type<U>() == Type) constexpr operator U() const noexcept;
};
template <class T, EntryType Type, std::size_t... I>
consteval bool takes_number_after(std::index_sequence<I...>) {
  return requires { T{Scalar<I>{}..., NumberOf<Type>{}}; };
}

/// The type of field I of an aggregate; candidates are tried from the commonest on.
template <class T, std::size_t I, EntryType First, EntryType... Others>
consteval EntryType field_type() {
  if constexpr (takes_number_after<T, First>(std::make_index_sequence<I>{})) {
    return First;
  } else if constexpr (sizeof...(Others) > 0) {
    return field_type<T, I, Others...>();
  } else {
    return EntryType::bytes;
  }
}
template <class T, std::size_t... I>
consteval auto field_types(std::index_sequence<I...>) {
  using enum EntryType;
  return std::array<EntryType, sizeof...(I)>{
      field_type<T, I, i32, i64, u64, f64, u32, f32, u8, i8, boolean, u16, i16>()...};
}

template <class T>
struct ArrayOf : std::false_type {};
template <class T, std::size_t N>
struct ArrayOf<std::array<T, N>> : std::true_type {
  using Element = T;
  static constexpr std::size_t kCount = N;
};

inline void append_field(std::string& to, std::string_view field, std::size_t times) {
  if (!to.empty()) to += ',';
  to += field;
  if (times > 1) to += "*" + std::to_string(times);
}

/// The fields of a T; empty for a class into which this cannot look.
template <class T>
std::string fields_of() {
  std::string text;
  if constexpr (Number<T>) {
    text = describe(entry_type<T>());
  } else if constexpr (ArrayOf<T>::value) {
    const std::string element = fields_of<typename ArrayOf<T>::Element>();
    const bool several = element.find_first_of(",*") != std::string::npos;
    if (!element.empty()) {
      append_field(text, several ? "(" + element + ")" : element, ArrayOf<T>::kCount);
    }
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    constexpr std::size_t kAll = scalar_count<T>();
    constexpr std::size_t kCount = kAll < kMaxDescribedFields ? kAll : kMaxDescribedFields;
    constexpr auto kTypes = field_types<T>(std::make_index_sequence<kCount>{});
    for (std::size_t i = 0; i < kCount;) {
      std::size_t next = i + 1;
      while (next < kCount && kTypes[next] == kTypes[i]) ++next;
      append_field(text, describe(kTypes[i]), next - i);
      i = next;
    }
    if (kAll > kCount) text += ",...";
  }
  return text;
}

/// The fields of a column's values; empty where its type says it all.
template <EntryType Type, class T>
std::string described_fields() {
  if constexpr (Type == EntryType::bytes && !Number<T>) return fields_of<T>();
  return {};
}

}  // namespace dunlin::detail
