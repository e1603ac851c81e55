#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/table/core.hpp>
#include <dunlin/table/expression.hpp>
#include <dunlin/table/snapshot.hpp>

/// The shared state table: one row a node. A node writes only its own row and publishes it with
/// push(); it reads all rows from its own memory, and reacts to them with predicates and triggers.
/// One thread at a time uses a table (and its fabric); all progress is made in poll().
///
///     struct Row {
///       dunlin::Cell<int> step;
///       dunlin::Cell<double> cpu_load;
///     };                              // or, of plain members: int step; double cpu_load;
///
///     auto fabric = dunlin::join({.group = "rack7", .members = 4});
///     dunlin::Table<Row> table(fabric);
///     table.when(dunlin::all(&Row::step) >= 1).once([](auto& t) {
///       t.mine().step = 2;
///       t.push(&Row::step);
///     });
///     table.mine().step = 1;
///     table.push(&Row::step);
///     dunlin::run(table);
///
/// The idea is that of the shared state table of Derecho's authors; docs/table.md has the promises,
/// docs/formats/row.md the layout of a row in memory.
namespace dunlin {

/// Names one entry of a column of several entries, to be pushed alone:
/// table.push(dunlin::entry(&Row::costs, 3)).
template <class Row, class M>
struct EntrySelector {
  M Row::*column;
  std::size_t index;
};

template <class Row>
class Table {
  using Stored = detail::StoredRow<Row>;
  struct Nothing {};

 public:
  using row_type = Row;
  /// Whether the row is a struct of plain members (TAB-T6).
  static constexpr bool kOfPlainMembers = !std::is_same_v<Stored, Row>;

  /// A Handle refers to a registered predicate, also after the predicate is gone. Must not outlive
  /// its table.
  class Handle {
   public:
    Handle() = default;
    /// Removes the predicate (TAB-P2); false if it was gone already.
    bool remove() noexcept { return table_ != nullptr && table_->core_.detector().remove(id_); }
    [[nodiscard]] bool active() const noexcept { return predicate() != nullptr; }
    /// How often the predicate has fired; 0 once it is gone.
    [[nodiscard]] std::uint64_t firings() const noexcept {
      const Predicate* p = predicate();
      return p == nullptr ? 0 : *p->firings;
    }
    /// Adds a trigger behind the predicate's others; throws Error if the predicate is gone.
    template <class Trigger>
    Handle& then(Trigger trigger) {
      static_assert(kIsTrigger<Trigger>,
                    "dunlin: a trigger is called with the table (auto& t), or with nothing.");
      Predicate* p = predicate();
      if (p == nullptr) throw Error("table: the predicate is gone, and would not run this trigger");
      p->triggers.push_back(table_->bind(std::move(trigger)));
      return *this;
    }

   private:
    friend class Table;
    Handle(Table& table, std::uint64_t id) noexcept : table_(&table), id_(id) {}
    [[nodiscard]] Predicate* predicate() const noexcept {
      return table_ == nullptr ? nullptr : table_->core_.detector().find(id_);
    }
    Table* table_ = nullptr;
    std::uint64_t id_ = 0;
  };

  /// A predicate that is being registered. One of the three functions registers it with its
  /// triggers, which run in order and take the table, or nothing.
  template <class P>
  class When {
   public:
    /// Registers a predicate that fires in every poll in which it is true.
    template <class... Triggers>
    Handle recurrent(Triggers... triggers) && {
      return table_.add(std::move(*this), PredicateKind::recurrent, std::move(triggers)...);
    }
    /// Registers a predicate that fires the first time it is true, and then is gone.
    template <class... Triggers>
    Handle once(Triggers... triggers) && {
      return table_.add(std::move(*this), PredicateKind::once, std::move(triggers)...);
    }
    /// Registers a predicate that fires each time it has become true.
    template <class... Triggers>
    Handle transition(Triggers... triggers) && {
      return table_.add(std::move(*this), PredicateKind::transition, std::move(triggers)...);
    }

