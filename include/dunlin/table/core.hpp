#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/table/layout.hpp>
#include <dunlin/table/predicate.hpp>

/// The untyped core of a table: rows of bytes with a Layout, pushed to peers or pulled from them,
/// and a Detector over them. `Table<Row>` is its typed face; tools and other languages use the
/// core. One thread at a time uses it; all progress is made in poll().
///
/// Invariants (docs/table.md):
///  TAB-T1  Row i belongs to members()[i]; a node writes only its own row, in its own memory, and
///      peers receive it by push (Refresh::writes) or fetch it (Refresh::reads).
///  TAB-T2  A peer that connects late, or whose queue was full, is sent the whole row: no push is
///      lost while the table lives, at most overtaken by a newer value of the same column.
///  TAB-T3  Columns of one push are published in the order given, those of a whole row in order of
///      declaration, each after the one before it: declare data before the guard that announces it.
///  TAB-T4  A failed node's row is frozen: it moves to private memory, where nothing can write it.
///  TAB-T5  Tables whose layout, members or refresh mode differ never exchange a byte.
///  TAB-T6  A row of plain members is cells in the table's memory. Plain members are in private
///      memory of the thread that uses the table, and a push alone stores them in the own row.
namespace dunlin {

enum class Refresh : std::uint8_t {
  writes,  // owners push their rows to the others
  reads    // every node pulls all rows, again and again
};

struct TableOptions {
  /// Tables of the same name belong together; several tables on one fabric need different names. At
  /// most kMaxTableNameBytes.
  std::string name = "table";
  /// The members' ranks, in order of rows; empty: the whole fabric. This process must be a member.
  std::vector<Rank> members = {};
  Refresh refresh = Refresh::writes;
  /// For Refresh::reads: the least time from one pull of a row to the next; 0 pulls without a
  /// pause.
  std::uint64_t refresh_interval_us = 0;
  /// Distinguishes successive tables of one name. 0: the library numbers the tables of that name in
  /// this process, which fits if all members make them in the same order.
  std::uint64_t generation = 0;
};

enum class RowState : std::uint8_t {
  own,
  waiting,  // the peer has not made its table yet; then it will be sent all
  connected,
  behind,    // the peer is connected, but its queue was full: it will be sent all
  failed,    // the peer has failed; its row is frozen
  refused,   // its table has another layout, membership or mode; row frozen
  withdrawn  // the peer destroyed its table; its row is frozen
};
[[nodiscard]] std::string_view describe(RowState state) noexcept;

/// A part of a row to publish: a run of words, a stamped column or one entry of it, or a list.
struct PushItem {
  static constexpr std::uint32_t kWords = UINT32_MAX;
  std::uint32_t offset;
  std::uint32_t bytes;
  std::uint32_t column = kWords;
};

/// How many peers a push went to at once. The other peers get it later (TAB-T2); failed ones do not
/// count.
struct Pushed {
  std::uint32_t sent = 0;
  std::uint32_t behind = 0;   // peers with back-pressure
  std::uint32_t waiting = 0;  // peers that are not connected yet
};

class Outbox;
class TableCounters;
class Puller;

class TableCore {
 public:
  /// A function that writes the initial content of one row.
  using InitialRow = std::function<void(std::byte* row)>;
  /// A handler that poll() calls when a row has become failed, refused or withdrawn.
  using FailureUpcall = std::function<void(std::size_t row, RowState state, std::string_view why)>;

  /// Makes this node's part; throws Error. Does not wait for the peers. `fabric` must outlive the
  /// table.
  TableCore(Fabric& fabric, Layout layout, InitialRow initial, TableOptions options);
  ~TableCore();
  TableCore(const TableCore&) = delete;
  TableCore& operator=(const TableCore&) = delete;

