#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/container/map_core.hpp>

/// What was done to containers, by whom and between which events, and whether it can have happened
/// in one order (linearizability).
namespace dunlin::test {

inline constexpr std::uint64_t kNoEnd = UINT64_MAX;

/// Begins that call on a map.
template <class Map, class Key, class Value>
typename Map::Operation begin_call(Map& map, container::MapCall call, const Key& key,
                                   const Value& value, Style style) {
  switch (call) {
    case container::MapCall::insert:
      return map.insert(key, value, Promise::both, style);
    case container::MapCall::assign:
      return map.assign(key, value, Promise::both, style);
    case container::MapCall::erase:
      return map.erase(key, Promise::both, style);
    default:
      return map.find(key, Promise::both, style);
  }
}

/// A call on one key. Values are above 0 and unique.
struct KeyEvent {
  container::MapCall call = container::MapCall::find;
  std::uint64_t value = 0;  // that is written; of a find or a vain insert: that was found
  bool found = false;
  std::uint64_t begin = 0;  // numbers of events in the test, all different
  std::uint64_t end = kNoEnd;
};

/// The calls on one key: a search over all orders that the intervals permit.
class KeyHistory {
 public:
  static constexpr std::size_t kMost = 48;

  std::size_t add(const KeyEvent& event) {
    events_.push_back(event);
    return events_.size() - 1;
  }
  KeyEvent& operator[](std::size_t number) { return events_[number]; }
  [[nodiscard]] bool full() const { return events_.size() >= kMost; }

  [[nodiscard]] bool linearizable() {
    std::erase_if(events_, [](const KeyEvent& event) {
      return event.call == container::MapCall::find && event.end == kNoEnd;
    });
    seen_.clear();
    calls_ = events_;
    make_alike();
    return search(0, kAbsent);
  }
  [[nodiscard]] std::string text() const {
    static const std::vector<std::string> names{"insert", "assign", "find", "erase"};
    std::string all;
    for (const KeyEvent& event : events_)
      all += names.at(static_cast<std::size_t>(event.call)) + " " + std::to_string(event.value) +
             (event.found ? " found" : "") + " from " + std::to_string(event.begin) + " to " +
             (event.end == kNoEnd ? "?" : std::to_string(event.end)) + "\n";
    return all;
  }

 private:
  static constexpr std::uint64_t kAbsent = 0;
  /// A writer has died in the middle: finds say so, and are left out; other calls find no key.
  static constexpr std::uint64_t kHalf = UINT64_MAX;
  /// Any value that a call without an end may have written, and that no call has seen.
  static constexpr std::uint64_t kUnseen = UINT64_MAX - 1;

  /// Calls without an end of which nothing was seen are alike, if they do the same.
  void make_alike() {
    std::set<std::uint64_t> seen;
    for (const KeyEvent& event : calls_)
      if (event.end != kNoEnd && event.found) seen.insert(event.value);
    for (KeyEvent& event : calls_) {
      if (event.end != kNoEnd) continue;
      if (event.call == container::MapCall::erase || !seen.contains(event.value))
        event.value = kUnseen;
    }
  }
  /// Whether an earlier call that is alike has not happened, which then may in place of this one:
  /// without this the search would double with each such call.
  [[nodiscard]] bool has_elder(std::uint64_t done, std::size_t number) const {
    const KeyEvent& one = calls_[number];
    if (one.end != kNoEnd || one.value != kUnseen) return false;
    for (std::size_t i = 0; i < number; ++i)
      if ((done >> i & 1) == 0 && calls_[i].end == kNoEnd && calls_[i].call == one.call &&
          calls_[i].value == kUnseen)
        return true;
    return false;
  }

