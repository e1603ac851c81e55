#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dunlin/table/core.hpp>

#include "group/row_format.hpp"
#include "group/view_change.hpp"

/// The view change of one view, on a table of its own: publishes our row, and steps when another
/// one has changed or a member has failed. One thread at a time.
namespace dunlin::group {

class ViewAgreement {
 public:
  struct Options {
    std::string table;  // the table's name
    std::uint64_t view;
    std::vector<Rank> members;  // ranks in the fabric, in the view's order
    std::size_t counts;         // number of senders, over all subgroups
    std::string text;           // describes them: must be equal at all members
  };
  /// Throws Error. Does not wait for the others.
  ViewAgreement(Fabric& fabric, Options options);

  /// Polls the fabric and the table.
  std::size_t poll();
  /// Whether step() has anything to do.
  [[nodiscard]] bool due() const noexcept { return due_; }
  void ask_to_step() noexcept { due_ = true; }
  /// Takes a step of the view change. `input.failed` is filled in here.
  void step(ViewInput input);

  [[nodiscard]] const TableCore& table() const noexcept { return table_; }
  [[nodiscard]] const ViewChange& change() const noexcept { return change_; }
  /// Whether all remaining members have been sent what we know: then the table may go.
  [[nodiscard]] bool settled() const noexcept { return table_.settled(); }
  /// Whether all remaining members know how the view ended.
  [[nodiscard]] bool known_to_all() const noexcept;
  /// Whether a member that does not go on has gone because it asked to, as far as this member sees.
  [[nodiscard]] bool has_left(Rank rank) const noexcept;
  [[nodiscard]] std::string describe() const;

 private:
  void publish() noexcept;
  bool refresh();
  [[nodiscard]] MemberSet failed() const noexcept;

  Fabric& fabric_;
  RowFormat format_;
  TableCore table_;
  ViewChange change_;
  Subscription subscription_;
  std::vector<Row> seen_;  // the rows that others have published
  std::vector<std::uint64_t> revisions_;
  std::uint64_t published_ = 0;
  bool due_ = true;
};

}  // namespace dunlin::group