   private:
    friend class Table;
    When(Table& table, P predicate, std::string name)
        : table_(table), predicate_(std::move(predicate)), name_(std::move(name)) {}
    Table& table_;
    P predicate_;
    std::string name_;
  };

  /// A table's push to some rows only; made by to().
  class Selection {
   public:
    template <class... Columns>
    Pushed push(Columns... columns) noexcept {
      return table_.push_items(rows_, nullptr, columns...);
    }
    template <class... Columns>
    Pushed push(Completion& completion, Columns... columns) noexcept {
      return table_.push_items(rows_, &completion, columns...);
    }

   private:
    friend class Table;
    Selection(Table& table, std::vector<std::uint32_t> rows)
        : table_(table), rows_(std::move(rows)) {}
    Table& table_;
    std::vector<std::uint32_t> rows_;
  };

  /// Makes this node's part of the table; throws Error. Does not wait for the others: until other
  /// nodes have made their parts, their rows show initial values; then they receive our row.
  explicit Table(Fabric& fabric, TableOptions options = {})
      : core_(
            fabric, layout_of<Row>(), [](std::byte* at) { make_row(at); }, std::move(options)) {}
  explicit Table(const std::unique_ptr<Fabric>& fabric, TableOptions options = {})
      : Table(*fabric, std::move(options)) {}
  template <std::same_as<std::unique_ptr<Fabric>> Temporary>
  explicit Table(Temporary&& fabric,  // NOLINT(bugprone-forwarding-reference-overload)
                 TableOptions options = {})
      : Table(*fabric, std::move(options)) {
    static_assert(detail::kAlwaysFalse<Temporary>,
                  "dunlin: a table does not own its fabric: keep the fabric in a variable that "
                  "outlives the table.");
  }

  // --- rows --------------------------------------------------------------------------------------
  [[nodiscard]] std::size_t size() const noexcept { return core_.size(); }
  [[nodiscard]] std::size_t my_row() const noexcept { return core_.my_row(); }
  /// Row i. Of plain members: a copy, each entry whole, the entries in reverse order of
  /// declaration.
  [[nodiscard]] std::conditional_t<kOfPlainMembers, const Row, const Row&> operator[](
      std::size_t i) const noexcept {
    if constexpr (kOfPlainMembers)
      return stored(i).load();
    else
      return stored(i);
  }
  /// The value of a column at row i: one load if it has one entry of up to 8 bytes.
  template <class M>
  [[nodiscard]] auto get(std::size_t i, M Row::*column) const noexcept {
    static_assert(detail::MemberTraits<detail::StoredAs<M>>::kKind != ColumnKind::list,
                  "dunlin: a list has no one value: read table[i].list.at(index)");
    return detail::load_value(detail::cell_of(stored(i), column));
  }
  /// The value of one entry of a column: get(i, dunlin::entry(&Row::costs, 3)).
  template <class M>
  [[nodiscard]] auto get(std::size_t i, EntrySelector<Row, M> selected) const noexcept {
    using Cells = detail::StoredAs<M>;
    static_assert(detail::MemberTraits<Cells>::kKind != ColumnKind::list,
                  "dunlin: a value of a list has an index: table[i].list.at(index)");
    return detail::load_value(
        detail::entry_of(detail::cell_of(stored(i), selected.column), selected.index));
  }
  /// The own row, which this node alone writes. Of plain members: a copy in private memory, of
  /// which nobody, not even a predicate here, sees anything but by push() (TAB-T6).
  [[nodiscard]] Row& mine() noexcept {
    if constexpr (kOfPlainMembers)
      return draft_;
    else
      return own_row();
  }
  [[nodiscard]] const Row& mine() const noexcept {
    if constexpr (kOfPlainMembers)
      return draft_;
    else
      return stored(my_row());
  }
  /// False once the row is frozen, because its node failed or gave up the table.
  [[nodiscard]] bool alive(std::size_t i) const noexcept { return core_.alive(i); }
  [[nodiscard]] RowState state(std::size_t i) const noexcept { return core_.state(i); }
  /// Whether all nodes that have not failed have made their part of the table.
  [[nodiscard]] bool connected() const noexcept { return core_.connected(); }
  /// Whether every live node has been sent all that was pushed so far. A table that is destroyed
  /// earlier may leave other nodes without its last push.
  [[nodiscard]] bool settled() const noexcept { return core_.settled(); }
  [[nodiscard]] Snapshot<Row> snapshot() const {
    Snapshot<Row> copy(size(), my_row());
    for (std::size_t i = 0; i < size(); ++i) {
      copy.rows_[i].alive = alive(i);
      if constexpr (kOfPlainMembers)
        copy.rows_[i].row = stored(i).load();
      else
        core_.copy_row(i, reinterpret_cast<std::byte*>(&copy.rows_[i].row));
    }
    return copy;
  }

