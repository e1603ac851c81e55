#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/counters/format.hpp"

/// The counters of a layer, where observers see them. Only the layer knows the name of a counter:
/// readers print what they find. Where no shared memory is left, counters count unseen. One thread
/// uses them, that of the fabric.
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
  level   // a present state; kUnknown if no layer knows it
};
enum class CounterUnit : std::uint8_t { count, bytes, nanoseconds };

/// A word of shared memory that its owner alone writes. Belongs to a CounterSet, and ends with it.
class SharedCounter {
 public:
  static constexpr std::uint64_t kUnknown = counter_page::kUnknown;

  explicit SharedCounter(std::uint64_t& word) noexcept : word_(&word) {}
  SharedCounter& operator++() noexcept {
    ++*word_;
    return *this;
  }
  SharedCounter& operator+=(std::uint64_t more) noexcept {
    *word_ += more;
    return *this;
  }
  void set(std::uint64_t value) noexcept { *word_ = value; }
  [[nodiscard]] std::uint64_t value() const noexcept { return *word_; }
  [[nodiscard]] std::uint64_t& word() noexcept { return *word_; }

 private:
  std::uint64_t* word_;
};

class CounterPages;
struct CounterView;

/// The counters of one object, such as a store. All have its labels, which tell them from those of
/// other objects. The fabric must outlive the set.
class CounterSet {
 public:
  /// `labels` is "store=blocks", or several such lines. Beyond 192 bytes they are cut off.
  CounterSet(Fabric& fabric, std::string labels);
  CounterSet(const CounterSet&) = delete;
  CounterSet& operator=(const CounterSet&) = delete;
  ~CounterSet();

  /// Adds a counter, which begins at 0. `name` is the layer, and what it counts:
  /// "store.lock_waits", at most 40 bytes.
  SharedCounter add(std::string_view name, CounterKind kind = CounterKind::total,
                    CounterUnit unit = CounterUnit::count);
  SharedCounter add_level(std::string_view name, CounterUnit unit = CounterUnit::count) {
    return add(name, CounterKind::level, unit);
  }
  /// Adds several words under one name, which `kind` and `unit` describe one by one.
  std::span<std::uint64_t> add_words(std::string_view name, std::uint32_t words, CounterKind kind,
                                     CounterUnit unit = CounterUnit::count);

 private:
  CounterPages& pages_;
  std::string labels_;
  std::vector<counter_page::Record*> added_;
};

/// The counter pages of a member, as many as its counters need. Its fabric owns them.
class CounterPages {
 public:
  explicit CounterPages(Fabric& fabric) noexcept : fabric_(fabric) {}

  struct Place {
    counter_page::Record* record;
    std::span<std::uint64_t> words;  // all 0
  };
  /// Takes free words for a counter; `shape` says kind, unit and number of words.
  [[nodiscard]] Place add(counter_page::Record shape, std::string_view name,
                          std::string_view labels);
  void remove(counter_page::Record& record) noexcept;
  /// Reads the counters as an observer would.
  [[nodiscard]] std::vector<CounterView> read() const;

 private:
  struct Page {
    Region region;                               // set if observers see the page
    std::unique_ptr<counter_page::Page> unseen;  // the page otherwise
    counter_page::Page* content = nullptr;
    std::bitset<counter_page::kWords> taken = {};
    std::uint32_t counters = 0;
  };
  [[nodiscard]] Page& add_page();

  Fabric& fabric_;
  std::vector<Page> pages_;
  std::uint64_t serials_ = 0;
};

}  // namespace dunlin
