#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>

#include <dunlin/table/core.hpp>

#include "assert.hpp"
#include "fabric/hash.hpp"
#include "table/counters.hpp"
#include "table/outbox.hpp"
#include "table/puller.hpp"
#include "table/row_copy.hpp"

namespace dunlin {
namespace {

/// The longest backoff after the queue had room for only a part of a whole row.
constexpr std::uint64_t kLongestRestNs = 1'000'000;

std::string list_ranks(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : " ") + std::to_string(rank);
  return text;
}

/// The most operations that publishing so many bytes takes; what is too long to be taken inline may
/// take a second one, for the completion.
std::size_t operations_of(std::size_t bytes, std::size_t inline_bytes) noexcept {
  return bytes > inline_bytes ? 2 : 1;
}

std::size_t operations_of(const Column& column, std::size_t inline_bytes) noexcept {
  const auto each = [&](std::size_t bytes) { return operations_of(bytes, inline_bytes); };
  switch (column.kind) {
    case ColumnKind::word:
      return each(column.bytes);
    case ColumnKind::stamped:
      return column.count * each(column.stride_bytes / 2);
    case ColumnKind::list:
      return 2 + 2 * each(column.bytes);
  }
  return 0;
}

/// Adds the padding behind an entry where it completes a word: some devices place whole words
/// directly, and anything shorter by a longer way.
void complete_words(std::vector<PushItem>& row, std::size_t stride_bytes, std::size_t most_bytes) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    PushItem& item = row[i];
    if (item.column != PushItem::kWords) continue;
    const std::size_t room = i + 1 < row.size() ? row[i + 1].offset : stride_bytes;
    const std::size_t end = round_up(item.offset + item.bytes, kWordBytes);
    const std::size_t bytes = end - item.offset;
    if (end <= room && bytes <= most_bytes) item.bytes = static_cast<std::uint32_t>(bytes);
  }
}

}  // namespace

std::string_view describe(RowState state) noexcept {
  switch (state) {
    case RowState::own:
      return "own";
    case RowState::waiting:
      return "waiting";
    case RowState::connected:
      return "connected";
    case RowState::behind:
      return "behind";
    case RowState::failed:
      return "failed";
    case RowState::refused:
      return "refused";
    case RowState::withdrawn:
      return "withdrawn";
  }
  return "unknown";
}

TableCore::TableCore(Fabric& fabric, Layout layout, InitialRow initial, TableOptions options)
    : fabric_(fabric),
      layout_(std::move(layout)),
      options_(std::move(options)),
      stride_bytes_(round_up(layout_.row_bytes, kCacheLineBytes)),
      initial_(std::move(initial)),
      detector_(fabric) {
  if (options_.name.size() > kMaxTableNameBytes) {
    throw Error("table '" + options_.name + "': the name has " +
                std::to_string(options_.name.size()) + " bytes; at most " +
                std::to_string(kMaxTableNameBytes) + " (kMaxTableNameBytes) are allowed");
  }
  layout_.check();
  choose_members();
  plan_whole_row();
  const std::size_t rows = options_.members.size();
  region_ = fabric_.allocate(region_spec());
  counters_ = std::make_unique<TableCounters>(fabric_, options_.name, fabric_.generation(region_),
                                              rows, my_row_);
  published_passes_ = &counters_->passes_word();
  detector_.show_in(*counters_);
  states_.assign(rows, RowState::waiting);
  list_pushed_.assign(rows * list_columns_.size(), 0);
  newest_sent_.assign(rows * stamped_entries_, 0);
  catching_up_ = std::make_unique<CatchUp[]>(rows);
  frozen_.resize(rows);
  notices_.reserve(rows);
  targets_.reserve(rows);
  ready_.reserve(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    std::byte* row = region_.memory().data() + i * stride_bytes_;
    initial_(row);
    rows_.push_back(row);
  }
  unfrozen_ = region_.memory().data();
  own_ = region_.memory().data() + my_row_ * stride_bytes_;
  set_state(my_row_, RowState::own);
  if (options_.refresh == Refresh::reads) {
    puller_ = std::make_unique<Puller>(fabric_, layout_, region_.id(), stride_bytes_, rows,
                                       options_.refresh_interval_us * 1000, initial_);
    attention_ = true;
  }
  subscription_ = fabric_.subscribe([this](const Event& event) { handle(event); });
  fabric_.announce(region_, options_.members);
  for (std::size_t i = 0; i < rows; ++i) {
    if (fabric_.failed(options_.members[i])) {
      lose(i, RowState::failed, fabric_.failure_text(options_.members[i]));
    } else if (i != my_row_ && fabric_.connected(options_.members[i], region_.id())) {
      connect(i);
    }
  }
  update_targets();
}