  // --- publishing --------------------------------------------------------------------------------
  /// Publishes columns of the own row to all others, in the order given (TAB-T3); no columns: the
  /// whole row, in order of declaration. Never blocks and never loses: see Pushed.
  template <class... Columns>
  requires(!std::is_same_v<Completion, std::remove_cvref_t<Columns>> && ...) Pushed
      push(Columns... columns)
  noexcept {
    publish(columns...);
    if constexpr (sizeof...(columns) == 0) {
      return core_.push(core_.whole_row());
    } else {
      const PushItem items[]{item(columns)...};
      return core_.push(items);
    }
  }
  /// Publishes columns with a completion, which is finished when all is placed at every peer that
  /// the push was sent to.
  template <class... Columns>
  Pushed push(Completion& completion, Columns... columns) noexcept {
    publish(columns...);
    if constexpr (sizeof...(columns) == 0) {
      return core_.push(core_.whole_row(), &completion);
    } else {
      const PushItem items[]{item(columns)...};
      return core_.push(items, &completion);
    }
  }
  /// Restricts a push to some rows: table.to({1, 2}).push(&Row::step). The result may be kept;
  /// throws Error for rows that do not exist.
  [[nodiscard]] Selection to(std::vector<std::uint32_t> rows) {
    for (const std::uint32_t row : rows) core_.require_row(row);
    return Selection(*this, std::move(rows));
  }

  // --- reacting ----------------------------------------------------------------------------------
  /// Begins to register a predicate: an expression (table/expression.hpp), or any pure function of
  /// the table. `dunlin top` shows the name; by default it is the expression itself, or the place
  /// of the call.
  template <class P>
  [[nodiscard]] When<P> when(P predicate, std::string name = {},
                             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (name.empty()) name = describe(predicate, file, line);
    return When<P>(*this, std::move(predicate), std::move(name));
  }
  /// Sets the handler that poll() calls once for each row that becomes frozen: `upcall(table, row,
  /// why)`; for rows that are frozen already, in the next poll(). Replaces an earlier handler. It
  /// may make a new table, but must leave this one alive until poll() has returned.
  template <class Upcall>
  void on_failure(Upcall upcall) {
    core_.on_failure(
        [this, upcall = std::move(upcall)](
            std::size_t row, RowState, std::string_view why) mutable { upcall(*this, row, why); });
  }
  std::size_t poll() { return core_.poll(); }
  void check() const { core_.check(); }

  // --- underneath --------------------------------------------------------------------------------
  [[nodiscard]] TableCore& core() noexcept { return core_; }
  [[nodiscard]] Fabric& fabric() const noexcept { return core_.fabric(); }
  template <class M>
  [[nodiscard]] const Column* column(M Row::*member) const noexcept {
    const std::size_t offset = offset_of(member);
    for (const Column& c : core_.layout().columns) {
      if (c.offset == offset) return &c;
    }
    return nullptr;
  }
  /// A row as it is in memory: of cells, for expressions.
  [[nodiscard]] const Stored& stored(std::size_t i) const noexcept {
    return *std::launder(reinterpret_cast<const Stored*>(core_.row(i)));
  }
  /// The rows' memory, one after the other, for expressions; null once any row is frozen.
  [[nodiscard]] const std::byte* unfrozen_rows() const noexcept { return core_.unfrozen_rows(); }
  [[nodiscard]] static const Stored* row_at(const std::byte* rows, std::size_t i) noexcept {
    constexpr std::size_t kStride = round_up(sizeof(Stored), kCacheLineBytes);
    return std::launder(reinterpret_cast<const Stored*>(rows + i * kStride));
  }

