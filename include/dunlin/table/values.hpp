#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/table/row_set.hpp>

/// The values of expressions (table/expression.hpp): constants, variables, single entries and
/// reductions over a column. Each has `value(table)`, `entries(table)`, which is how many entries
/// an evaluation reads, and `describe(table)`.
namespace dunlin::detail {

template <class T>
struct Constant : ValueTag {
  T constant;
  explicit Constant(T v) : constant(std::move(v)) {}
  template <class Table>
  [[gnu::always_inline]] const T& value(const Table&) const {
    return constant;
  }
  template <class Table>
  std::size_t entries(const Table&) const {
    return 0;
  }
  template <class Table>
  std::string describe(const Table&) const {
    if constexpr (std::is_same_v<T, bool>)
      return constant ? "true" : "false";
    else if constexpr (std::is_arithmetic_v<T>)
      return std::to_string(constant);
    else
      return "(value)";
  }
};

template <class T>
struct Variable : ValueTag {
  const T* variable;
  explicit Variable(const T& v) : variable(&v) {}
  template <class Table>
  [[gnu::always_inline]] const T& value(const Table&) const {
    return *variable;
  }
  template <class Table>
  std::size_t entries(const Table&) const {
    return 0;
  }
  template <class Table>
  std::string describe(const Table&) const {
    return "(variable)";
  }
};

template <class Row, class M>
struct EntryOfRow : ValueTag {
  M Row::*member;
  std::size_t row;  // kMine: the own row
  static constexpr std::size_t kMine = std::numeric_limits<std::size_t>::max();
  EntryOfRow(M Row::*m, std::size_t r) : member(m), row(r) {}
  template <class Table>
  [[gnu::always_inline]] auto value(const Table& table) const {
    return value_of(cell_of(table.stored(row == kMine ? table.my_row() : row), member));
  }
  template <class Table>
  std::size_t entries(const Table& table) const {
    if (row != kMine) require_row(table, row);
    return 1;
  }
  template <class Table>
  std::string describe(const Table& table) const {
    const std::string where = row == kMine ? "mine" : "row " + std::to_string(row);
    return where + "." + column_name(table, member);
  }
};

/// Folds a column into one value.
template <class Fold, class Row, class M>
struct Reduction : ValueTag, Narrowed<Reduction<Fold, Row, M>> {
  M Row::*member;
  explicit Reduction(M Row::*m) : member(m) {}

  template <class Table>
  auto value(const Table& table) const {
    auto folded = Fold::template start<EntryOf<M>>();
    this->rows.every(table, [&](const auto& row) {
      return every_entry(cell_of(row, member), [&](const auto& entry) {
        Fold::add(folded, entry);
        return true;
      });
    });
    return folded;
  }
  template <class Table>
  std::size_t entries(const Table& table) const {
    return this->rows.size(table) * MemberTraits<StoredAs<M>>::kCount;
  }
  template <class Table>
  std::string describe(const Table& table) const {
    return std::string(Fold::kName) + "(" + column_name(table, member) + this->rows.describe() +
           ")";
  }
};

/// min and max start from these values, which are their results over no rows.
template <class T>
constexpr T largest() {
  using Limits = std::numeric_limits<T>;
  static_assert(Limits::is_specialized, "dunlin: min and max need numbers.");
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}
template <class T>
constexpr T smallest() {
  using Limits = std::numeric_limits<T>;
  static_assert(Limits::is_specialized, "dunlin: min and max need numbers.");
  return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
}

/// The outermost value in the order of `Op`: the least, or the greatest.
template <class Op>
struct BoundFold {
  static constexpr bool kLeast = std::is_same_v<Op, Less>;
  static constexpr const char* kName = kLeast ? "min" : "max";
  template <class T>
  static constexpr T start() {
    return kLeast ? largest<T>() : smallest<T>();
  }
  template <class T>
  static constexpr void add(T& so_far, const T& next) {
    so_far = (kLeast ? next < so_far : so_far < next) ? next : so_far;
  }
};
using MinFold = BoundFold<Less>;
using MaxFold = BoundFold<Greater>;
/// Integers wrap around, as unsigned ones do.
struct SumFold {
  static constexpr const char* kName = "sum";
  template <class T>
  static constexpr auto start() {
    if constexpr (std::is_floating_point_v<T>)
      return double{0};
    else if constexpr (std::is_signed_v<T>)
      return std::int64_t{0};
    else
      return std::uint64_t{0};
  }
  template <class S, class T>
  static constexpr void add(S& so_far, const T& next) {
    if constexpr (std::is_floating_point_v<S>)
      so_far += static_cast<S>(next);
    else
      so_far =
          static_cast<S>(static_cast<std::uint64_t>(so_far) + static_cast<std::uint64_t>(next));
  }
};

template <class V>
auto as_value(V&& v) {
  using T = std::remove_cvref_t<V>;
  if constexpr (Value<T>)
    return T(std::forward<V>(v));
  else
    return Constant<T>(std::forward<V>(v));
}
template <class T>
auto as_value(std::reference_wrapper<T> v) {
  return Variable<std::remove_const_t<T>>(v.get());
}

}  // namespace dunlin::detail