TableCore::~TableCore() {
  if (polling()) {
    std::fprintf(stderr,
                 "dunlin: table '%s' is destroyed from within its own poll(), by a trigger or "
                 "upcall; destroy it after poll() has returned\n",
                 options_.name.c_str());
    std::terminate();
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) fabric_.abandon(catching_up_[i].done);
}

void TableCore::choose_members() {
  std::vector<Rank>& members = options_.members;
  if (members.empty()) {
    members.resize(fabric_.size());
    std::iota(members.begin(), members.end(), Rank{0});
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string who = "table '" + options_.name + "': member " + std::to_string(i) +
                            " (rank " + std::to_string(members[i]) + ") ";
    if (members[i] >= fabric_.size()) {
      throw Error(who + "is not in group '" + fabric_.group() + "', which has ranks 0 to " +
                  std::to_string(fabric_.size() - 1));
    }
    if (std::find(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(i), members[i]) !=
        members.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error(who + "is listed twice");
    }
  }
  my_row_ = row_of(fabric_.rank());
  if (my_row_ == members.size()) {
    throw Error("table '" + options_.name + "': this process (rank " +
                std::to_string(fabric_.rank()) + ") is not among its members (" +
                list_ranks(members) + "); only members make the table");
  }
  if (members.size() * stride_bytes_ > kMaxRegionBytes) {
    throw Error("table '" + options_.name + "': " + std::to_string(members.size()) + " rows of " +
                std::to_string(stride_bytes_) + " bytes are over kMaxRegionBytes");
  }
}

void TableCore::plan_whole_row() {
  inline_bytes_ = fabric_.properties().max_inline_bytes;
  if (inline_bytes_ < kWordBytes) {
    throw Error("table '" + options_.name + "': the fabric takes only " +
                std::to_string(inline_bytes_) +
                " bytes inline (max_inline_bytes); a table needs a word of 8");
  }
  if (layout_.row_bytes > inline_bytes_) outbox_ = std::make_unique<Outbox>(fabric_, stride_bytes_);
  for (std::uint32_t i = 0; i < layout_.columns.size(); ++i) {
    const Column& c = layout_.columns[i];
    if (c.kind != ColumnKind::word) operations_per_row_ += operations_of(c, inline_bytes_);
    if (c.kind == ColumnKind::list) list_columns_.push_back(i);
    first_stamped_.push_back(static_cast<std::uint32_t>(stamped_entries_));
    if (c.kind == ColumnKind::stamped) stamped_entries_ += c.count;
    whole_row_.push_back(item(c.offset, c.bytes, c.kind));
  }
  join_words();
  for (const PushItem& each : whole_row_)
    if (each.column == PushItem::kWords)
      operations_per_row_ += operations_of(each.bytes, inline_bytes_);
  if (operations_per_row_ > fabric_.properties().queue_slots) {
    throw Error("table '" + options_.name + "': publishing a row takes up to " +
                std::to_string(operations_per_row_) + " operations, and the fabric's queue holds " +
                std::to_string(fabric_.properties().queue_slots) +
                " (queue_slots); use fewer columns");
  }
}

