#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

#include <dunlin/limits.hpp>
#include <dunlin/table/row_set.hpp>

/// Copies of tables: what Table<Row>::snapshot() returns. A value; any thread may use its own.
namespace dunlin {

template <class Row>
class Table;

/// A constant copy of a table's rows; each entry is consistent, as it was at some moment of the
/// copying. An expression takes it in place of the table: (dunlin::all(&Row::step) >= 1)(snapshot).
template <class Row>
class Snapshot {
  struct alignas(kCacheLineBytes) AlignedRow {  // rows are copied by the word
    Row row{};
    bool alive = false;
  };

 public:
  using row_type = Row;

  class Iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    using reference = const Row&;
    using pointer = const Row*;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    explicit Iterator(const AlignedRow* at) noexcept : at_(at) {}
    reference operator*() const noexcept { return at_->row; }
    pointer operator->() const noexcept { return &at_->row; }
    Iterator& operator++() noexcept { return ++at_, *this; }
    Iterator operator++(int) noexcept { return Iterator(at_++); }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const AlignedRow* at_ = nullptr;
  };

  [[nodiscard]] const Row& operator[](std::size_t i) const noexcept { return rows_[i].row; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  /// The row of the node that made the copy.
  [[nodiscard]] std::size_t my_row() const noexcept { return my_row_; }
  /// Whether the row was not frozen then. For expressions, this and stored() throw Error for a row
  /// that the copy does not have.
  [[nodiscard]] bool alive(std::size_t i) const { return at(i).alive; }
  [[nodiscard]] const Row& stored(std::size_t i) const { return at(i).row; }
  [[nodiscard]] Iterator begin() const noexcept { return Iterator(rows_.data()); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator(rows_.data() + size()); }

 private:
  friend class Table<Row>;
  Snapshot(std::size_t rows, std::size_t my_row) : rows_(rows), my_row_(my_row) {}
  [[nodiscard]] const AlignedRow& at(std::size_t i) const {
    detail::require_row(*this, i);
    return rows_[i];
  }
  std::vector<AlignedRow> rows_;
  std::size_t my_row_;
};

}  // namespace dunlin
