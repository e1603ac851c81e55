#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <dunlin/table/layout.hpp>

namespace dunlin {

/// As much of a table as an expression looks at, without a fabric.
template <class Row>
class Rows {
 public:
  using row_type = Row;
  explicit Rows(std::size_t rows, std::size_t mine = 0)
      : rows_(rows), dead_(rows), my_row_(mine), layout_(layout_of<Row>()) {}

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::size_t my_row() const { return my_row_; }
  [[nodiscard]] bool alive(std::size_t i) const { return dead_[i] == 0; }
  [[nodiscard]] const Row& stored(std::size_t i) const { return rows_[i]; }

  Row& at(std::size_t i) { return rows_.at(i); }
  void kill(std::size_t i) { dead_.at(i) = 1; }

  template <class M>
  [[nodiscard]] const Column* column(M Row::*member) const {
    const auto* at = reinterpret_cast<const std::byte*>(&(rows_[0].*member));
    const auto offset =
        static_cast<std::size_t>(at - reinterpret_cast<const std::byte*>(rows_.data()));
    for (const Column& c : layout_.columns) {
      if (c.offset == offset) return &c;
    }
    return nullptr;
  }

 private:
  std::vector<Row> rows_;
  std::vector<char> dead_;
  std::size_t my_row_;
  Layout layout_;
};

}  // namespace dunlin
