#include "conditions.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dunlin/fabric/memory.hpp>

#include "numbers.hpp"

/// Ready-made conditions, from the tuples that dunlin/conditions.py makes of them. What they mean
/// is what table/expression.hpp says of those in C++.
namespace dunlin::python {
namespace {

/// Holds each number of 64 bits, and each double, as it is.
using Number = long double;
static_assert(std::numeric_limits<Number>::digits >= 64);
using Value = std::function<Number(const TableCore&)>;

enum class Op : std::uint8_t { equal, not_equal, less, at_most, greater, at_least };

[[nodiscard]] bool holds(Op op, Number a, Number b) noexcept {
  switch (op) {
    case Op::equal:
      return a == b;
    case Op::not_equal:
      return a != b;
    case Op::less:
      return a < b;
    case Op::at_most:
      return a <= b;
    case Op::greater:
      return a > b;
    case Op::at_least:
      return a >= b;
  }
  return false;
}
[[nodiscard]] Op op_of(nb::handle sign) {
  constexpr std::array<const char*, 6> kSigns{"==", "!=", "<", "<=", ">", ">="};
  const auto its = nb::cast<std::string>(sign);
  return static_cast<Op>(std::ranges::find(kSigns, its) - kSigns.begin());
}

/// A column of numbers.
class Numbers {
 public:
  Numbers(const Layout& layout, nb::handle name) {
    const auto its = nb::cast<std::string>(name);
    const auto found = std::ranges::find(layout.columns, its, &Column::name);
    if (found == layout.columns.end())
      throw nb::value_error(("the table has no column '" + its + "'").c_str());
    if (found->type > EntryType::f64)
      throw nb::type_error(("column '" + its + "' has no numbers to compare").c_str());
    column_ = *found;
  }
  [[nodiscard]] std::size_t count() const noexcept { return column_.count; }
  [[nodiscard]] Number entry(const TableCore& table, std::size_t row, std::size_t i) const {
    const std::byte* const at = table.row(row) + column_.offset + i * column_.stride_bytes;
    return with_number(column_.type, [at]<class T>() -> Number {
      using Word = memory::detail::Unsigned<sizeof(T)>;
      const Word word = memory::load(*reinterpret_cast<const Word*>(at));
      T value;
      std::memcpy(&value, &word, sizeof value);
      return static_cast<Number>(value);
    });
  }
  /// Whether `test` is true of all entries of the row.
  template <class Test>
  [[nodiscard]] bool every(const TableCore& table, std::size_t row, const Test& test) const {
    for (std::size_t i = 0; i < count(); ++i)
      if (!test(entry(table, row, i))) return false;
    return true;
  }

 private:
  Column column_;
};

/// The rows that a condition is about.
class Rows {
 public:
  explicit Rows(nb::handle description) {
    const auto parts = nb::cast<nb::tuple>(description);
    listed_ = nb::cast<std::optional<std::vector<std::size_t>>>(parts[0]);
    others_only_ = nb::cast<bool>(parts[1]);
    alive_only_ = nb::cast<bool>(parts[2]);
  }
  /// Calls `test(row)` until it returns false; returns whether it never did.
  template <class Test>
  bool every(const TableCore& table, const Test& test) const {
    const std::size_t count = listed_ ? listed_->size() : table.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t row = listed_ ? (*listed_)[i] : i;
      table.require_row(row);
      if (others_only_ && row == table.my_row()) continue;
      if (alive_only_ && !table.alive(row)) continue;
      if (!test(row)) return false;
    }
    return true;
  }

