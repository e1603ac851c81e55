#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <dunlin/table/values.hpp>

/// The truths of expressions (table/expression.hpp): conditions on every, some or a number of rows,
/// comparisons of values, and their combinations.
namespace dunlin::detail {

/// The comparison "row.member op value", for one row at a time.
template <class Op, class Row, class M, class V>
struct Condition {
  M Row::*member;
  V value;
  template <class Table>
  std::string describe(const Table& table) const {
    return column_name(table, member) + Op::kSign + value.describe(table);
  }
};

/// A condition and the rows that it is about.
template <class Op, class Row, class M, class V>
struct OnRows {
  Condition<Op, Row, M, V> condition;
  RowSet rows;
  OnRows(Condition<Op, Row, M, V> c, RowSet r) : condition(std::move(c)), rows(std::move(r)) {}
  template <class Table>
  std::size_t entries(const Table& table) const {
    return rows.size(table) * MemberTraits<StoredAs<M>>::kCount + condition.value.entries(table);
  }

 protected:
  template <class Table>
  std::string describe_as(const char* quantifier, const Table& table) const {
    return std::string(quantifier) + "(" + column_name(table, condition.member) + rows.describe() +
           ")" + Op::kSign + condition.value.describe(table);
  }
};

template <class Op, class Row, class M, class V>
struct Every : BooleanTag, OnRows<Op, Row, M, V> {
  using OnRows<Op, Row, M, V>::OnRows;
  template <class Table>
  [[gnu::always_inline]] bool operator()(const Table& table) const {
    const auto& against = this->condition.value.value(table);
    return this->rows.every(table, [&](const auto& row) {
      return every_entry_is<Op>(cell_of(row, this->condition.member), against);
    });
  }
  template <class Table>
  std::string describe(const Table& table) const {
    return this->describe_as("all", table);
  }
};

template <class Op, class Row, class M, class V>
struct Some : BooleanTag, OnRows<Op, Row, M, V> {
  using OnRows<Op, Row, M, V>::OnRows;
  template <class Table>
  [[gnu::always_inline]] bool operator()(const Table& table) const {
    const auto& against = this->condition.value.value(table);
    return !this->rows.every(table, [&](const auto& row) {
      return every_entry_is<Negated<Op>>(cell_of(row, this->condition.member), against);
    });
  }
  template <class Table>
  std::string describe(const Table& table) const {
    return this->describe_as("any", table);
  }
};

/// How many rows satisfy the condition in all their entries.
template <class Op, class Row, class M, class V>
struct Count : ValueTag, OnRows<Op, Row, M, V> {
  using OnRows<Op, Row, M, V>::OnRows;
  template <class Table>
  std::size_t value(const Table& table) const {
    const auto& against = this->condition.value.value(table);
    std::size_t count = 0;
    this->rows.every(table, [&](const auto& row) {
      count += every_entry(cell_of(row, this->condition.member),
                           [&](const auto& e) { return Op{}(e, against); });
      return true;
    });
    return count;
  }
  template <class Table>
  std::string describe(const Table& table) const {
    return "count(" + this->condition.describe(table) + this->rows.describe() + ")";
  }
};

template <class Op, class A, class B>
struct Comparison : BooleanTag {
  A a;
  B b;
  Comparison(A left, B right) : a(std::move(left)), b(std::move(right)) {}
  template <class Table>
  [[gnu::always_inline]] bool operator()(const Table& table) const {
    return Op{}(a.value(table), b.value(table));
  }
  template <class Table>
  std::size_t entries(const Table& table) const {
    return a.entries(table) + b.entries(table);
  }
  template <class Table>
  std::string describe(const Table& table) const {
    return a.describe(table) + Op::kSign + b.describe(table);
  }
};

template <Boolean A, Boolean B>
struct Both : BooleanTag {
  A a;
  B b;
  Both(A left, B right) : a(std::move(left)), b(std::move(right)) {}
  template <class Table>
  bool operator()(const Table& table) const {
    return a(table) && b(table);
  }
  template <class Table>
  std::size_t entries(const Table& table) const {
    return a.entries(table) + b.entries(table);
  }
  template <class Table>
  std::string describe(const Table& t) const {
    return "(" + a.describe(t) + ") && (" + b.describe(t) + ")";
  }
};
template <Boolean A, Boolean B>
struct Either : BooleanTag {
  A a;
  B b;
  Either(A left, B right) : a(std::move(left)), b(std::move(right)) {}
  template <class Table>
  bool operator()(const Table& table) const {
    return a(table) || b(table);
  }
  template <class Table>
  std::size_t entries(const Table& table) const {
    return a.entries(table) + b.entries(table);
  }
  template <class Table>
  std::string describe(const Table& t) const {
    return "(" + a.describe(t) + ") || (" + b.describe(t) + ")";
  }
};
template <Boolean A>
struct Opposite : BooleanTag {
  A a;
  explicit Opposite(A operand) : a(std::move(operand)) {}
  template <class Table>
  bool operator()(const Table& table) const {
    return !a(table);
  }
  template <class Table>
  std::size_t entries(const Table& table) const {
    return a.entries(table);
  }
  template <class Table>
  std::string describe(const Table& table) const {
    return "!(" + a.describe(table) + ")";
  }
};

}  // namespace dunlin::detail
