#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/node/engine.hpp>
#include <dunlin/table.hpp>

/// A shared state table over the members of a node's group, for any thread (table.hpp says what a
/// table is). Each view has a table of its own: its rows are the members in the view's order, the
/// own row goes on with what it had, and predicates are registered anew.
///
///     auto loads = node.table<Row>("loads");
///     loads.update([](Row& mine) { mine.load = 0.7; mine.step = 1; }, &Row::load, &Row::step);
///     loads.until(dunlin::all(&Row::step) >= 1).get();
///     for (const Row& row : loads.snapshot()) use(row.load);
namespace dunlin {

template <class Row>
class TableHandle {
 public:
  TableHandle(std::shared_ptr<node::Engine> engine, const std::string& name)
      : engine_(std::move(engine)) {
    object_ = engine_->with_lock([&] {
      return engine_->template object<Object>(
          "table '" + name + "'", [&] { return std::make_shared<Object>(*engine_, name); });
    });
  }

  /// Calls `change(Row& mine)` for the own row, then publishes these columns (none: the whole row).
  template <class Change, class... Columns>
  void update(Change&& change, Columns... columns) {
    engine_->with_lock([&] {
      change(object_->table().mine());
      static_cast<void>(object_->table().push(columns...));
    });
    engine_->wake_if_asleep();
  }
  /// Returns what `look(const Table<Row>&)` returns; no row changes here meanwhile but by peers.
  template <class Look>
  auto look(Look&& look) const {
    return engine_->look_with_lock([&] { return look(std::as_const(object_->table())); });
  }
  [[nodiscard]] Snapshot<Row> snapshot() const {
    return look([](const Table<Row>& table) { return table.snapshot(); });
  }
  [[nodiscard]] std::size_t size() const {
    return look([](const Table<Row>& table) { return table.size(); });
  }
  [[nodiscard]] std::size_t my_row() const {
    return look([](const Table<Row>& table) { return table.my_row(); });
  }

  /// Ends once the predicate is true: an expression (table/expression.hpp), or a pure function of a
  /// constant Table<Row>. If that throws, it ends with `threw`.
  template <class P>
  [[nodiscard]] Future<void> until(P predicate) {
    return engine_->with_lock([&] {
      auto* const waiting = new Waiting(*engine_);
      Future<void> future(waiting);
      waiting->begin(*object_, std::move(predicate));
      engine_->wake_if_asleep();
      return future;
    });
  }
  /// Calls `trigger(Table<Row>&)` on the node's thread each time that the predicate has become true
  /// in a view. The trigger may change the own row and push, and must not wait. A predicate that
  /// throws is false from then on, and on_exception is told.
  template <class P, class Trigger>
  void when(P predicate, Trigger trigger) {
    engine_->with_lock([&] {
      const auto failed = [engine = engine_.get()] {
        engine->call_back([] { throw; });
        return false;
      };
      object_->add([engine = engine_.get(), guarded = guard(std::move(predicate), failed),
                    trigger](Table<Row>& table) {
        table.when(guarded).transition(
            [engine, trigger](Table<Row>& its) { engine->call_back([&] { trigger(its); }); });
      });
    });
    engine_->wake_if_asleep();
  }

 private:
  /// A function of the program as a predicate: if it throws, `failed()` is called in the handler,
  /// and says what the predicate is from then on. Expressions are as they are.
  template <class P, class Failed>
  static auto guard(P predicate, Failed failed) {
    if constexpr (detail::Boolean<P>) {
      return predicate;
    } else {
      return [predicate = std::move(predicate), failed = std::move(failed),
              end = std::make_shared<std::optional<bool>>()](const Table<Row>& table) -> bool {
        if (*end) return **end;
        try {
          return predicate(table);
        } catch (...) {
          *end = failed();
          return **end;
        }
      };
    }
  }

  class Object final : public node::NodeObject {
   public:
    using Register = std::function<void(Table<Row>&)>;
    Object(node::Engine& engine, std::string name) : engine_(engine), name_(std::move(name)) {
      make();
    }
    [[nodiscard]] Table<Row>& table() noexcept { return *table_; }
    std::size_t poll() override { return table_ ? table_->poll() : 0; }
    void view_changed() override { make(); }
    [[nodiscard]] bool handed_over() override { return !table_ || table_->settled(); }
    void end() noexcept override {
      table_.reset();
      predicates_.clear();
    }
    /// Registers predicates at this table, and at those of later views.
    std::uint64_t add(Register its) {
      its(*table_);
      predicates_.emplace_back(++last_, std::move(its));
      return last_;
    }
    void remove(std::uint64_t number) {
      std::erase_if(predicates_, [number](const auto& one) { return one.first == number; });
    }

   private:
    void make() {
      const View& view = engine_.group().view();
      if (std::ranges::find(view.ranks, engine_.fabric().rank()) == view.ranks.end()) return;
      // Another thread may have made the view's table before the node's thread came to the view.
      if (table_ && table_->core().options().generation == view.number) return;
      auto next = std::make_unique<Table<Row>>(
          engine_.fabric(),
          TableOptions{.name = name_, .members = view.ranks, .generation = view.number});
      if constexpr (Table<Row>::kOfPlainMembers) {
        if (table_) next->mine() = table_->mine();
      } else if (table_) {
        const Snapshot<Row> before = table_->snapshot();
        std::memcpy(static_cast<void*>(&next->mine()), &before[table_->my_row()], sizeof(Row));
      }
      table_ = std::move(next);
      static_cast<void>(table_->push());
      for (const auto& [number, its] : predicates_) its(*table_);
    }

    node::Engine& engine_;
    const std::string name_;
    std::unique_ptr<Table<Row>> table_;
    std::vector<std::pair<std::uint64_t, Register>> predicates_;
    std::uint64_t last_ = 0;
  };

  class Waiting final : public node::SharedResult<void> {
   public:
    explicit Waiting(node::Engine& engine) : node::SharedResult<void>(engine, false) {}
    template <class P>
    void begin(Object& object, P predicate) {
      this->link();
      object_ = &object;
      auto guarded = guard(std::move(predicate), [this] { return note_exception(); });
      number_ = object.add([this, guarded = std::move(guarded)](Table<Row>& table) {
        handle_ = table.when(guarded).once(
            [this] { finish(failure_ ? Result<void>(std::move(*failure_)) : Result<void>()); });
      });
    }
    void fail(Failure failure) noexcept override {
      handle_.remove();
      finish(std::move(failure));
    }

   private:
    /// In a handler; true, so that the wait ends.
    bool note_exception() {
      failure_.emplace(Failure{remote::Status::threw, "a predicate threw no std::exception"});
      try {
        throw;
      } catch (const std::exception& error) {
        failure_->text = std::string("a predicate threw: ") + error.what();
      } catch (...) {  // it says so already
        return true;
      }
      return true;
    }
    void finish(Result<void> how) noexcept {
      object_->remove(number_);
      this->result = std::move(how);
      this->end();
    }
    Object* object_ = nullptr;
    std::uint64_t number_ = 0;
    typename Table<Row>::Handle handle_;
    std::optional<Failure> failure_;
  };

  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<Object> object_;
};

}  // namespace dunlin