 private:
  std::optional<std::vector<std::size_t>> listed_;
  bool others_only_ = false;
  bool alive_only_ = false;
};

/// ("row", index or None for the own row, column)
Value entry_of_row(const Layout& layout, const nb::tuple& parts) {
  const auto row = nb::cast<std::optional<std::size_t>>(parts[1]);
  return [row, numbers = Numbers(layout, parts[2])](const TableCore& table) {
    const std::size_t its = row.value_or(table.my_row());
    table.require_row(its);
    return numbers.entry(table, its, 0);
  };
}

/// ("min" or "max" or "sum", column, rows)
Value reduction_of(const Layout& layout, const nb::tuple& parts, const std::string& kind) {
  constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
  const Number start = kind == "sum" ? 0 : kind == "min" ? kInfinity : -kInfinity;
  Number (*const fold)(Number, Number) = kind == "sum" ? +[](Number a, Number b) { return a + b; }
                                         : kind == "min"
                                             ? +[](Number a, Number b) { return std::min(a, b); }
                                             : +[](Number a, Number b) { return std::max(a, b); };
  return [start, fold, numbers = Numbers(layout, parts[1]),
          rows = Rows(parts[2])](const TableCore& table) {
    Number folded = start;
    rows.every(table, [&](std::size_t row) {
      return numbers.every(table, row, [&](Number entry) {
        folded = fold(folded, entry);
        return true;
      });
    });
    return folded;
  };
}

/// ("count", column, rows, sign, value): how many rows satisfy it in all their entries.
Value count_of(const Layout& layout, const nb::tuple& parts) {
  return [numbers = Numbers(layout, parts[1]), rows = Rows(parts[2]), op = op_of(parts[3]),
          against = value_of(layout, parts[4])](const TableCore& table) {
    const Number other = against(table);
    std::size_t count = 0;
    rows.every(table, [&](std::size_t row) {
      count += numbers.every(table, row, [&](Number entry) { return holds(op, entry, other); });
      return true;
    });
    return static_cast<Number>(count);
  };
}

/// ("all" or "any", column, rows, sign, value)
TableTruth quantified(const Layout& layout, const nb::tuple& parts, bool all) {
  return [all, numbers = Numbers(layout, parts[1]), rows = Rows(parts[2]), op = op_of(parts[3]),
          against = value_of(layout, parts[4])](const TableCore& table) {
    const Number other = against(table);
    const auto test = [&](Number entry) { return holds(op, entry, other) == all; };
    return rows.every(table, [&](std::size_t row) { return numbers.every(table, row, test); }) ==
           all;
  };
}

}  // namespace

Value value_of(const Layout& layout, nb::handle description) {
  if (!PyTuple_Check(description.ptr())) {
    if (PyFloat_Check(description.ptr()))
      return
          [number = nb::cast<double>(description)](const TableCore&) -> Number { return number; };
    const nb::object index = nb::steal(PyNumber_Index(description.ptr()));
    if (!index.is_valid()) {
      PyErr_Clear();
      return [number = number_from<double>(description, "a condition")](
                 const TableCore&) -> Number { return number; };
    }
    const bool is_negative = nb::cast<bool>(index.attr("__lt__")(0));
    const Number number =
        is_negative ? static_cast<Number>(number_from<std::int64_t>(index, "a condition"))
                    : static_cast<Number>(number_from<std::uint64_t>(index, "a condition"));
    return [number](const TableCore&) { return number; };
  }
  const auto parts = nb::borrow<nb::tuple>(description);
  const auto kind = nb::cast<std::string>(parts[0]);
  if (kind == "row") return entry_of_row(layout, parts);
  if (kind == "count") return count_of(layout, parts);
  return reduction_of(layout, parts, kind);
}

TableTruth truth_of(const Layout& layout, nb::handle description) {
  const auto parts = nb::cast<nb::tuple>(description);
  const auto kind = nb::cast<std::string>(parts[0]);
  if (kind == "all" || kind == "any") return quantified(layout, parts, kind == "all");
  if (kind == "compare")
    return [op = op_of(parts[1]), a = value_of(layout, parts[2]), b = value_of(layout, parts[3])](
               const TableCore& table) { return holds(op, a(table), b(table)); };
  if (kind == "not")
    return [a = truth_of(layout, parts[1])](const TableCore& table) { return !a(table); };
  return [both = kind == "and", a = truth_of(layout, parts[1]), b = truth_of(layout, parts[2])](
             const TableCore& table) { return both ? a(table) && b(table) : a(table) || b(table); };
}

}  // namespace dunlin::python
