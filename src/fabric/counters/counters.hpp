#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/memory.hpp>

#include "fabric/counters/format.hpp"

/// What a layer counts, where observers see it. Only the layer knows the name of a counter: readers
/// print what they find. Where there is no shared memory left, counters count unseen. One thread,
/// that of the fabric.
///
///     struct StoreCounters {
///       explicit StoreCounters(Fabric& fabric, const std::string& store)
///           : all(fabric, "store=" + store) {}
///       CounterSet all;
///       SharedCounter lock_waits = all.add("store.lock_waits");
///     };
///     ...
///     ++counters.lock_waits;
namespace dunlin {

enum class CounterKind : std::uint8_t {
  total,  // only grows: readers show how fast
  level,  // what is the case now; kUnknown where nobody knows
  event   // only grows, and seldom: readers show how often it has happened
};
enum class CounterUnit : std::uint8_t { count, bytes, nanoseconds };

/// A word of shared memory that its owner alone writes. Belongs to a CounterSet, and ends with it.
class SharedCounter {
 public:
  static constexpr std::uint64_t kUnknown = counter_page::kUnknown;

  explicit SharedCounter(std::uint64_t& word) noexcept : word_(&word) {}
  SharedCounter& operator++() noexcept { return *this += 1; }
  SharedCounter& operator+=(std::uint64_t more) noexcept {
    memory::add(*word_, more);
    return *this;
  }
  void set(std::uint64_t value) noexcept { memory::store(*word_, value); }
  [[nodiscard]] std::uint64_t value() const noexcept { return memory::load(*word_); }
  [[nodiscard]] std::uint64_t& word() noexcept { return *word_; }

 private:
  std::uint64_t* word_;
};

class CounterPages;

/// The counters of one object, such as a store. All have its labels, which tell them from those of
/// other objects. The fabric outlives them.
class CounterSet {
 public:
  /// `labels`: "store=blocks", or several, a line for each. Beyond 192 bytes they are cut off.
  CounterSet(Fabric& fabric, std::string labels);
  CounterSet(const CounterSet&) = delete;
  CounterSet& operator=(const CounterSet&) = delete;
  ~CounterSet();

  /// `name`: the layer, and what it counts, at most 40 bytes: "store.lock_waits". Begins at 0.
  SharedCounter add(std::string_view name, CounterKind kind = CounterKind::total,
                    CounterUnit unit = CounterUnit::count);
  SharedCounter add_level(std::string_view name, CounterUnit unit = CounterUnit::count) {
    return add(name, CounterKind::level, unit);
  }
  SharedCounter add_event(std::string_view name) { return add(name, CounterKind::event); }
  /// Several words of one name, which `kind` and `unit` describe one by one. Write them by
  /// dunlin/fabric/memory.hpp.
  std::span<std::uint64_t> add_words(std::string_view name, std::uint32_t words, CounterKind kind,
                                     CounterUnit unit = CounterUnit::count);
  /// All counters of one word whose values are known, by their names without the layer.
  [[nodiscard]] std::map<std::string, std::uint64_t> values() const;

 private:
  CounterPages& pages_;
  std::string labels_;
  std::vector<std::pair<counter_page::Record*, std::span<std::uint64_t>>> added_;
};

/// The pages of a member, as many as its counters need. Its fabric has them.
class CounterPages {
 public:
  explicit CounterPages(Fabric& fabric) noexcept : fabric_(fabric) {}

  struct Added {
    counter_page::Record* record;
    std::span<std::uint64_t> words;
  };
  /// `shape`: with kind, unit and number of words. `first`: what the first words are from the
  /// beginning; the others are 0.
  [[nodiscard]] Added add(counter_page::Record shape, std::string_view name,
                          std::string_view labels, std::span<const std::uint64_t> first = {});
  void remove(counter_page::Record& record) noexcept;
  /// What observers map; valid until the next add().
  [[nodiscard]] std::vector<std::span<const std::byte>> pages() const;

 private:
  struct Page {
    Region region;                               // if observers see it
    std::unique_ptr<counter_page::Page> unseen;  // else
    counter_page::Page* content = nullptr;
    std::bitset<counter_page::kWords> taken = {};
    struct Run {
      std::uint32_t first = 0;
      std::uint32_t words = 0;  // 0: the record is free
    };
    std::array<Run, counter_page::kCounters> runs = {};
    std::uint32_t counters = 0;
  };
  [[nodiscard]] Page& add_page();
  /// Nothing if it has no room.
  [[nodiscard]] std::optional<Added> add_to(Page& page, counter_page::Record shape,
                                            std::span<const std::uint64_t> first) noexcept;

  Fabric& fabric_;
  std::vector<Page> pages_;
  std::uint64_t serials_ = 0;
};

}  // namespace dunlin
