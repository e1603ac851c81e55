#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/table/entry_check.hpp>

/// The members of a row. All three hold trivially copyable values, start out as T{} (or as the
/// value given), are written by the row's owner only, and are read by all nodes, never torn:
///
///     struct Row {
///       dunlin::Cell<int> step;                            // up to 64 bytes
///       std::array<dunlin::Cell<double>, 16> link_cost;    // a column of 16 entries
///       dunlin::Versioned<Config> config;                  // any size, seen whole
///       dunlin::List<Event, 128> events;                   // append and truncate
///     };
///
/// The owner calls the non-const members, on the thread that polls the table; the const ones are
/// for any thread that may read the row.
///
/// Invariants:
///  TAB-C1  A value of up to 8 bytes is one aligned word: FAB-M1 keeps it whole.
///  TAB-C2  A larger value lies in stamped lines, {u32 head, 56 bytes of value, u32 tail}, written
///      in ascending and read in descending order of words. A line whose head equals its tail is
///      whole, and so is a value whose lines all carry one stamp (memory.hpp, FAB-M2 and FAB-M3).
///  TAB-C3  There are two such slots, written in turn. A push writes the peer's slot that does not
///      hold the newest value there. So at every moment, also when the writer dies while it writes,
///      that value is whole, and no reader goes back to an older one.
///  TAB-C4  A list's entries are in place before its `end` passes them, and its `begin` has passed
///      them before their place is used again: so an entry is valid if `begin` has not passed it
///      *after* it was copied.
namespace dunlin {

namespace detail {

/// Two slots of stamped lines; see TAB-C2 and TAB-C3. The table pushes the slots by these
/// constants.
template <class T>
class Stamped {
 public:
  static constexpr std::size_t kPayloadBytes = kCacheLineBytes - 2 * sizeof(std::uint32_t);
  static constexpr std::size_t kLines = (sizeof(T) + kPayloadBytes - 1) / kPayloadBytes;
  static constexpr std::size_t kSlotBytes = kLines * kCacheLineBytes;

  Stamped() noexcept : Stamped(T{}) {}
  explicit Stamped(const T& value) noexcept {
    write(1, UINT32_MAX, value);
    write(0, 0, value);
  }
  Stamped(const Stamped& other) noexcept {
    T value;
    const std::uint32_t stamp = other.load_newest(value);
    write((stamp - 1) & 1, stamp - 1, value);
    write(stamp & 1, stamp, value);
  }
  Stamped& operator=(const Stamped& other) noexcept {
    if (this != &other) store(other.load());
    return *this;
  }

  [[nodiscard]] T load() const noexcept {
    T value;
    load_newest(value);
    return value;
  }

  void store(const T& value) noexcept {
    const std::uint32_t next = version() + 1;
    write(next & 1, next, value);
  }

  /// How many times the owner has stored a value; wraps at 2^32.
  [[nodiscard]] std::uint32_t version() const noexcept { return stamp(newer_slot()); }

 private:
  struct alignas(kCacheLineBytes) Line {
    std::array<std::uint64_t, kCacheLineBytes / kWordBytes> words;
  };

  [[nodiscard]] std::uint32_t stamp(unsigned slot) const noexcept {
    return static_cast<std::uint32_t>(memory::load(slots_[slot][kLines - 1].words.back()) >> 32);
  }
  [[nodiscard]] unsigned newer_slot() const noexcept {
    return static_cast<std::int32_t>(stamp(1) - stamp(0)) > 0 ? 1 : 0;
  }

  void write(unsigned slot, std::uint32_t stamp, const T& value) noexcept {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    for (std::size_t i = 0; i < kLines; ++i) {
      alignas(kCacheLineBytes) std::array<std::byte, kCacheLineBytes> line{};
      const std::size_t at = i * kPayloadBytes;
      std::memcpy(line.data(), &stamp, sizeof stamp);
      std::memcpy(line.data() + sizeof stamp, from + at, std::min(kPayloadBytes, sizeof(T) - at));
      std::memcpy(line.data() + kCacheLineBytes - sizeof stamp, &stamp, sizeof stamp);
      memory::place(&slots_[slot][i], line.data(), kCacheLineBytes);
    }
  }

  /// Loads the newest value; returns its stamp.
  std::uint32_t load_newest(T& value) const noexcept {
    // The newer slot is being written again only when the writer has lapped us, and by then the
    // other slot has become whole. Only a peer that breaks the protocol exhausts the attempts.
    std::uint32_t found = 0;
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const unsigned newer = newer_slot();
      if (read(newer, value, found) || read(1 - newer, value, found)) return found;
    }
    const T initial{};
    std::memcpy(static_cast<void*>(&value), &initial, sizeof(T));
    return 0;
  }

