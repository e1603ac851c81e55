#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/table/cell.hpp>
#include <dunlin/table/entry_type.hpp>
#include <dunlin/table/member.hpp>
#include <dunlin/table/plain_row.hpp>
#include <dunlin/table/reflect.hpp>
#include <dunlin/table/value_fields.hpp>

/// A Layout describes the bytes of a row: its columns with name, type, offset and count. The core
/// of the table, `dunlin top` and other languages know rows only by their layout;
/// `layout_of<Row>()` derives it from a struct. Layouts are values; any thread may use its own.
namespace dunlin {

struct Column {
  std::string name;
  ColumnKind kind;
  EntryType type;
  std::size_t offset;        // from the beginning of the row
  std::size_t count;         // entries of a word or stamped column; capacity of a list
  std::size_t entry_bytes;   // bytes of a value
  std::size_t stride_bytes;  // distance from one entry to the next
  std::size_t bytes;         // bytes of the whole column
  std::string fields = {};   // for a value of type bytes: "i32,f64*3"; empty if not known
  friend bool operator==(const Column&, const Column&) = default;
};

struct Layout {
  std::vector<Column> columns;
  std::size_t row_bytes = 0;

  /// The layout as text: one line a column, "name type kind @offset xcount =entry /stride +bytes",
  /// and the row's size. Peers must agree on this text, and a refusal prints it. parse() reads it
  /// back.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static Layout parse(std::string_view text);
  [[nodiscard]] std::uint64_t hash() const;
  /// Throws Error if a limit is exceeded or columns overlap; every table checks its own layout.
  void check() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

namespace detail {

template <class M>
inline constexpr bool kHasPointer =
    std::is_pointer_v<M> || std::is_member_pointer_v<M> || std::is_null_pointer_v<M>;

/// The error messages for a member of a row of cells, or of a row of plain members.
template <class M, bool OfCells>
struct MemberCheck {
  static_assert(
      !kHasPointer<M>,
      "dunlin: a member of a row cannot be a pointer: an address means nothing in another "
      "process. Store an index or the value itself, in a dunlin::Cell.");
  static_assert(
      !std::is_const_v<M>,
      "dunlin: a member of a row cannot be const: its owner must be able to write it, and "
      "to everyone else it is const anyway.");
  static_assert(
      kHasPointer<M> || !OfCells || MemberTraits<std::remove_const_t<M>>::kKnown,
      "dunlin: every member of a row must be a dunlin::Cell<T>, a dunlin::Versioned<T>, a "
      "std::array of these, or a dunlin::List<T, N>, or none may be: what peers write must be read "
      "atomically. Wrap the member: dunlin::Cell<int> step;");
  static constexpr bool ok = !kHasPointer<M> && !std::is_const_v<M> &&
                             MemberTraits<StoredAs<std::remove_const_t<M>>>::kKnown;
};

/// The error messages for a struct that cannot be a row.
template <class Row>
struct RowCheck {
  static_assert(std::is_class_v<Row>,
                "dunlin: a row must be a struct of dunlin::Cell members, or of plain ones.");
  static_assert(
      !std::is_class_v<Row> || !std::is_polymorphic_v<Row>,
      "dunlin: a row cannot have virtual functions: their table is an address, which means "
      "nothing in another process.");
  static_assert(
      alignof(Row) <= kCacheLineBytes,
      "dunlin: a row, and so its members, cannot be aligned to more than a cache line (64 bytes): "
      "rows lie on cache lines.");
  static_assert(!std::is_class_v<Row> || std::is_polymorphic_v<Row> || std::is_aggregate_v<Row>,
                "dunlin: a row must be a plain struct: all members public, no constructors, no "
                "virtual or private base. Give members default values instead: "
                "dunlin::Cell<int> step{1};");
  static constexpr bool plain = std::is_aggregate_v<Row>;
};

/// The error messages for members that cannot even be told apart; then those for each member.
template <class Row, std::size_t N = member_count<Row>()>
struct MembersCheck {
  static constexpr bool empty = std::is_empty_v<Row>;
  static constexpr bool derived = has_base<Row>();
  static constexpr bool many = N > kMaxColumns;
  static constexpr bool array = !many && has_c_array<Row>(std::make_index_sequence<N>{});
  static_assert(!empty, "dunlin: a row needs at least one column.");
  static_assert(!many,
                "dunlin: a row has at most 32 columns (kMaxColumns), and no C arrays. Use "
                "std::array<dunlin::Cell<T>, N> for entries of one kind.");
  static_assert(
      empty || N > 0,
      "dunlin: a member of a row cannot be a reference: it would refer to memory of another "
      "process. Store the value itself, in a dunlin::Cell.");
  static_assert(
      !array, "dunlin: a member of a row cannot be a C array. Use std::array<dunlin::Cell<T>, N>.");
  static_assert(
      !derived && (std::is_standard_layout_v<Row> || N == 0),
      "dunlin: all members of a row must be in one struct, not spread over it and its base.");
  static constexpr bool countable =
      !empty && !derived && !many && !array && N > 0 && std::is_standard_layout_v<Row>;
};

template <class Row>
consteval bool check_members() {
  if constexpr (!RowCheck<Row>::plain) {
    return false;
  } else if constexpr (!MembersCheck<Row>::countable) {
    return false;
  } else {
    using Members = decltype(tie_members(std::declval<Row&>()));
    return []<class... M>(std::tuple<M&...>*) {
      constexpr bool kOfCells = (HasCells<std::remove_const_t<M>>::value || ...);
      return (MemberCheck<M, kOfCells>::ok && ...);
    }(static_cast<Members*>(nullptr));
  }
}

/// Whether a struct that can be a row has plain members, not cells.
template <class Row>
consteval bool has_plain_members() {
  if constexpr (!check_members<Row>())
    return false;
  else
    return !MembersOf<Row>::kSomeCells;
}
/// A row in the memory of a table.
template <class Row>
struct StoredRowOf {
  using type = Row;
};
template <class Row>
requires(has_plain_members<Row>()) struct StoredRowOf<Row> {
  using type = PlainStorage<Row>;
};
template <class Row>
using StoredRow = typename StoredRowOf<Row>::type;

template <class M>
Column make_column(std::string_view name, std::size_t offset) {
  using Traits = MemberTraits<M>;
  return {.name = std::string(name),
          .kind = Traits::kKind,
          .type = Traits::kType,
          .offset = offset,
          .count = Traits::kCount,
          .entry_bytes = sizeof(typename Traits::value_type),
          .stride_bytes = Traits::kStrideBytes,
          .bytes = sizeof(M),
          .fields = described_fields<Traits::kType, typename Traits::value_type>()};
}

template <class Row>
Layout make_layout() {
  // Offsets are read off a row that exists, as C++20 has no other way for a member it cannot name.
  const Row& row = reinterpret_cast<const Row&>(kNoRow<Row>);
  constexpr auto names = member_names<Row>();
  Layout layout{.columns = {}, .row_bytes = sizeof(StoredRow<Row>)};
  std::apply(
      [&]<class... M>(const M&... member) {
        std::size_t i = 0;
        const auto offset = [](const auto& of) {
          const auto in_struct = static_cast<std::size_t>(
              reinterpret_cast<const std::byte*>(std::addressof(of)) - kNoRow<Row>.data());
          if constexpr (has_plain_members<Row>())
            return PlainPlaces<MembersOf<Row>>::cell_at(in_struct);
          else
            return in_struct;
        };
        (layout.columns.push_back(make_column<StoredAs<M>>(names[i++], offset(member))), ...);
      },
      tie_members(row));
  return layout;
}

}  // namespace detail

/// The layout of a struct of cells, or of plain members. A struct that cannot be a row does not
/// compile, and the message says why.
template <class Row>
[[nodiscard]] Layout layout_of() {
  if constexpr (detail::check_members<Row>()) {
    return detail::make_layout<Row>();
  } else {
    return {};
  }
}

}  // namespace dunlin
