#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/node.hpp>
#include <dunlin/table.hpp>

#include "polled.hpp"

/// A table whose row this process learns when it runs. It knows no Python object (PY-1): the values
/// of a row are the memory of the C++ struct of plain members here.
namespace dunlin::python {

/// Where the values of a row are in a table's memory, and in the struct.
struct RowLayout {
  Layout cells;
  std::vector<std::size_t> offsets;  // of the columns in the struct
  std::size_t bytes = 0;             // of the struct
  bool same = true;                  // the struct is at the same offsets in a table's memory
};

/// Memory for rows, which begin on cache lines.
class RowMemory {
 public:
  explicit RowMemory(std::size_t bytes)
      : lines_(round_up(bytes, kCacheLineBytes) / kCacheLineBytes) {}
  [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(lines_.data()); }
  [[nodiscard]] const std::byte* data() const noexcept {
    return reinterpret_cast<const std::byte*>(lines_.data());
  }

 private:
  struct alignas(kCacheLineBytes) Line {
    std::byte bytes[kCacheLineBytes] = {};
  };
  std::vector<Line> lines_;
};

/// A copy of all rows.
struct TableCopy {
  RowMemory rows{0};
  std::size_t stride_bytes = 0;
  std::size_t my_row = 0;
  std::uint64_t view = 0;
  std::vector<std::string> members = {};  // in the order of the rows
  std::vector<bool> alive = {};
  std::vector<std::uint64_t> seen = {};  // the words of the table, from before the copy
};

class TableObject final : public node::NodeObject {
 public:
  /// `initial`: the values that each row begins with.
  TableObject(node::Engine& engine, std::string name, RowLayout layout,
              std::vector<std::byte> initial);

  // --- under the lock ----------------------------------------------------------------------------
  [[nodiscard]] const RowLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] TableCore& core() noexcept { return *core_; }
  /// Stores these columns of the struct `values` in the own row, and publishes them in this order.
  void publish(std::span<const std::size_t> columns, std::span<const std::byte> values);
  [[nodiscard]] TableCopy copy() const;
  /// The values of one row. Throws Error if there is no such row.
  [[nodiscard]] std::vector<std::byte> values_of(std::size_t row) const;
  /// Whether any word of the table differs from those of the copy, or the view does.
  [[nodiscard]] bool has_changed_since(const TableCopy& copy) const noexcept;
  [[nodiscard]] PolledCalls& calls() noexcept { return calls_; }

  std::size_t poll() override;
  void view_changed() override { make(); }
  [[nodiscard]] bool handed_over() override { return !core_ || core_->settled(); }
  void end() noexcept override { core_.reset(); }

 private:
  void make();
  void load(std::size_t row, std::byte* values) const;

  node::Engine& engine_;
  const std::string name_;
  const RowLayout layout_;
  const std::vector<std::byte> initial_;
  mutable RowMemory scratch_;
  std::unique_ptr<TableCore> core_;
  std::vector<std::string> members_;
  PolledCalls calls_{PolledCalls::Order::any};
};

/// A truth about a table. It is a pure function; throws Error for a row that the table lacks.
using TableTruth = std::function<bool(const TableCore& table)>;

/// A handle of a table, for any thread, without the GIL.
class RawTableHandle {
 public:
  /// Throws Error if this process has the table already with another row.
  RawTableHandle(std::shared_ptr<node::Engine> engine, const std::string& name, RowLayout layout,
                 std::vector<std::byte> initial);
  void publish(std::span<const std::size_t> columns, std::span<const std::byte> values);
  /// Returns what `look(TableObject&)` returns.
  template <class Look>
  auto look(Look&& look) const {
    return engine_->look_with_lock([&] { return look(*object_); });
  }
  /// Ends once it is true.
  [[nodiscard]] Future<void> until(TableTruth truth);
  /// Ends once the table differs from the copy; null: at once.
  [[nodiscard]] Future<TableCopy> changed_since(std::shared_ptr<const TableCopy> copy);

 private:
  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<TableObject> object_;
};

}  // namespace dunlin::python