  bool read(unsigned slot, T& value, std::uint32_t& first) const noexcept {
    auto* to = reinterpret_cast<std::byte*>(&value);
    for (std::size_t i = 0; i < kLines; ++i) {
      alignas(kCacheLineBytes) std::array<std::byte, kCacheLineBytes> line;
      memory::fetch(line.data(), &slots_[slot][i], kCacheLineBytes);
      std::uint32_t head;
      std::uint32_t tail;
      std::memcpy(&head, line.data(), sizeof head);
      std::memcpy(&tail, line.data() + kCacheLineBytes - sizeof tail, sizeof tail);
      if (i == 0) first = head;
      if (head != tail || head != first) return false;
      const std::size_t at = i * kPayloadBytes;
      std::memcpy(to + at, line.data() + sizeof head, std::min(kPayloadBytes, sizeof(T) - at));
    }
    return true;
  }

  std::array<std::array<Line, kLines>, 2> slots_;
};

/// The word that a value of at most 8 bytes travels in.
template <class T>
struct WordStorage {
  using Word = memory::detail::Unsigned<std::bit_ceil(sizeof(T))>;
  alignas(sizeof(Word)) Word word = 0;

  [[gnu::always_inline]] static Word pack(const T& value) noexcept {
    Word packed = 0;
    std::memcpy(&packed, &value, sizeof(T));
    return packed;
  }
  [[gnu::always_inline]] static T unpack(Word packed) noexcept {
    T value;
    std::memcpy(static_cast<void*>(&value), &packed, sizeof(T));
    return value;
  }
};

template <class T>
concept SmallEntry = !std::is_reference_v<T> && sizeof(T) <= kWordBytes;

}  // namespace detail

/// One entry of a row: a value of up to 64 bytes that is never seen torn.
template <class T>
class Cell {
  static_assert(detail::CellCheck<T>::ok);

 public:
  using value_type = T;

  Cell() noexcept : Cell(T{}) {}
  Cell(const T& value) noexcept : stamped_(value) {}

  [[nodiscard]] T load() const noexcept { return stamped_.load(); }
  operator T() const noexcept { return load(); }

  void store(const T& value) noexcept { stamped_.store(value); }
  Cell& operator=(const T& value) noexcept {
    store(value);
    return *this;
  }
  template <int = 0>
  void operator=(const T&) const noexcept {
    static_assert(detail::kAlwaysFalse<T>, "dunlin: a node writes only its own row: table.mine().");
  }

 private:
  detail::Stamped<T> stamped_;
};

/// An entry of up to 8 bytes: reading is a load, writing a store, nothing more.
template <detail::SmallEntry T>
class Cell<T> {
  static_assert(detail::CellCheck<T>::ok);
  using Storage = detail::WordStorage<T>;

 public:
  using value_type = T;

  Cell() noexcept : Cell(T{}) {}
  Cell(const T& value) noexcept : storage_{Storage::pack(value)} {}
  Cell(const Cell& other) noexcept : Cell(other.load()) {}
  Cell& operator=(const Cell& other) noexcept { return *this = other.load(); }

  [[nodiscard]] T load() const noexcept { return Storage::unpack(memory::load(storage_.word)); }
  operator T() const noexcept { return load(); }

  void store(const T& value) noexcept { memory::store(storage_.word, Storage::pack(value)); }
  Cell& operator=(const T& value) noexcept {
    store(value);
    return *this;
  }
  template <int = 0>
  void operator=(const T&) const noexcept {
    static_assert(detail::kAlwaysFalse<T>, "dunlin: a node writes only its own row: table.mine().");
  }

  /// A load and a store, not one atomic step: only the owner writes.
  Cell& operator+=(const T& by) noexcept requires std::is_arithmetic_v<T> {
    return *this = static_cast<T>(load() + by);
  }
  Cell& operator++() noexcept requires std::is_integral_v<T> { return *this += T{1}; }

 private:
  Storage storage_;
};

/// A value of any size that is seen whole or not at all, and that counts its changes.
template <class T>
class Versioned {
  static_assert(detail::EntryCheck<T>::ok);

 public:
  using value_type = T;

  Versioned() noexcept = default;
  Versioned(const T& value) noexcept : stamped_(value) {}

  [[nodiscard]] T load() const noexcept { return stamped_.load(); }
  operator T() const noexcept { return load(); }
  /// How many times the owner has stored a value; wraps at 2^32.
  [[nodiscard]] std::uint32_t version() const noexcept { return stamped_.version(); }

