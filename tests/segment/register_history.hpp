#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

/// What was done to one segment, by whom and between which events, and whether it can have happened
/// in one order (linearizability): a search over all orders that the intervals permit.
namespace dunlin::test {

struct RegisterEvent {
  bool is_put = false;
  std::uint32_t client = 0;
  std::uint64_t value = 0;
  std::uint64_t begin = 0;         // numbers of events in the test, all different
  std::uint64_t end = UINT64_MAX;  // for ever: a put that may have happened, or may yet
};

class RegisterHistory {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kReserved = 6;  // for what a test looks at in the end

  /// The event's number, to end it later.
  std::size_t add(const RegisterEvent& event) {
    events_.push_back(event);
    return events_.size() - 1;
  }
  RegisterEvent& operator[](std::size_t number) { return events_[number]; }
  [[nodiscard]] bool full() const { return events_.size() + kReserved >= kMost; }
  [[nodiscard]] const std::vector<RegisterEvent>& events() const { return events_; }

  /// Left out are gets without an end, as nobody saw what they returned, and puts without an end
  /// whose value nobody got: an order with such a put is as good without it.
  [[nodiscard]] bool linearizable() {
    std::erase_if(events_, [](const RegisterEvent& e) { return !e.is_put && e.end == UINT64_MAX; });
    std::set<std::uint64_t> got;
    for (const RegisterEvent& event : events_)
      if (!event.is_put) got.insert(event.value);
    std::erase_if(events_, [&](const RegisterEvent& e) {
      return e.end == UINT64_MAX && !got.contains(e.value);
    });
    seen_.clear();
    return search(0, 0);
  }

 private:
  /// Whether what is not yet in `done` can follow a state in which the register has this value.
  bool search(std::uint64_t done, std::uint64_t value) {
    std::uint64_t first_end = UINT64_MAX;
    for (std::size_t i = 0; i < events_.size(); ++i)
      if ((done >> i & 1) == 0 && events_[i].end < first_end) first_end = events_[i].end;
    if (first_end == UINT64_MAX) return true;  // only puts that need not have happened are left
    if (!seen_.emplace(done, value).second) return false;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const RegisterEvent& event = events_[i];
      if ((done >> i & 1) != 0 || event.begin > first_end) continue;
      if (!event.is_put && event.value != value) continue;
      if (search(done | std::uint64_t{1} << i, event.is_put ? event.value : value)) return true;
    }
    return false;
  }

  std::vector<RegisterEvent> events_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;
};

}  // namespace dunlin::test
