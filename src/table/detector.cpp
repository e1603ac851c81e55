#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/table/predicate.hpp>

#include "assert.hpp"
#include "fabric/thread_guard.hpp"
#include "table/counters.hpp"

namespace dunlin {

/// Marks a pass as running, and tidies up after it however it ends (TAB-P4).
class Detector::Running {
 public:
  explicit Running(Detector& detector) noexcept : detector_(detector) { detector_.running_ = true; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    detector_.running_ = false;
    if (detector_.sweep_due_) detector_.sweep();
  }

 private:
  Detector& detector_;
};

/// Removes a `once` that fires when its triggers have run, however they end (TAB-P3).
class Detector::Spent {
 public:
  Spent(Detector& detector, Predicate& predicate) noexcept
      : detector_(detector), predicate_(predicate) {
    DUNLIN_ASSERT(!predicate.spent, "TAB-P3: a predicate `once` fires once");
    predicate_.spent = true;
  }
  Spent(const Spent&) = delete;
  Spent& operator=(const Spent&) = delete;
  ~Spent() {
    predicate_.removed = true;
    detector_.sweep_due_ = true;
  }

 private:
  Detector& detector_;
  Predicate& predicate_;
};

Detector::Detector(Fabric& fabric) noexcept : fabric_(fabric), costs_(fabric.cpu_costs()) {}

/// Destroying a predicate's functions may remove other predicates, which must find a whole
/// detector.
Detector::~Detector() {
  const std::vector<PredicatePointer> last = std::move(predicates_);
  predicates_.clear();
  for (const PredicatePointer& p : last)
    if (counters_ != nullptr) counters_->hide(*p);
}

std::size_t Detector::size() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(predicates_.begin(), predicates_.end(),
                    [](const PredicatePointer& p) { return !p->removed && !p->spent; }));
}

std::uint64_t Detector::add(PredicatePointer predicate) {
  if (predicates_.size() >= kMaxPredicates && size() >= kMaxPredicates) {
    throw Error("table: " + std::to_string(kMaxPredicates) +
                " predicates (kMaxPredicates) are registered already; remove some, or let one "
                "predicate watch a whole column");
  }
  Predicate& p = *predicate;
  p.id = next_id_++;
  p.first_pass = passes_ + 1;
  p.firings = &p.own_firings;
  predicates_.push_back(std::move(predicate));
  if (counters_ != nullptr) counters_->show(p);
  return p.id;
}

bool Detector::remove(std::uint64_t id) noexcept {
  Predicate* found = find(id);
  if (found == nullptr) return false;
  found->removed = true;
  sweep_due_ = true;
  if (!running_) sweep();
  return true;
}

Predicate* Detector::find(std::uint64_t id) noexcept {
  for (const PredicatePointer& p : predicates_) {
    if (p->id == id) return p->removed ? nullptr : p.get();
  }
  return nullptr;
}

std::size_t Detector::evaluate_all() {
  DUNLIN_ONE_THREAD(&fabric_);
  const Running running(*this);
  std::size_t fired = 0;
  // The loop goes by index up to the size at the beginning (TAB-P1): a trigger may add predicates.
  const std::size_t count = predicates_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Predicate& p = *predicates_[i];
    if (p.removed) continue;
    if (costs_ != nullptr) [[unlikely]] {
      fabric_.spend(costs_->predicate_ns + p.entries * costs_->entry_ns);
    }
    const bool is_true = p.evaluate(p);
    const bool fires = is_true && (p.kind != PredicateKind::transition || !p.was_true);
    p.was_true = is_true;
    if (!fires) continue;
    ++fired;
    memory::store(*p.firings, *p.firings + 1);
    if (p.kind == PredicateKind::once) {
      const Spent spent(*this, p);
      p.fire(p, *this);
    } else {
      p.fire(p, *this);
    }
  }
  return fired;
}

void Detector::run_added(Predicate& p, std::size_t count) {
  auto trigger = p.triggers.begin();
  for (; count > 0 && may_trigger(p); --count) (*trigger++)();
}

void Detector::sweep() noexcept {
  DUNLIN_ASSERT_ALWAYS(!running_, "TAB-P1: no predicate goes while a pass is running");
  sweep_due_ = false;
  // Destroying their functions may remove further predicates: so they go when all is tidy.
  std::vector<PredicatePointer> gone;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < predicates_.size(); ++i) {
    if (predicates_[i]->removed) {
      if (counters_ != nullptr) counters_->hide(*predicates_[i]);
      gone.push_back(std::move(predicates_[i]));
    } else {
      if (kept != i) predicates_[kept] = std::move(predicates_[i]);
      ++kept;
    }
  }
  predicates_.resize(kept);
}

}  // namespace dunlin