/// Joins neighbouring words of one cache line to one write, which places the line at once or in
/// ascending order (FAB-F2): so the order of publication (TAB-T3) stays.
void TableCore::join_words() {
  std::vector<PushItem> joined;
  for (const PushItem& next : whole_row_) {
    const bool word = next.column == PushItem::kWords;
    if (word && !joined.empty() && joined.back().column == PushItem::kWords) {
      PushItem& last = joined.back();
      const std::uint32_t end = next.offset + next.bytes;
      if (last.offset / kCacheLineBytes == (end - 1) / kCacheLineBytes) {
        last.bytes = end - last.offset;
        continue;
      }
    }
    joined.push_back(next);
  }
  whole_row_ = std::move(joined);
  complete_words(whole_row_, stride_bytes_, inline_bytes_);
}

RegionSpec TableCore::region_spec() const {
  // Peers compare the text, by its hash, so all that must agree is in it (TAB-T5).
  Layout described = layout_;
  std::string text = described.text() + "members " + list_ranks(options_.members) + "\nrefresh " +
                     (options_.refresh == Refresh::reads ? "reads" : "writes") + "\n";
  return {.name = options_.name,
          .bytes = options_.members.size() * stride_bytes_,
          .generation = options_.generation,
          .layout_hash = fnv1a(text, layout_.hash()),
          .layout_text = std::move(text)};
}

std::size_t TableCore::row_of(Rank rank) const noexcept {
  const auto& members = options_.members;
  return static_cast<std::size_t>(std::find(members.begin(), members.end(), rank) -
                                  members.begin());
}

PushItem TableCore::item(std::size_t offset, std::size_t bytes, ColumnKind kind) const noexcept {
  PushItem item{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)};
  if (kind == ColumnKind::word) return item;
  for (std::uint32_t i = 0; i < layout_.columns.size(); ++i) {
    if (layout_.columns[i].offset == offset) item.column = i;
  }
  return item;
}

void TableCore::set_state(std::size_t row, RowState state) noexcept {
  states_[row] = state;
  counters_->show_state(row, state, fabric_.recent_ns());
}

void TableCore::update_targets() {
  targets_.clear();
  ready_.clear();
  waiting_ = 0;
  DUNLIN_ASSERT_ALWAYS(states_[my_row_] == RowState::own, "TAB-T1: a node's own row is its own");
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == RowState::connected || states_[i] == RowState::behind) targets_.push_back(i);
    if (states_[i] == RowState::connected) ready_.push_back({i, options_.members[i]});
    if (states_[i] == RowState::waiting) ++waiting_;
  }
}

/// Runs inside the fabric's poll, so it leaves upcalls, which may throw, to our own poll.
void TableCore::handle(const Event& event) {
  const std::size_t row = row_of(event.peer);
  if (row >= states_.size() || row == my_row_) return;
  switch (event.kind) {
    case Event::Kind::peer_linked:  // the peer's region connects next
    case Event::Kind::peer_killed:  // the peer failed before
      break;
    case Event::Kind::peer_failed:
      lose(row, RowState::failed, event.text);
      break;
    case Event::Kind::region_connected:
      if (event.region == region_.id() && states_[row] == RowState::waiting) connect(row);
      break;
    case Event::Kind::region_refused:
      if (event.region == region_.id()) lose(row, RowState::refused, event.text);
      break;
    case Event::Kind::region_withdrawn:
      if (event.region == region_.id()) lose(row, RowState::withdrawn, event.text);
      break;
  }
  update_targets();
}

void TableCore::connect(std::size_t row) {
  DUNLIN_ASSERT_ALWAYS(row != my_row_ && states_[row] == RowState::waiting,
                       "TAB-T2: a peer connects once");
  set_state(row, options_.refresh == Refresh::writes ? RowState::behind : RowState::connected);
  attention_ = true;
}