 private:
  template <class Trigger>
  static constexpr bool kIsTrigger =
      std::is_invocable_v<Trigger&, Table&> || std::is_invocable_v<Trigger&>;

  /// A firing calls triggers from registration directly, and later ones through the list.
  template <class P, class... Triggers>
  struct TypedPredicate : Predicate {
    TypedPredicate(Table& t, P p, Triggers... given)
        : table(t), predicate(std::move(p)), first(std::move(given)...) {}
    void run(Detector& detector) {
      // A trigger may add further triggers, which run the next time only.
      const std::size_t added = triggers.size();
      std::apply(
          [&](auto&... trigger) {
            static_cast<void>(((detector.may_trigger(*this) && call(trigger)) && ...));
          },
          first);
      if (added > 0) detector.run_added(*this, added);
    }
    template <class Trigger>
    bool call(Trigger& trigger) {
      if constexpr (std::is_invocable_v<Trigger&, Table&>)
        trigger(table);
      else
        trigger();
      return true;
    }
    Table& table;
    P predicate;
    std::tuple<Triggers...> first;
  };

  static void make_row(std::byte* at) {
    if constexpr (kOfPlainMembers)
      new (at) Stored(Row());
    else
      new (at) Row();
  }
  [[nodiscard]] Stored& own_row() noexcept {
    return *std::launder(reinterpret_cast<Stored*>(core_.mine()));
  }

  /// Before a push of plain members: copies them to the own row in the order given.
  template <class... Columns>
  void publish(Columns... columns) noexcept {
    if constexpr (kOfPlainMembers) {
      if constexpr (sizeof...(columns) == 0)
        own_row().store(draft_);
      else
        (publish_one(columns), ...);
    }
  }
  template <class M>
  void publish_one(M Row::*member) noexcept {
    detail::store_value(own_row().at(member), draft_.*member);
  }
  template <class M>
  void publish_one(EntrySelector<Row, M> selected) noexcept {
    detail::store_value(detail::entry_of(own_row().at(selected.column), selected.index),
                        detail::entry_of(draft_.*(selected.column), selected.index));
  }
  template <class OtherColumn>
  void publish_one(OtherColumn) noexcept {}  // item() refuses it

