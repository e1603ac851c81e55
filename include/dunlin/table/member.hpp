#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dunlin/table/cell.hpp>
#include <dunlin/table/entry_type.hpp>

/// What a member of a row is in a table's memory: for a cell, itself; for a plain member, the cell
/// that holds its value (table/plain_row.hpp).
namespace dunlin {

enum class ColumnKind : std::uint8_t {
  word,     // entries of up to 8 bytes, each one aligned word
  stamped,  // larger entries: two slots of stamped lines each
  list      // a List
};

namespace detail {

template <class T>
struct TextSize : std::false_type {};
template <std::size_t N>
struct TextSize<std::array<char, N>> : std::true_type {};

/// Describes a cell of a row; specialised for each type of cells that a row may have.
template <class M>
struct MemberTraits {
  static constexpr bool kKnown = false;
};
template <class T, bool Stamped>
struct EntryTraits {
  static constexpr bool kKnown = true;
  using value_type = T;
  static constexpr ColumnKind kKind = Stamped ? ColumnKind::stamped : ColumnKind::word;
  static constexpr EntryType kType = TextSize<T>::value ? EntryType::text : entry_type<T>();
  static constexpr std::size_t kCount = 1;
};
template <class T>
struct MemberTraits<Cell<T>> : EntryTraits<T, !SmallEntry<T>> {
  static constexpr std::size_t kStrideBytes = sizeof(Cell<T>);
};
template <class T>
struct MemberTraits<Versioned<T>> : EntryTraits<T, true> {
  static constexpr std::size_t kStrideBytes = sizeof(Versioned<T>);
};
template <class E, std::size_t N>
requires(MemberTraits<E>::kKnown&& MemberTraits<E>::kKind != ColumnKind::list &&
         N > 0) struct MemberTraits<std::array<E, N>> : MemberTraits<E> {
  static constexpr std::size_t kCount = N * MemberTraits<E>::kCount;
};
template <class T, std::size_t N>
struct MemberTraits<List<T, N>> : EntryTraits<T, true> {
  static constexpr ColumnKind kKind = ColumnKind::list;
  static constexpr std::size_t kCount = N;
  static constexpr std::size_t kStrideBytes = List<T, N>::kStrideBytes;
};

/// Whether a member is a cell, or an array of cells.
template <class M>
struct HasCells : std::bool_constant<MemberTraits<M>::kKnown> {};
template <class E, std::size_t N>
struct HasCells<std::array<E, N>> : HasCells<E> {};

/// The cell of a plain member. An array is a column of its elements; a text is one entry.
template <class M>
struct CellOf {
  using type = Cell<M>;
};
template <class M>
requires(HasCells<M>::value) struct CellOf<M> {
  using type = M;
};
template <class E, std::size_t N>
requires(!HasCells<E>::value &&
         !TextSize<std::array<E, N>>::value) struct CellOf<std::array<E, N>> {
  using type = std::array<typename CellOf<E>::type, N>;
};
template <class M>
using StoredAs = typename CellOf<M>::type;

/// Whether a member is one entry, not a column of several.
template <class M>
concept SingleEntry = requires(const StoredAs<M>& stored) {
  stored.load();
};

/// Stores a plain value in its cells, each whole.
template <class Stored, class M>
[[gnu::always_inline]] inline void store_value(Stored& to, const M& from) noexcept {
  if constexpr (SingleEntry<M>) {
    to.store(from);
  } else {
    for (std::size_t i = 0; i < from.size(); ++i) store_value(to[i], from[i]);
  }
}

template <class Stored>
struct ValueOf {
  using type = typename Stored::value_type;
};
template <class Stored, std::size_t N>
struct ValueOf<std::array<Stored, N>> {
  using type = std::array<typename ValueOf<Stored>::type, N>;
};
/// The value in a cell, or the values in an array of cells, each whole.
template <class Stored>
[[nodiscard, gnu::always_inline]] inline auto load_value(const Stored& stored) noexcept {
  if constexpr (requires { stored.load(); }) {
    return stored.load();
  } else {
    typename ValueOf<Stored>::type values;
    for (std::size_t i = 0; i < stored.size(); ++i) values[i] = load_value(stored[i]);
    return values;
  }
}

/// The entry of that number in a column, or in the values of one; in an array of arrays as they
/// lie.
template <class M>
[[nodiscard]] inline auto& entry_of(M& column, std::size_t index) noexcept {
  if constexpr (SingleEntry<std::remove_const_t<M>>) {
    return column;
  } else {
    constexpr std::size_t kEach =
        MemberTraits<StoredAs<typename std::remove_const_t<M>::value_type>>::kCount;
    return entry_of(column[index / kEach], index % kEach);
  }
}

}  // namespace detail
}  // namespace dunlin