  void store(const T& value) noexcept { stamped_.store(value); }
  Versioned& operator=(const T& value) noexcept {
    store(value);
    return *this;
  }
  template <int = 0>
  void operator=(const T&) const noexcept {
    static_assert(detail::kAlwaysFalse<T>, "dunlin: a node writes only its own row: table.mine().");
  }

 private:
  detail::Stamped<T> stamped_;
};

/// A list of up to N values that its owner appends to and truncates at the front. Values keep their
/// index for ever: the first one appended is number 0. A push sends what was appended since the
/// last push to that peer, and no more.
template <class T, std::size_t N>
class List {
  static_assert(detail::EntryCheck<T>::ok);
  static_assert(N > 0, "dunlin: a List needs room for at least one value.");

 public:
  using value_type = T;
  static constexpr std::size_t kCapacity = N;
  static constexpr std::size_t kStrideBytes = round_up(sizeof(T), kWordBytes);

  List() noexcept = default;
  /// Makes a consistent copy, also of a list that is changing. There is no assignment, because
  /// indices would go back.
  List(const List& other) noexcept : end_(other.end_index()) {
    const std::uint64_t oldest = oldest_of(other.begin_index(), end_);
    for (std::uint64_t i = oldest; i < end_; ++i) {
      memory::fetch(place(i), other.place(i), kStrideBytes);
    }
    begin_ = std::max(oldest, std::min(other.begin_index(), end_));
  }
  List& operator=(const List&) = delete;

  /// The index of the oldest value that is still there, and that of the next value to come.
  [[nodiscard]] std::uint64_t begin_index() const noexcept { return memory::load(begin_); }
  [[nodiscard]] std::uint64_t end_index() const noexcept { return memory::load(end_); }
  [[nodiscard]] std::size_t size() const noexcept {
    const std::uint64_t end = end_index();
    const std::uint64_t begin = begin_index();
    return begin < end ? std::min(static_cast<std::size_t>(end - begin), N) : 0;
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// The value of that index; nothing if it is not there yet, or has been truncated.
  [[nodiscard]] std::optional<T> at(std::uint64_t index) const noexcept {
    if (index >= end_index() || index < begin_index()) return std::nullopt;
    alignas(kWordBytes) std::array<std::byte, kStrideBytes> copy;
    memory::fetch(copy.data(), place(index), kStrideBytes);
    if (index < begin_index()) return std::nullopt;  // TAB-C4: its place may be in use again
    T value;
    std::memcpy(static_cast<void*>(&value), copy.data(), sizeof(T));
    return value;
  }

  /// Calls `visit(index, value)` for every value from `index` on that is there; returns the index
  /// from which to go on. Truncated values are skipped.
  template <class Visit>
  std::uint64_t visit_from(std::uint64_t index, Visit&& visit) const {
    const std::uint64_t end = end_index();
    for (index = std::max(index, oldest_of(begin_index(), end)); index < end; ++index) {
      if (const std::optional<T> value = at(index)) visit(index, *value);
    }
    return index;
  }

  /// For the owner: appends a value. Returns false, and does nothing, if the list is full
  /// (back-pressure: truncate first, when all readers have said that they are past the oldest
  /// values).
  [[nodiscard]] bool append(const T& value) noexcept {
    const std::uint64_t end = end_index();
    if (end - begin_index() >= N) return false;
    alignas(kWordBytes) std::array<std::byte, kStrideBytes> copy{};
    std::memcpy(copy.data(), &value, sizeof(T));
    memory::place(place(end), copy.data(), kStrideBytes);
    memory::store(end_, end + 1);
    return true;
  }
  /// For the owner: drops all values before `index` (at most those that are there).
  void truncate_before(std::uint64_t index) noexcept {
    memory::store(begin_, std::max(begin_index(), std::min(index, end_index())));
  }

 private:
  using Slot = std::array<std::uint64_t, kStrideBytes / kWordBytes>;
  [[nodiscard]] static std::uint64_t oldest_of(std::uint64_t begin, std::uint64_t end) noexcept {
    return std::max(begin, end > N ? end - N : 0);
  }
  [[nodiscard]] const void* place(std::uint64_t index) const noexcept { return &slots_[index % N]; }
  [[nodiscard]] void* place(std::uint64_t index) noexcept { return &slots_[index % N]; }

  alignas(kCacheLineBytes) std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  alignas(kCacheLineBytes) std::array<Slot, N> slots_{};
};

/// Offsets inside a List, for the table's pushes (docs/formats/row.md).
inline constexpr std::size_t kListBeginOffset = 0;
inline constexpr std::size_t kListEndOffset = 8;
inline constexpr std::size_t kListSlotsOffset = kCacheLineBytes;

}  // namespace dunlin
