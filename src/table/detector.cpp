#include <algorithm>
#include <iterator>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/table/predicate.hpp>

#include "table/board.hpp"

namespace dunlin {

/// Marks a pass as running, and tidies up after it however it ends (P4).
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

Detector::Detector(Fabric& fabric) noexcept : fabric_(fabric), costs_(fabric.cpu_costs()) {}

Detector::~Detector() = default;

std::uint64_t Detector::add(PredicatePointer predicate) {
  if (predicates_.size() >= kMaxPredicates) {
    throw Error("table: " + std::to_string(kMaxPredicates) +
                " predicates (kMaxPredicates) are registered already; remove some, or let one "
                "predicate watch a whole column");
  }
  Predicate& p = *predicate;
  p.id = next_id_++;
  p.first_pass = passes_ + 1;
  p.firings = &p.own_firings;
  predicates_.push_back(std::move(predicate));
  if (board_ != nullptr) board_->show(p, passes_);
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
  const Running running(*this);
  std::size_t fired = 0;
  // By index and up to the size at the beginning (P1): a trigger may add predicates.
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
      p.removed = true;
      sweep_due_ = true;
    }
    p.fire(p, *this);
  }
  return fired;
}

void Detector::run_added(Predicate& p, std::size_t count) {
  auto trigger = p.triggers.begin();
  for (; count > 0 && may_trigger(p); --count) (*trigger++)();
}

void Detector::sweep() noexcept {
  sweep_due_ = false;
  std::erase_if(predicates_, [this](const PredicatePointer& p) {
    if (p->removed && board_ != nullptr) board_->hide(*p);
    return p->removed;
  });
}

}  // namespace dunlin
