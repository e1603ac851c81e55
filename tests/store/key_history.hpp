#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// What was done to one key of a store, and whether it can have happened in one order (STO-1).
namespace dunlin::test {

enum class KeyCall : std::uint8_t { get, put, insert, erase, append };

/// Values are unique and above 0; 0 is "absent".
struct KeyCallRecord {
  static constexpr std::uint64_t kNoEnd = UINT64_MAX;
  KeyCall call = KeyCall::get;
  std::uint64_t writes = 0;  // put, insert, append: what the key holds after it
  std::uint64_t saw = 0;     // what it held before, if the call says
  bool found = false;
  std::uint64_t begin = 0;  // numbers of events in the test, all different
  std::uint64_t end = kNoEnd;
};

class KeyCalls {
 public:
  static constexpr std::size_t kMost = 56;
  /// The search tries each place of each call without an end.
  static constexpr std::size_t kMostWithoutEnd = 8;

  std::size_t add(const KeyCallRecord& record) {
    records_.push_back(record);
    return records_.size() - 1;
  }
  KeyCallRecord& operator[](std::size_t i) { return records_[i]; }
  [[nodiscard]] bool full() const {
    std::size_t without_end = 0;
    for (const KeyCallRecord& record : records_)
      without_end += record.call != KeyCall::get && record.end == KeyCallRecord::kNoEnd ? 1 : 0;
    return records_.size() >= kMost || without_end >= kMostWithoutEnd;
  }
  [[nodiscard]] const std::vector<KeyCallRecord>& records() const { return records_; }
  /// It has not happened, for certain.
  void strike(std::size_t i) {
    records_[i].call = KeyCall::get, records_[i].end = KeyCallRecord::kNoEnd;
  }

  /// The store may also have evicted the key at any moment (STO-V1).
  [[nodiscard]] bool linearizable(bool may_vanish = false) {
    may_vanish_ = may_vanish;
    std::erase_if(records_, [](const KeyCallRecord& record) {
      return record.call == KeyCall::get && record.end == KeyCallRecord::kNoEnd;
    });
    visited_.clear();
    return search(0, 0);
  }
  [[nodiscard]] std::string text() const {
    static const std::vector<std::string> names{"get", "put", "insert", "erase", "append"};
    std::string all;
    for (const KeyCallRecord& record : records_)
      all += names.at(static_cast<std::size_t>(record.call)) + " writes " +
             std::to_string(record.writes) + (record.found ? " found " : " did not find ") +
             std::to_string(record.saw) + ", from " + std::to_string(record.begin) + " to " +
             (record.end == KeyCallRecord::kNoEnd ? "?" : std::to_string(record.end)) + "\n";
    return all;
  }

 private:
  /// Whether the call, at a moment when the key holds `state`, would have said what it said.
  [[nodiscard]] static bool agrees(const KeyCallRecord& record, std::uint64_t state) {
    if (record.end == KeyCallRecord::kNoEnd) return true;
    const bool sees = record.call == KeyCall::get || record.call == KeyCall::append ||
                      (record.call == KeyCall::insert && record.found);
    return record.found == (state != 0) && (!sees || record.saw == state);
  }
  [[nodiscard]] static std::uint64_t after(const KeyCallRecord& record, std::uint64_t state) {
    switch (record.call) {
      case KeyCall::get:
        return state;
      case KeyCall::put:
      case KeyCall::append:
        return record.writes;
      case KeyCall::insert:
        return state != 0 ? state : record.writes;
      case KeyCall::erase:
        return 0;
    }
    return state;
  }
  /// Whether what is not in `done` can follow this state; calls without an end need not happen.
  [[nodiscard]] bool search(std::uint64_t done, std::uint64_t state) {
    std::uint64_t first_end = KeyCallRecord::kNoEnd;
    for (std::size_t i = 0; i < records_.size(); ++i)
      if ((done >> i & 1) == 0) first_end = std::min(first_end, records_[i].end);
    if (first_end == KeyCallRecord::kNoEnd) return true;
    if (!visited_.emplace(done, state).second) return false;
    if (may_vanish_ && state != 0 && search(done, 0)) return true;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const KeyCallRecord& record = records_[i];
      if ((done >> i & 1) != 0 || record.begin > first_end || !agrees(record, state)) continue;
      if (search(done | std::uint64_t{1} << i, after(record, state))) return true;
    }
    return false;
  }

  bool may_vanish_ = false;
  std::vector<KeyCallRecord> records_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> visited_;
};

}  // namespace dunlin::test
