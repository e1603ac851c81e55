#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dunlin/table/conditions.hpp>

/// Ready-made predicates: comparisons over a column, to be given to `Table<Row>::when`. They are
/// pure functions of the table, cost a load and a compare an entry, stop at the first entry that
/// decides, and know their own names for `dunlin top`.
///
///     all(&Row::step) >= 1                         every row's entry
///     any(&Row::failed) == true                    some row's
///     all(&Row::count) >= mine(&Row::count)        against the own row's entry
///     row(3, &Row::load) < 0.5                     one row's entry
///     min(&Row::seq) > std::cref(last_seen)        a reduction, against a variable
///     count(where(&Row::step) >= 2) >= quorum      how many rows satisfy a condition
///     (all(&Row::a) == 1) && !(any(&Row::b) > 7)   combined
///
/// Columns of several entries count entry by entry. `.over({1, 2})`, `.others()` and `.alive()`
/// narrow a column to some rows, to all but the own, or to those whose nodes have not failed.
namespace dunlin {
namespace detail {

/// A column without its comparison yet: the result of all(), any() and where().
template <template <class, class, class, class> class Result, class Row, class M>
struct Quantified : Narrowed<Quantified<Result, Row, M>> {
  M Row::*member;
  explicit Quantified(M Row::*m) : member(m) {}

  template <class Op, class V>
  auto compare(V&& v) && {
    using Operand = decltype(as_value(std::forward<V>(v)));
    return Result<Op, Row, M, Operand>({member, as_value(std::forward<V>(v))},
                                       std::move(this->rows));
  }
};

/// The result of where(...) op value: a condition with its rows, for count().
template <class Op, class Row, class M, class V>
struct ConditionOver : OnRows<Op, Row, M, V> {
  using OnRows<Op, Row, M, V>::OnRows;
};

template <class Q>
concept Comparable = requires(Q q) {
  std::move(q).template compare<Equal>(0);
};

// The six comparisons, for a quantified column and for a value.
template <Comparable Q, class V>
auto operator==(Q q, V&& v) {
  return std::move(q).template compare<Equal>(std::forward<V>(v));
}
template <Comparable Q, class V>
auto operator!=(Q q, V&& v) {
  return std::move(q).template compare<NotEqual>(std::forward<V>(v));
}
template <Comparable Q, class V>
auto operator<(Q q, V&& v) {
  return std::move(q).template compare<Less>(std::forward<V>(v));
}
template <Comparable Q, class V>
auto operator>(Q q, V&& v) {
  return std::move(q).template compare<Greater>(std::forward<V>(v));
}
template <Comparable Q, class V>
auto operator<=(Q q, V&& v) {
  return std::move(q).template compare<AtMost>(std::forward<V>(v));
}
template <Comparable Q, class V>
auto operator>=(Q q, V&& v) {
  return std::move(q).template compare<AtLeast>(std::forward<V>(v));
}

template <class Op, Value A, class B>
auto compare_values(A a, B&& b) {
  return Comparison<Op, A, decltype(as_value(std::forward<B>(b)))>(std::move(a),
                                                                   as_value(std::forward<B>(b)));
}
template <Value A, class B>
auto operator==(A a, B&& b) {
  return compare_values<Equal>(std::move(a), std::forward<B>(b));
}
template <Value A, class B>
auto operator!=(A a, B&& b) {
  return compare_values<NotEqual>(std::move(a), std::forward<B>(b));
}
template <Value A, class B>
auto operator<(A a, B&& b) {
  return compare_values<Less>(std::move(a), std::forward<B>(b));
}
template <Value A, class B>
auto operator>(A a, B&& b) {
  return compare_values<Greater>(std::move(a), std::forward<B>(b));
}
template <Value A, class B>
auto operator<=(A a, B&& b) {
  return compare_values<AtMost>(std::move(a), std::forward<B>(b));
}
template <Value A, class B>
auto operator>=(A a, B&& b) {
  return compare_values<AtLeast>(std::move(a), std::forward<B>(b));
}

template <Boolean A, Boolean B>
auto operator&&(A a, B b) {
  return Both<A, B>(std::move(a), std::move(b));
}
template <Boolean A, Boolean B>
auto operator||(A a, B b) {
  return Either<A, B>(std::move(a), std::move(b));
}
template <Boolean A>
auto operator!(A a) {
  return Opposite<A>(std::move(a));
}

}  // namespace detail

template <class Row, class M>
[[nodiscard]] auto all(M Row::*column) {
  return detail::Quantified<detail::Every, Row, M>{column};
}
template <class Row, class M>
[[nodiscard]] auto any(M Row::*column) {
  return detail::Quantified<detail::Some, Row, M>{column};
}
template <class Row, class M>
[[nodiscard]] auto where(M Row::*column) {
  return detail::Quantified<detail::ConditionOver, Row, M>{column};
}

template <class Op, class Row, class M, class V>
[[nodiscard]] auto count(detail::ConditionOver<Op, Row, M, V> c) {
  return detail::Count<Op, Row, M, V>(std::move(c.condition), std::move(c.rows));
}
template <class Row, class M>
[[nodiscard]] auto min(M Row::*column) {
  return detail::Reduction<detail::MinFold, Row, M>(column);
}
template <class Row, class M>
[[nodiscard]] auto max(M Row::*column) {
  return detail::Reduction<detail::MaxFold, Row, M>(column);
}
template <class Row, class M>
[[nodiscard]] auto sum(M Row::*column) {
  return detail::Reduction<detail::SumFold, Row, M>(column);
}

/// The entry of the own row, or of row `i`, as a value.
template <class Row, class M>
[[nodiscard]] auto mine(M Row::*column) {
  return detail::EntryOfRow<Row, M>(column, detail::EntryOfRow<Row, M>::kMine);
}
template <class Row, class M>
[[nodiscard]] auto row(std::size_t i, M Row::*column) {
  return detail::EntryOfRow<Row, M>(column, i);
}

}  // namespace dunlin