  /// The states in which a call that has ended can leave a key; none if it cannot follow.
  static std::vector<std::uint64_t> after(const KeyEvent& event, std::uint64_t state) {
    const bool there = state != kAbsent && state != kHalf;
    if (event.end == kNoEnd) {
      if (event.call == container::MapCall::erase) return {kAbsent};
      if (event.call == container::MapCall::insert && there) return {};
      return {event.value, kHalf};
    }
    if (event.found != there) return {};
    switch (event.call) {
      case container::MapCall::find:
        if (state == kHalf || (there && state != event.value)) return {};
        return {state};
      case container::MapCall::insert:
        if (there && state != event.value) return {};
        return {event.value};
      case container::MapCall::assign:
        return {event.value};
      case container::MapCall::erase:
        return {kAbsent};
      case container::MapCall::add:  // the values of these histories are no numbers
      case container::MapCall::exchange:
      case container::MapCall::take:
        break;
    }
    return {};
  }

  /// Whether what is not yet in `done` can follow this state; calls without an end need not happen.
  bool search(std::uint64_t done, std::uint64_t state) {
    std::uint64_t first_end = kNoEnd;
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if ((done >> i & 1) == 0) first_end = std::min(first_end, calls_[i].end);
    if (first_end == kNoEnd) return true;
    if (!seen_.emplace(done, state).second) return false;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((done >> i & 1) != 0 || calls_[i].begin > first_end || has_elder(done, i)) continue;
      for (const std::uint64_t next : after(calls_[i], state))
        if (search(done | std::uint64_t{1} << i, next)) return true;
    }
    return false;
  }

  std::vector<KeyEvent> events_;  // in the order in which they began
  std::vector<KeyEvent> calls_;   // the same, for the search
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;
};

/// An element's way through a queue.
struct ElementHistory {
  std::uint64_t push_begin = 0, push_end = kNoEnd;
  std::uint64_t pop_begin = kNoEnd, pop_end = kNoEnd;
  std::uint32_t pops = 0;
};

struct EmptyEvent {
  std::uint64_t begin, end;
};

/// Element i + 1 is the value i + 1. What is wrong, or nothing.
class QueueHistory {
 public:
  std::uint64_t push(std::uint64_t begin) {
    elements_.push_back({.push_begin = begin});
    return elements_.size();
  }
  void pushed(std::uint64_t element, std::uint64_t end) { elements_[element - 1].push_end = end; }
  /// The push did not happen, for certain.
  void not_pushed(std::uint64_t element) { elements_[element - 1].push_begin = kNoEnd; }
  std::string popped(std::uint64_t element, std::uint64_t begin, std::uint64_t end) {
    if (element == 0 || element > elements_.size())
      return "CON-S1: popped " + std::to_string(element) + ", which nobody pushed";
    ElementHistory& history = elements_[element - 1];
    if (history.push_begin == kNoEnd) return "CON-Q4: popped an element whose push ended full";
    if (++history.pops > 1) return "CON-Q1: popped " + std::to_string(element) + " twice";
    history.pop_begin = begin;
    history.pop_end = end;
    return "";
  }
  void found_empty(std::uint64_t begin, std::uint64_t end) { empty_.push_back({begin, end}); }

  /// `unknown_pops` did not end, and may have taken an element each.
  [[nodiscard]] std::string fault(std::uint64_t unknown_pops, bool drained) const {
    std::uint64_t missing = 0;
    for (const ElementHistory& a : elements_) {
      if (a.push_end == kNoEnd) continue;
      if (a.pops == 0) ++missing;
      for (const ElementHistory& b : elements_)
        if (a.push_end < b.push_begin && b.pops == 1 && a.pops == 1 && b.pop_end < a.pop_begin)
          return "CON-Q1: a later element left first";
      if (a.pops == 0) continue;
      for (const EmptyEvent& empty : empty_)
        if (a.push_end < empty.begin && empty.end < a.pop_begin)
          return "CON-Q4: empty, though an element was there all the time";
    }
    if (drained && missing > unknown_pops)
      return "CON-Q3: " + std::to_string(missing) + " elements are lost, and only " +
             std::to_string(unknown_pops) + " pops did not end";
    return "";
  }

 private:
  std::vector<ElementHistory> elements_;
  std::vector<EmptyEvent> empty_;
};

}  // namespace dunlin::test
