#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/table/layout.hpp>

#include "group/view_change.hpp"

/// How the rows of a view change lie in a table: words only, the lengths are the view's. A row is
/// published as a whole, between two equal revisions, so it is read as it was at one moment, or not
/// at all (GRP-C9). A member that dies while it publishes has not published.
namespace dunlin::group {

class RowFormat {
 public:
  /// `counts`: the number of senders in the view, over all subgroups; `text`: short, and equal at
  /// all.
  RowFormat(std::uint32_t members, std::size_t counts, const std::string& text);

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  /// Writes into the owner's own row.
  void write(std::byte* to, const Row& row, std::uint64_t revision) const noexcept;
  [[nodiscard]] std::uint64_t revision(const std::byte* from) const noexcept {
    return load(from + end_at_);
  }
  /// Reads a row; returns false, and does nothing, while the row is being changed. No content of
  /// the row is trusted to fit this view.
  [[nodiscard]] bool read(const std::byte* from, Row& row) const;

 private:
  [[nodiscard]] static std::uint64_t load(const std::byte* at) noexcept;
  [[nodiscard]] std::size_t set_words() const noexcept { return MemberSet::words_for(members_); }
  std::size_t add(const std::string& name, std::size_t count);

  Layout layout_;
  std::uint32_t members_;
  std::size_t counts_;
  std::size_t received_at_ = 0;
  std::size_t trim_at_ = 0;
  std::size_t end_at_ = 0;
};

}  // namespace dunlin::group
