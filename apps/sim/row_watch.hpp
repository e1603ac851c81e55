#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/table/core.hpp>

namespace dunlin::app::sim {

/// Watches all rows of the tables of groups and multicasts, as one member of a simulated group sees
/// them between its polls. Monotonic columns never go back. The rows of members that have failed,
/// or are in the member's view no more, stay as they are.
class RowWatch {
 public:
  /// To be called after each poll, for each table. `view` is the present view.
  void look(const TableCore& table, const View& view);
  /// The first that was wrong, as a sentence; empty if nothing was.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  /// Whether the own row of the newest view has a promise, and does not know the end.
  [[nodiscard]] bool agreeing() const noexcept { return agreeing_; }

 private:
  enum class Growth : std::uint8_t { none, number, bits };  // what of a word never goes back
  struct Seen {
    std::string table;
    std::uint64_t generation;
    std::vector<Growth> growth;       // by word of a row
    std::vector<std::uint64_t> rows;  // all their words
    std::vector<bool> still;          // by row: whether it must not change any more
    std::uint64_t view = 0;           // the view at that time
  };

  [[nodiscard]] static std::vector<Growth> growth_in(const TableCore& table);
  [[nodiscard]] Seen& seen_of(const TableCore& table);
  [[nodiscard]] static bool is_shaped(const TableCore& table, const Seen& seen);
  void compare(const TableCore& table, Seen& seen, std::size_t row);
  void complain(const TableCore& table, std::size_t row, const std::string& what);
  void note_agreeing(const TableCore& table);

  std::vector<Seen> tables_;
  bool agreeing_ = false;
  std::string fault_;
};

}  // namespace dunlin::app::sim
