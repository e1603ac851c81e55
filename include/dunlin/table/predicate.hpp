#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/memory.hpp>

/// The detector: a table's predicates, evaluated one after the other in every poll, each with its
/// triggers, which run in order when it fires. It is untyped; `Table<Row>::when` is the way in. One
/// thread at a time uses it, the one that polls the table.
///
/// Invariants:
///  TAB-P1  One pass evaluates every predicate that was there when it began, in order of
///      registration. One added meanwhile is first evaluated in the next pass.
///  TAB-P2  A removed predicate is not evaluated again and runs no further trigger, also when it is
///      removed from within its own trigger.
///  TAB-P3  once: fires in the first pass in which it is true, and is removed when its triggers
///      have run (or one of them threw). transition: fires if it is true now and was not in the
///      pass before (or there was none). recurrent: fires in every pass in which it is true.
///  TAB-P4  An exception from a predicate or trigger ends the pass and leaves through poll(); the
///      detector stays usable. The rest of that predicate's triggers do not run.
namespace dunlin {

enum class PredicateKind : std::uint8_t { recurrent, once, transition };

class Detector;
class TableCounters;
namespace counter_page {
struct Record;
}

/// One registered predicate; the typed part derives from it without virtual functions.
struct Predicate {
  using Evaluate = bool (*)(const Predicate&);
  using Fire = void (*)(Predicate&, Detector&);
  using Destroy = void (*)(Predicate*) noexcept;

  Evaluate evaluate = nullptr;
  Fire fire = nullptr;
  Destroy destroy = nullptr;
  std::uint64_t* firings = nullptr;  // its count, where observers see it if there is room
  PredicateKind kind = PredicateKind::recurrent;
  bool removed = false;
  bool spent = false;  // true for a `once` that has fired
  bool was_true = false;
  std::uint32_t entries = 1;  // how many an evaluation reads; charged to a simulated CPU
  std::uint64_t id = 0;
  std::uint64_t first_pass = 0;
  std::uint64_t own_firings = 0;
  counter_page::Record* shown = nullptr;  // the published record of `firings`
  std::string name;
  std::size_t first_triggers = 0;  // those given at registration, which the typed part knows
  /// Triggers that were added later; a list, because a running trigger may add some.
  std::list<std::function<void()>> triggers;
};

struct PredicateDeleter {
  void operator()(Predicate* p) const noexcept { p->destroy(p); }
};
using PredicatePointer = std::unique_ptr<Predicate, PredicateDeleter>;

class Detector {
 public:
  /// `fabric` pays for the work where CPU time is simulated.
  explicit Detector(Fabric& fabric) noexcept;
  ~Detector();
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  /// Sets where observers see the predicates; to be called before the first one is added.
  void show_in(TableCounters& counters) noexcept { counters_ = &counters; }
  /// Throws Error if there are kMaxPredicates already. Returns the predicate's id.
  std::uint64_t add(PredicatePointer predicate);
  /// Removes a predicate; returns whether it was there.
  bool remove(std::uint64_t id) noexcept;
  [[nodiscard]] Predicate* find(std::uint64_t id) noexcept;

  /// Runs one pass (TAB-P1); returns how many predicates fired.
  std::size_t run_pass() {
    if (running_) return 0;  // a trigger that polls its own table finds nothing to do
    ++passes_;
    if (predicates_.empty()) return 0;
    return evaluate_all();
  }
  /// Whether a predicate that fires may run its next trigger (TAB-P2).
  [[nodiscard]] bool may_trigger(const Predicate& predicate) noexcept {
    if (costs_ != nullptr) [[unlikely]]
      fabric_.spend(costs_->trigger_ns);
    return !predicate.removed;
  }
  /// Runs the first `count` of the triggers that were added after registration.
  void run_added(Predicate& predicate, std::size_t count);
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  /// The number of predicates that can still fire.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool running() const noexcept { return running_; }

 private:
  class Running;
  class Spent;
  std::size_t evaluate_all();
  void sweep() noexcept;

  Fabric& fabric_;
  TableCounters* counters_ = nullptr;
  const CpuCosts* costs_;
  std::vector<PredicatePointer> predicates_;
  std::uint64_t passes_ = 0;
  std::uint64_t next_id_ = 1;
  bool running_ = false;
  bool sweep_due_ = false;
};

}  // namespace dunlin