void TableCore::lose(std::size_t row, RowState state, std::string_view why) {
  if (!alive(row) || row == my_row_) return;
  freeze(row);
  set_state(row, state);
  notices_.push_back({row, state, std::string(why)});
  if (state == RowState::refused && refusal_.empty()) refusal_ = why;
  attention_ = true;
}

void TableCore::freeze(std::size_t row) {
  DUNLIN_ASSERT_ALWAYS(row != my_row_ && frozen_[row].empty(),
                       "TAB-T4: another node's row is frozen, once");
  frozen_[row].resize(stride_bytes_ + kCacheLineBytes);
  auto at = reinterpret_cast<std::uintptr_t>(frozen_[row].data());
  std::byte* to = frozen_[row].data() + (round_up(at, kCacheLineBytes) - at);
  initial_(to);
  row_copy::copy_row(layout_, to, rows_[row]);
  rows_[row] = to;
  unfrozen_ = nullptr;
}

void TableCore::copy_row(std::size_t i, std::byte* to) const noexcept {
  row_copy::copy_row(layout_, to, rows_[i]);
}

void TableCore::check() const {
  if (!refusal_.empty()) throw Error("table '" + options_.name + "': " + refusal_);
}

void TableCore::require_row(std::size_t row) const {
  if (row < size()) return;
  throw Error("table '" + options_.name + "' has no row " + std::to_string(row) +
              ": its rows are 0 to " + std::to_string(size() - 1));
}

std::size_t TableCore::attend() {
  attention_ = puller_ != nullptr;
  std::size_t done = notices_.empty() ? 0 : deliver_notices();
  if (ready_.size() < targets_.size()) done += catch_up_all();
  if (puller_) puller_->pull(targets_, options_.members, rows_, *counters_);
  return done;
}

/// Tables that share the queue may each hold the room that another one lacks. Each of them backs
/// off longer than its last attempt took, and longer each time, so that one finds the queue empty.
bool TableCore::may_catch_up(CatchUp& last) noexcept {
  if (!last.done.finished()) return false;
  const std::uint64_t now_ns = fabric_.now_ns();
  if (last.in_part) {
    last.in_part = false;
    last.rest_ns = std::min(std::max(now_ns - last.began_ns, 2 * last.rest_ns), kLongestRestNs);
    last.next_ns = now_ns + last.rest_ns;
  }
  if (now_ns >= last.next_ns) return true;
  fabric_.wake_at(last.next_ns);
  return false;
}

std::size_t TableCore::catch_up_all() noexcept {
  std::size_t tried = 0;
  for (const std::uint32_t row : targets_) {
    if (states_[row] != RowState::behind) continue;
    attention_ = true;
    if (!may_catch_up(catching_up_[row])) continue;
    catch_up(row);
    ++tried;
  }
  update_targets();
  return tried;
}

class TableCore::Delivering {
 public:
  explicit Delivering(TableCore& table) noexcept : table_(table) { ++table_.delivering_; }
  Delivering(const Delivering&) = delete;
  Delivering& operator=(const Delivering&) = delete;
  ~Delivering() { --table_.delivering_; }

 private:
  TableCore& table_;
};

void TableCore::on_failure(FailureUpcall upcall) {
  upcall_ = std::make_shared<FailureUpcall>(std::move(upcall));
  attention_ = true;
}

std::size_t TableCore::deliver_notices() {
  // An upcall may poll or throw, so each notice is taken off before its upcall runs.
  std::size_t delivered = 0;
  while (!notices_.empty() && upcall_) {
    const Notice notice = std::move(notices_.front());
    notices_.erase(notices_.begin());
    ++delivered;
    attention_ = true;
    // This copy keeps the upcall alive, as it may register another one.
    const std::shared_ptr<FailureUpcall> upcall = upcall_;
    const Delivering delivering(*this);
    (*upcall)(notice.row, notice.state, notice.why);
  }
  return delivered;
}

}  // namespace dunlin