  [[nodiscard]] Fabric& fabric() const noexcept { return fabric_; }
  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const TableOptions& options() const noexcept { return options_; }
  [[nodiscard]] const std::vector<Rank>& members() const noexcept { return options_.members; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  [[nodiscard]] std::size_t my_row() const noexcept { return my_row_; }
  [[nodiscard]] RowState state(std::size_t row) const noexcept { return states_[row]; }
  /// Whether the row's owner is neither failed nor refused nor withdrawn.
  [[nodiscard]] bool alive(std::size_t row) const noexcept {
    return states_[row] <= RowState::behind;
  }
  /// Whether every peer is connected (peers that failed do not count); false for ever once a peer
  /// was refused.
  [[nodiscard]] bool connected() const noexcept { return waiting_ == 0 && refusal_.empty(); }
  /// Whether every live peer has been sent all that was pushed so far. Wait for this before you
  /// destroy a table whose last push matters.
  [[nodiscard]] bool settled() const noexcept {
    return waiting_ == 0 && ready_.size() == targets_.size();
  }
  /// Whether a trigger or upcall of this table is running.
  [[nodiscard]] bool polling() const noexcept { return delivering_ > 0 || detector_.running(); }
  /// Throws Error if a peer's table was refused; runners call this, so that they do not wait for a
  /// peer that can never connect.
  void check() const;
  /// Throws Error for a row that the table does not have.
  void require_row(std::size_t row) const;
  [[nodiscard]] const std::byte* row(std::size_t i) const noexcept { return rows_[i]; }
  /// The memory of the rows, row i at i * stride, where stride is row_bytes rounded up to cache
  /// lines; null once a row is frozen.
  [[nodiscard]] const std::byte* unfrozen_rows() const noexcept { return unfrozen_; }
  [[nodiscard]] std::byte* mine() noexcept { return own_; }
  /// Writes the consistent content of row i, as of now, to `to` (layout().row_bytes long, 64-byte
  /// aligned, holding some valid row already).
  void copy_row(std::size_t i, std::byte* to) const noexcept;

  /// Publishes items of the own row to all connected peers, or to the given rows. A completion is
  /// finished when all is placed at every peer that the push was sent to.
  Pushed push(std::span<const PushItem> items, Completion* completion = nullptr) noexcept;
  Pushed push_to(std::span<const std::uint32_t> rows, std::span<const PushItem> items,
                 Completion* completion = nullptr) noexcept;
  /// The items that make up a whole row, in order of declaration.
  [[nodiscard]] std::span<const PushItem> whole_row() const noexcept { return whole_row_; }
  [[nodiscard]] PushItem item(std::size_t offset, std::size_t bytes,
                              ColumnKind kind) const noexcept;

  Detector& detector() noexcept { return detector_; }
  /// Sets the failure upcall; it is also told of earlier failures of which no upcall was told.
  void on_failure(FailureUpcall upcall);

  /// Makes the fabric's progress, calls failure upcalls, refreshes, then runs one pass of the
  /// detector. Returns how much was done; 0 means that polling again is pointless until something
  /// arrives.
  std::size_t poll() {
    std::size_t done = fabric_.poll();
    if (attention_) done += attend();
    const std::size_t fired = detector_.run_pass();
    memory::store(*published_passes_, detector_.passes());
    return done + fired;
  }

 private:
  struct Notice {
    std::size_t row;
    RowState state;
    std::string why;
  };
  struct Peer {
    std::uint32_t row;
    Rank rank;
  };
  class Batch;
  class Delivering;

  // These are in core.cpp: set-up, and what becomes of the peers.
  void choose_members();
  void plan_whole_row();
  void join_words();
  [[nodiscard]] RegionSpec region_spec() const;
  [[nodiscard]] std::size_t row_of(Rank rank) const noexcept;
  void handle(const Event& event);
  void connect(std::size_t row);
  void lose(std::size_t row, RowState state, std::string_view why);
  void freeze(std::size_t row);
  void set_state(std::size_t row, RowState state) noexcept;
  void update_targets();
  std::size_t attend();
  struct CatchUp {
    Completion done;
    bool in_part = false;  // the queue took only its beginning
    std::uint64_t began_ns = 0;
    std::uint64_t rest_ns = 0;  // the backoff after the last attempt that was taken in part
    std::uint64_t next_ns = 0;
  };
  [[nodiscard]] bool may_catch_up(CatchUp& last) noexcept;
  std::size_t catch_up_all() noexcept;
  std::size_t deliver_notices();
  // These are in push.cpp.
  void catch_up(std::uint32_t row) noexcept;
  void stage(Batch& batch, Peer peer, const PushItem& item) noexcept;
  void stage_stamped(Batch& batch, Peer peer, const PushItem& item) noexcept;
  void stage_list(Batch& batch, Peer peer, std::uint32_t column) noexcept;

  Fabric& fabric_;
  const Layout layout_;
  TableOptions options_;
  std::size_t my_row_ = 0;
  std::size_t stride_bytes_ = 0;
  std::byte* own_ = nullptr;
  const std::byte* unfrozen_ = nullptr;
  std::vector<const std::byte*> rows_;
  std::vector<RowState> states_;
  std::vector<std::uint32_t> targets_;  // connected rows, behind or not
  std::vector<Peer> ready_;             // rows of targets_ that are not behind
  std::uint32_t waiting_ = 0;
  InitialRow initial_;
  std::vector<PushItem> whole_row_;
  std::size_t operations_per_row_ = 0;
  std::vector<std::uint32_t> list_columns_;
  std::vector<std::uint64_t> list_pushed_;    // [row * lists + list]: end index last sent
  std::vector<std::uint32_t> first_stamped_;  // by column: how many stamped entries lie before it
  std::size_t stamped_entries_ = 0;
  std::vector<std::uint8_t> newest_sent_;  // [row * stamped_entries_ + entry]: the peer's slot
  std::size_t inline_bytes_ = 0;    // sources of up to this size may change once they are posted
  std::unique_ptr<Outbox> outbox_;  // copies of longer sources
  std::unique_ptr<CatchUp[]> catching_up_;  // by row: the last attempt to send the whole row
  std::uint64_t* published_passes_ = nullptr;
  bool attention_ = false;  // true: something besides evaluating predicates is due

  Region region_;
  std::unique_ptr<TableCounters> counters_;
  Detector detector_;
  std::vector<std::vector<std::byte>> frozen_;
  std::vector<Notice> notices_;
  std::string refusal_;
  std::shared_ptr<FailureUpcall> upcall_;
  std::uint32_t delivering_ = 0;
  std::unique_ptr<Puller> puller_;
  Subscription subscription_;
};

}  // namespace dunlin
