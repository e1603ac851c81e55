#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dunlin/table/member.hpp>
#include <dunlin/table/reflect.hpp>

/// Rows of plain members:
///
///     struct Row {
///       int step;
///       std::array<std::timespec, 2> stamps;
///       double load;
///     };
///
/// Peers write the memory of a table at any time, so nobody may read it as an int. A table keeps a
/// plain row as the row of cells with the same values, and at the same offsets; `mine()` is a
/// struct in private memory, which a push copies to the own row, and reading a row makes such a
/// struct. Peers cannot tell a row of plain members from the row of cells.
namespace dunlin::detail {

template <class... M>
struct MemberList {
  static constexpr bool kSomeCells = (HasCells<M>::value || ...);
};
template <class Row, std::size_t... I>
auto member_list(std::index_sequence<I...>) -> MemberList<
    std::remove_cvref_t<std::tuple_element_t<I, decltype(tie_members(std::declval<Row&>()))>>...>;
template <class Row>
using MembersOf = decltype(member_list<Row>(std::make_index_sequence<member_count<Row>()>{}));

/// Where the members of a row are, in the struct and in a table's memory.
template <class Members>
struct PlainPlaces;
template <class... M>
struct PlainPlaces<MemberList<M...>> {
  struct Place {
    std::size_t member;
    std::size_t cell;
  };
  static constexpr std::size_t kAlignment = std::max({alignof(StoredAs<M>)...});
  static constexpr std::array<Place, sizeof...(M)> kAll = [] {
    constexpr std::array<std::size_t, sizeof...(M)> kMemberBytes{sizeof(M)...};
    constexpr std::array<std::size_t, sizeof...(M)> kMemberAlignment{alignof(M)...};
    constexpr std::array<std::size_t, sizeof...(M)> kCellBytes{sizeof(StoredAs<M>)...};
    constexpr std::array<std::size_t, sizeof...(M)> kCellAlignment{alignof(StoredAs<M>)...};
    std::array<Place, sizeof...(M)> places{};
    Place end{};
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = {round_up(end.member, kMemberAlignment[i]),
                   round_up(end.cell, kCellAlignment[i])};
      end = {places[i].member + kMemberBytes[i], places[i].cell + kCellBytes[i]};
    }
    return places;
  }();
  static constexpr std::size_t kBytes = [] {
    constexpr std::array<std::size_t, sizeof...(M)> kCellBytes{sizeof(StoredAs<M>)...};
    return round_up(kAll.back().cell + kCellBytes.back(), kAlignment);
  }();
  static constexpr bool kSame =
      std::ranges::all_of(kAll, [](const Place& place) { return place.member == place.cell; });

  /// The place in a table's memory of the member that is so many bytes into the struct.
  [[nodiscard, gnu::always_inline]] static constexpr std::size_t cell_at(
      std::size_t member) noexcept {
    if constexpr (kSame) {
      return member;
    } else {
      std::size_t i = 0;
      while (kAll[i].member != member) ++i;
      return kAll[i].cell;
    }
  }
};

/// Memory of the size of a row that nobody reads: where its members are says their offsets.
template <class Row>
inline constexpr std::array<std::byte, sizeof(Row)> kNoRow alignas(Row){};
template <class Row, class M>
[[nodiscard, gnu::always_inline]] inline std::size_t member_offset(M Row::*member) noexcept {
  const Row& row = reinterpret_cast<const Row&>(kNoRow<Row>);
  return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(std::addressof(row.*member)) -
                                  kNoRow<Row>.data());
}

/// A plain row in a table's memory: cells.
template <class Row>
class alignas(PlainPlaces<MembersOf<Row>>::kAlignment) PlainStorage {
  using Places = PlainPlaces<MembersOf<Row>>;

 public:
  explicit PlainStorage(const Row& initial) noexcept {
    for_each(initial, [&]<class M>(const M& value, std::size_t cell) {
      store_value(*new (bytes_.data() + cell) StoredAs<M>(), value);
    });
  }
  PlainStorage(const PlainStorage&) = delete;
  PlainStorage& operator=(const PlainStorage&) = delete;

  template <class M>
  [[nodiscard, gnu::always_inline]] const StoredAs<M>& at(M Row::*member) const noexcept {
    return cell<M>(Places::cell_at(member_offset(member)));
  }
  template <class M>
  [[nodiscard, gnu::always_inline]] StoredAs<M>& at(M Row::*member) noexcept {
    return const_cast<StoredAs<M>&>(std::as_const(*this).at(member));
  }
  /// Stores all values, in order of declaration (TAB-T3).
  void store(const Row& row) noexcept {
    for_each(row, [&]<class M>(const M& value, std::size_t at) {
      store_value(const_cast<StoredAs<M>&>(cell<M>(at)), value);
    });
  }
  /// Loads all values in reverse order of declaration, so that no guard is there without its data.
  [[nodiscard]] Row load() const noexcept {
    Row row{};
    load_all(row, std::make_index_sequence<Places::kAll.size()>{});
    return row;
  }

 private:
  template <class M>
  [[nodiscard, gnu::always_inline]] const StoredAs<M>& cell(std::size_t at) const noexcept {
    return *std::launder(reinterpret_cast<const StoredAs<M>*>(bytes_.data() + at));
  }
  template <class Do>
  static void for_each(const Row& row, const Do& act) noexcept {
    std::apply(
        [&](const auto&... member) {
          std::size_t i = 0;
          (act(member, Places::kAll[i++].cell), ...);
        },
        tie_members(row));
  }
  template <std::size_t... I>
  void load_all(Row& row, std::index_sequence<I...>) const noexcept {
    const auto members = tie_members(row);
    (load_one<sizeof...(I) - 1 - I>(members), ...);
  }
  template <std::size_t I, class Members>
  [[gnu::always_inline]] void load_one(const Members& members) const noexcept {
    auto& member = std::get<I>(members);
    member = load_value(cell<std::remove_cvref_t<decltype(member)>>(Places::kAll[I].cell));
  }

  std::array<std::byte, Places::kBytes> bytes_;
};

/// The cell of a member, in a row of cells (or in a copy of a row), and in a plain row.
template <class Row, class M>
[[nodiscard, gnu::always_inline]] inline const M& cell_of(const Row& row, M Row::*member) noexcept {
  return row.*member;
}
template <class Row, class M>
[[nodiscard, gnu::always_inline]] inline const StoredAs<M>& cell_of(const PlainStorage<Row>& row,
                                                                    M Row::*member) noexcept {
  return row.at(member);
}
template <class OtherRow, class Row, class M>
const M& cell_of(const OtherRow&, M Row::*) noexcept {
  static_assert(kAlwaysFalse<Row>,
                "dunlin: the expression is about a column of another row type than the table's.");
}

}  // namespace dunlin::detail