  /// Where a column begins, from the beginning of a row in memory.
  template <class M>
  [[nodiscard]] static std::size_t offset_of(M Row::*member) noexcept {
    const std::size_t offset = detail::member_offset(member);
    if constexpr (kOfPlainMembers)
      return detail::PlainPlaces<detail::MembersOf<Row>>::cell_at(offset);
    else
      return offset;
  }
  template <class M, class OtherRow>
  [[nodiscard]] PushItem item(M OtherRow::*) const noexcept {
    static_assert(std::is_same_v<OtherRow, Row>,
                  "dunlin: this is a column of another row type than the table's.");
    return {};
  }
  template <class M>
  [[nodiscard]] PushItem item(M Row::*member) const noexcept {
    using Cells = detail::StoredAs<M>;
    if constexpr (detail::MemberTraits<Cells>::kKind == ColumnKind::word) {
      return {static_cast<std::uint32_t>(offset_of(member)), sizeof(Cells)};
    } else {
      return core_.item(offset_of(member), sizeof(Cells), detail::MemberTraits<Cells>::kKind);
    }
  }
  template <class M>
  [[nodiscard]] PushItem item(EntrySelector<Row, M> selected) const noexcept {
    using Cells = detail::StoredAs<M>;
    using Traits = detail::MemberTraits<Cells>;
    static_assert(
        Traits::kKind != ColumnKind::list,
        "dunlin: a single value of a list cannot be pushed: a push sends what was appended.");
    if constexpr (Traits::kKind == ColumnKind::word) {
      return {static_cast<std::uint32_t>(offset_of(selected.column) +
                                         selected.index * Traits::kStrideBytes),
              static_cast<std::uint32_t>(Traits::kStrideBytes)};
    } else {
      PushItem one = core_.item(offset_of(selected.column), sizeof(Cells), Traits::kKind);
      one.offset += static_cast<std::uint32_t>(selected.index * Traits::kStrideBytes);
      one.bytes = static_cast<std::uint32_t>(Traits::kStrideBytes);
      return one;
    }
  }
  template <class... Columns>
  Pushed push_items(const std::vector<std::uint32_t>& rows, Completion* completion,
                    Columns... columns) noexcept {
    publish(columns...);
    if constexpr (sizeof...(columns) == 0) {
      return core_.push_to(rows, core_.whole_row(), completion);
    } else {
      const PushItem items[]{item(columns)...};
      return core_.push_to(rows, items, completion);
    }
  }

  template <class P>
  [[nodiscard]] std::string describe(const P& predicate, std::string_view file, int line) const {
    if constexpr (detail::Boolean<P>) {
      return predicate.describe(*this);
    } else {
      file.remove_prefix(file.find_last_of('/') + 1);
      return std::string(file) + ":" + std::to_string(line);
    }
  }
  template <class Trigger>
  [[nodiscard]] std::function<void()> bind(Trigger trigger) {
    if constexpr (std::is_invocable_v<Trigger&, Table&>) {
      return [this, trigger = std::move(trigger)]() mutable { trigger(*this); };
    } else {
      return trigger;
    }
  }

  template <class P, class... Triggers>
  Handle add(When<P> when, PredicateKind kind, Triggers... triggers) {
    static_assert((kIsTrigger<Triggers> && ...),
                  "dunlin: a trigger is called with the table (auto& t), or with nothing.");
    using Typed = TypedPredicate<P, Triggers...>;
    auto* typed = new Typed(*this, std::move(when.predicate_), std::move(triggers)...);
    typed->destroy = [](Predicate* p) noexcept { delete static_cast<Typed*>(p); };
    PredicatePointer predicate(typed);
    typed->evaluate = [](const Predicate& p) -> bool {
      const auto& self = static_cast<const Typed&>(p);
      return self.predicate(std::as_const(self.table));
    };
    typed->fire = [](Predicate& p, Detector& detector) { static_cast<Typed&>(p).run(detector); };
    if constexpr (detail::Boolean<P>) {
      typed->entries = static_cast<std::uint32_t>(typed->predicate.entries(*this));
    } else {
      static_assert(
          std::is_invocable_r_v<bool, const P&, const Table&>,
          "dunlin: a predicate is a const function of a constant table that returns bool");
      typed->entries = static_cast<std::uint32_t>(size());
    }
    typed->kind = kind;
    typed->name = std::move(when.name_);
    typed->first_triggers = sizeof...(Triggers);
    return Handle(*this, core_.detector().add(std::move(predicate)));
  }

  TableCore core_;
  [[no_unique_address]] std::conditional_t<kOfPlainMembers, Row, Nothing> draft_{};
};

/// Throws Error for an entry that the column does not have.
template <class Row, class M>
[[nodiscard]] EntrySelector<Row, M> entry(M Row::*column, std::size_t index) {
  constexpr std::size_t kCount = detail::MemberTraits<detail::StoredAs<M>>::kCount;
  if (index >= kCount) {
    throw Error("dunlin::entry: there is no entry " + std::to_string(index) +
                "; the column has entries 0 to " + std::to_string(kCount - 1));
  }
  return {column, index};
}

}  // namespace dunlin
