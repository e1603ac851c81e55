#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/table/layout.hpp>
#include <dunlin/table/packs.hpp>

/// The parts of expressions (table/expression.hpp): which rows an expression is about, how it walks
/// over entries, and how it compares.
namespace dunlin::detail {

struct BooleanTag {};
struct ValueTag {};
template <class E>
concept Boolean = std::derived_from<E, BooleanTag>;
template <class E>
concept Value = std::derived_from<E, ValueTag>;

/// Throws Error, at registration, for a row that the table does not have.
template <class Table>
void require_row(const Table& table, std::size_t row) {
  if (row < table.size()) return;
  throw Error("predicate: there is no row " + std::to_string(row) + "; the table has rows 0 to " +
              std::to_string(table.size() - 1));
}

/// Which rows an expression is about.
struct RowSet {
  std::optional<std::vector<std::uint32_t>> listed;  // empty optional: all rows
  bool others_only = false;
  bool alive_only = false;

  /// Calls `test(row)` until it returns false; returns whether it never did.
  template <class Table, class Test>
  [[gnu::always_inline]] bool every(const Table& table, Test&& test) const {
    if (!listed && !others_only && !alive_only) [[likely]] {
      return every_between(table, 0, table.size(), test);
    }
    if (!listed && !alive_only) {
      return every_between(table, 0, table.my_row(), test) &&
             every_between(table, table.my_row() + 1, table.size(), test);
    }
    return every_of_some(table, test);
  }
  /// How many rows an evaluation looks at, at most; throws Error if a listed row does not exist.
  template <class Table>
  [[nodiscard]] std::size_t size(const Table& table) const {
    if (!listed) return table.size();
    for (const std::uint32_t row : *listed) require_row(table, row);
    return listed->size();
  }
  [[nodiscard]] std::string describe() const {
    std::string text;
    if (listed) {
      for (const std::uint32_t i : *listed)
        text += (text.empty() ? " of rows " : ",") + std::to_string(i);
      if (listed->empty()) text = " of no rows";
    }
    if (others_only) text += listed ? " others" : " of others";
    if (alive_only) text += listed || others_only ? " alive" : " of alive";
    return text;
  }

 private:
  template <class Table, class Test>
  [[gnu::always_inline]] static bool every_between(const Table& table, std::size_t begin,
                                                   std::size_t end, Test& test) {
    if constexpr (requires { table.unfrozen_rows(); }) {
      if (const auto* row = table.unfrozen_rows()) [[likely]] {
        // The rows are a known distance apart, which saves looking up, by a load, where each is.
        for (std::size_t i = begin; i < end; ++i) {
          if (!test(*table.row_at(row, i))) return false;
        }
        return true;
      }
    }
    for (std::size_t i = begin; i < end; ++i) {
      if (!test(table.stored(i))) return false;
    }
    return true;
  }
  template <class Table, class Test>
  bool every_of_some(const Table& table, Test&& test) const {
    const std::size_t count = listed ? listed->size() : table.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t row = listed ? (*listed)[i] : i;
      if (others_only && row == table.my_row()) continue;
      if (alive_only && !table.alive(row)) continue;
      if (!test(table.stored(row))) return false;
    }
    return true;
  }
};

/// An expression about all rows, until it is narrowed to some.
template <class Self>
struct Narrowed {
  RowSet rows{};
  Self over(std::vector<std::uint32_t> some) && {
    rows.listed = std::move(some);
    return std::move(static_cast<Self&>(*this));
  }
  Self others() && {
    rows.others_only = true;
    return std::move(static_cast<Self&>(*this));
  }
  Self alive() && {
    rows.alive_only = true;
    return std::move(static_cast<Self&>(*this));
  }
};

/// The value of a cell, or of a plain member in a copy of a row.
template <class M>
[[gnu::always_inline]] inline auto value_of(const M& member) {
  if constexpr (HasCells<M>::value)
    return member.load();
  else
    return member;
}
/// The entries of a member, whether it is one cell or an array of them.
template <class M, class Test>
[[gnu::always_inline]] inline bool every_entry(const M& member, Test&& test) {
  if constexpr (SingleEntry<M>) {
    return test(value_of(member));
  } else {
    for (const auto& element : member) {
      if (!every_entry(element, test)) return false;
    }
    return true;
  }
}

/// The operands of a comparison are converted to this type, unless both are integers.
template <class A, class B>
using Common = std::common_type_t<A, B>;

/// Comparisons that are right for integers of any two types.
struct Equal {
  static constexpr const char* kSign = " == ";
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    if constexpr (PlainIntegral<A> && PlainIntegral<B>)
      return std::cmp_equal(a, b);
    else
      return static_cast<Common<A, B>>(a) == static_cast<Common<A, B>>(b);
  }
  template <class Pack>
  [[gnu::always_inline]] static auto pack(Pack a, Pack b) {
    return a == b;
  }
};
struct Less {
  static constexpr const char* kSign = " < ";
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    if constexpr (PlainIntegral<A> && PlainIntegral<B>)
      return std::cmp_less(a, b);
    else
      return static_cast<Common<A, B>>(a) < static_cast<Common<A, B>>(b);
  }
  template <class Pack>
  [[gnu::always_inline]] static auto pack(Pack a, Pack b) {
    return a < b;
  }
};
/// This is not the opposite of Less if there is a NaN, for which both are false.
struct AtLeast {
  static constexpr const char* kSign = " >= ";
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    if constexpr (std::is_floating_point_v<A> || std::is_floating_point_v<B>)
      return static_cast<Common<A, B>>(a) >= static_cast<Common<A, B>>(b);
    else
      return !Less{}(a, b);
  }
  template <class Pack>
  [[gnu::always_inline]] static auto pack(Pack a, Pack b) {
    return a >= b;
  }
};
template <class Op>
struct Swapped {
  static constexpr const char* kSign = std::is_same_v<Op, Less> ? " > " : " <= ";
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return Op{}(b, a);
  }
  template <class Pack>
  [[gnu::always_inline]] static auto pack(Pack a, Pack b) {
    return Op::pack(b, a);
  }
};
template <class Op>
struct Negated {
  static constexpr const char* kSign = " != ";
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return !Op{}(a, b);
  }
  template <class Pack>
  [[gnu::always_inline]] static auto pack(Pack a, Pack b) {
    return ~Op::pack(a, b);
  }
};
using Greater = Swapped<Less>;
using NotEqual = Negated<Equal>;
using AtMost = Swapped<AtLeast>;

/// Whether `Op` holds between every entry of a member and the value.
template <class Op, class M, class V>
[[gnu::always_inline]] inline bool every_entry_is(const M& member, const V& value) {
  if constexpr (PackTraits<M>::kPacked) {
    using T = typename PackTraits<M>::value_type;
    if (fits<T>(value)) return every_packed<Op>(member, static_cast<T>(value));
  }
  return every_entry(member, [&](const auto& entry) { return Op{}(entry, value); });
}

template <class M>
using EntryOf = typename MemberTraits<StoredAs<M>>::value_type;

template <class Table, class M, class Row>
std::string column_name(const Table& table, M Row::*member) {
  static_assert(std::is_same_v<typename Table::row_type, Row>,
                "dunlin: the expression is about a column of another row type than the table's.");
  const Column* column = table.column(member);
  return column == nullptr ? "?" : column->name;
}

}  // namespace dunlin::detail
