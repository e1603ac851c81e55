#pragma once

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <dunlin/limits.hpp>

/// The one place that touches words which a peer may write at any time. Everything here may be
/// called from any thread.
///
/// Invariants (docs/fabric.md explains and proves them):
///  FAB-M1  An aligned entry of 1, 2, 4 or 8 bytes is one atomic access; it is never seen torn.
///  FAB-M2  place() writes each aligned 64-byte line in ascending order of its words, every store a
///      release: a reader that sees a word sees all words before it in that line, and all earlier
///      stores.
///  FAB-M3  fetch() reads each line in descending order of its words, every load an acquire. So a
///      line whose first and last word carry the same stamp was fetched whole (FAB-M2 + FAB-M3).
///  FAB-M4  Words that a peer may write at any time are read and written by nothing else. Bytes
///      that such a word has announced, such as a message in a ring, are plain memory until they
///      are given back.
///  FAB-M5  copy() copies each aligned word by one access, and the words in no order among
///      themselves; all of them behind the loads and before the stores around it.
///
/// On x86-64 a release store and an acquire load are plain moves; the order costs nothing. Two
/// neighbouring words can be one access (src/fabric/memory_pairs.hpp).
namespace dunlin::memory {

template <class T>
concept Word = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

namespace detail {
template <std::size_t Bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};
template <std::size_t Bytes>
using Unsigned = typename UnsignedOf<Bytes>::type;

template <class U>
[[gnu::always_inline]] inline U load_raw(const void* at) noexcept {
  return __atomic_load_n(static_cast<const U*>(at), __ATOMIC_ACQUIRE);
}
template <class U>
[[gnu::always_inline]] inline void store_raw(void* at, U value) noexcept {
  __atomic_store_n(static_cast<U*>(at), value, __ATOMIC_RELEASE);
}
}  // namespace detail

/// Load an aligned word; an acquire, paired with store() and place().
template <Word T>
[[nodiscard, gnu::always_inline]] inline T load(const T& at) noexcept {
  return std::bit_cast<T>(detail::load_raw<detail::Unsigned<sizeof(T)>>(&at));
}

/// Store an aligned word; a release, paired with load() and fetch().
template <Word T>
[[gnu::always_inline]] inline void store(T& at, std::type_identity_t<T> value) noexcept {
  using U = detail::Unsigned<sizeof(T)>;
  detail::store_raw<U>(&at, std::bit_cast<U>(value));
}
/// Adds to a word that this thread alone writes, by one instruction; readers see the word whole.
[[gnu::always_inline]] inline void add(std::uint64_t& at, std::uint64_t more) noexcept {
  at += more;
}

/// Atomic changes of an aligned 64-bit word. All are sequentially consistent, and return the former
/// value.
inline std::uint64_t fetch_add(void* at, std::uint64_t add) noexcept {
  return __atomic_fetch_add(static_cast<std::uint64_t*>(at), add, __ATOMIC_SEQ_CST);
}
inline std::uint64_t fetch_or(void* at, std::uint64_t bits) noexcept {
  return __atomic_fetch_or(static_cast<std::uint64_t*>(at), bits, __ATOMIC_SEQ_CST);
}
inline std::uint64_t exchange(void* at, std::uint64_t value) noexcept {
  return __atomic_exchange_n(static_cast<std::uint64_t*>(at), value, __ATOMIC_SEQ_CST);
}
inline std::uint64_t compare_swap(void* at, std::uint64_t expected,
                                  std::uint64_t desired) noexcept {
  __atomic_compare_exchange_n(static_cast<std::uint64_t*>(at), &expected, desired, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

namespace detail {
void place_pieces(void* to, const void* source, std::size_t bytes) noexcept;
void fetch_pieces(void* to, const void* from, std::size_t bytes) noexcept;
void copy_wide(void* to, const void* from, std::size_t bytes) noexcept;

/// What copies of so many bytes gain by wide accesses is more than what these cost.
inline constexpr std::size_t kWideBytes = 256;

template <class U>
[[gnu::always_inline]] inline bool copy_word(void* to, const void* from) noexcept {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(U) != 0) return false;
  store_raw<U>(to, load_raw<U>(from));
  return true;
}
/// Copies a single aligned word with a load and a store, if that is all there is: by far the
/// commonest push.
[[gnu::always_inline]] inline bool copy_one_word(void* to, const void* from,
                                                 std::size_t bytes) noexcept {
  switch (bytes) {
    case 8:
      return copy_word<std::uint64_t>(to, from);
    case 4:
      return copy_word<std::uint32_t>(to, from);
    case 1:
      return copy_word<std::uint8_t>(to, from);
    default:
      return false;
  }
}
}  // namespace detail

/// Write `bytes` from `source` (the caller's own memory) to shared memory, as FAB-M2 says. The
/// source is read word by word too, so it may itself be a row that others watch. `to` and `source`
/// must agree modulo 8, or an entry could be split.
[[gnu::always_inline]] inline void place(void* to, const void* source, std::size_t bytes) noexcept {
  if (!detail::copy_one_word(to, source, bytes)) detail::place_pieces(to, source, bytes);
}

/// Read `bytes` of shared memory into the caller's own memory, as FAB-M3 says. Lines are those of
/// `from`; `to` and `from` must agree modulo 8.
[[gnu::always_inline]] inline void fetch(void* to, const void* from, std::size_t bytes) noexcept {
  if (!detail::copy_one_word(to, from, bytes)) detail::fetch_pieces(to, from, bytes);
}

/// Copies to or from shared memory as FAB-M5 says, where something else says which words belong
/// together, or nothing does. `to` and `from` must agree modulo 8.
[[gnu::always_inline]] inline void copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes < detail::kWideBytes)
    place(to, from, bytes);
  else
    detail::copy_wide(to, from, bytes);
}

/// Copy bytes that no other node looks at until a later signal announces them.
inline void copy_unwatched(void* to, const void* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

}  // namespace dunlin::memory
