#include <array>
#include <memory>

#include <dunlin/table/core.hpp>

#include "assert.hpp"
#include "fabric/thread_guard.hpp"
#include "table/counters.hpp"
#include "table/outbox.hpp"
#include "table/row_copy.hpp"

/// Makes operations of parts of the own row (TAB-T2, TAB-T3; docs/table.md, "Publishing"). A
/// stamped entry's newest value goes into the peer's slot that does not hold the newest value there
/// (TAB-C3). A list goes as begin, values, end, so that its guards never promise missing values
/// (TAB-C4). A source that is too long to be taken inline is sent from a copy (outbox.hpp).
namespace dunlin {

/// Collects operations and posts them with few doorbells. A peer whose queue is full is marked as
/// behind, and gets nothing more from this batch: it will be sent the whole row.
class TableCore::Batch {
 public:
  Batch(TableCore& table, Completion* completion, Notify when = Notify::remotely) noexcept
      : table_(table), completion_(completion), when_(when) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void add(Peer peer, std::size_t offset, std::size_t bytes) noexcept {
    add(peer, offset, offset, bytes);
  }
  /// `to` and `from` are offsets in the row, there and here. Returns whether it will be posted.
  bool add(Peer peer, std::size_t to, std::size_t from, std::size_t bytes) noexcept {
    DUNLIN_ASSERT(peer.row != table_.my_row_ && table_.options_.members[peer.row] == peer.rank,
                  "TAB-T1: a node pushes to its peers");
    DUNLIN_ASSERT(to + bytes <= table_.stride_bytes_ && from + bytes <= table_.stride_bytes_,
                  "TAB-T1: a node writes only its own row");
    if (used_ == kMostOperations) flush();
    if (dropped_ && table_.states_[peer.row] != RowState::connected) return false;
    if (bytes > table_.inline_bytes_) [[unlikely]]
      return add_long(peer, to, from, bytes);
    Operation& op = operation(peer, to, table_.own_ + from, bytes);
    if (completion_ != nullptr) {
      op.completion = completion_;
      op.when = when_;
    }
    return true;
  }

  void flush() noexcept {
    std::size_t from = 0;
    while (from < used_) {
      const Posted posted = table_.fabric_.post(std::span(operations() + from, used_ - from));
      taken_ = taken_ || posted.accepted > 0;
      if (posted.all()) break;
      from += posted.accepted;
      drop_peer(from);
    }
    used_ = 0;
  }
  /// Whether the fabric took any operation.
  [[nodiscard]] bool taken() const noexcept { return taken_; }
  /// Posts the rest; to be called once, at the end.
  void finish() noexcept {
    flush();
    if (dropped_) [[unlikely]]
      table_.update_targets();
  }

 private:
  static constexpr std::size_t kMostOperations = 64;

  Operation* operations() noexcept { return reinterpret_cast<Operation*>(storage_.data()); }

  Operation& operation(Peer peer, std::size_t to, std::byte* source, std::size_t bytes) noexcept {
    const std::size_t at = table_.my_row_ * table_.stride_bytes_ + to;
    return *std::construct_at(operations() + used_++,
                              write(peer.rank, table_.region_.id(), at, source, bytes));
  }

  /// Sends from a copy, whose block the operation completes. For the caller's completion the last
  /// word is sent once more, as a signal behind it (FAB-F1).
  bool add_long(Peer peer, std::size_t to, std::size_t from, std::size_t bytes) noexcept {
    if (copy_ == nullptr) copy_ = table_.outbox_->take();
    if (copy_ == nullptr) {
      set_behind(peer.row);
      return false;
    }
    memory::fetch(copy_->row + from, table_.own_ + from, bytes);
    operation(peer, to, copy_->row + from, bytes).completion = &copy_->done;
    if (completion_ == nullptr) return true;
    const std::size_t last = bytes - kWordBytes;
    add(peer, to + last, from + last, kWordBytes);
    return true;
  }

  void set_behind(std::size_t row) noexcept {
    dropped_ = true;
    if (table_.states_[row] == RowState::connected) table_.set_state(row, RowState::behind);
    table_.attention_ = true;
  }

  /// Removes the operations for a peer that refused one from the rest of the batch.
  void drop_peer(std::size_t from) noexcept {
    const Rank peer = operations()[from].peer;
    const std::size_t row = table_.row_of(peer);
    set_behind(row);
    std::size_t kept = from;
    for (std::size_t i = from; i < used_; ++i) {
      if (operations()[i].peer != peer) {
        operations()[kept++] = operations()[i];
      } else {
        forget(row, operations()[i]);
      }
    }
    used_ = kept;
  }

  /// If the dropped operation was to write a slot, the peer's newest value is where it was.
  void forget(std::size_t row, const Operation& op) noexcept {
    const std::size_t offset = op.offset - table_.my_row_ * table_.stride_bytes_;
    for (std::size_t i = 0; i < table_.layout_.columns.size(); ++i) {
      const Column& c = table_.layout_.columns[i];
      if (c.kind != ColumnKind::stamped || op.bytes != c.stride_bytes / 2) continue;
      if (offset - c.offset >= c.bytes) continue;
      const std::size_t entry = table_.first_stamped_[i] + (offset - c.offset) / c.stride_bytes;
      table_.newest_sent_[row * table_.stamped_entries_ + entry] ^= 1;
    }
  }

  TableCore& table_;
  Completion* completion_;
  Notify when_;
  Outbox::Block* copy_ = nullptr;
  std::size_t used_ = 0;
  bool dropped_ = false;  // a peer has become behind
  bool taken_ = false;
  // Raw, as initialising all would cost more than posting the one operation of most batches.
  alignas(Operation) std::array<std::byte, kMostOperations * sizeof(Operation)> storage_;
};

Pushed TableCore::push(std::span<const PushItem> items, Completion* completion) noexcept {
  DUNLIN_ONE_THREAD(&fabric_);
  counters_->count_push(fabric_.recent_ns());
  if (options_.refresh == Refresh::reads) return {};  // the others fetch the row
  Batch batch(*this, completion);
  for (const PushItem& item : items) {
    for (const Peer peer : ready_) stage(batch, peer, item);
  }
  batch.finish();
  const auto sent = static_cast<std::uint32_t>(ready_.size());
  return {.sent = sent,
          .behind = static_cast<std::uint32_t>(targets_.size()) - sent,
          .waiting = waiting_};
}

Pushed TableCore::push_to(std::span<const std::uint32_t> rows, std::span<const PushItem> items,
                          Completion* completion) noexcept {
  DUNLIN_ONE_THREAD(&fabric_);
  counters_->count_push(fabric_.recent_ns());
  if (options_.refresh == Refresh::reads) return {};
  const auto state = [&](std::uint32_t row) {
    return row < states_.size() ? states_[row] : RowState::failed;
  };
  Batch batch(*this, completion);
  for (const PushItem& item : items) {
    for (const std::uint32_t row : rows) {
      if (state(row) == RowState::connected) stage(batch, {row, options_.members[row]}, item);
    }
  }
  batch.finish();
  Pushed result;
  for (const std::uint32_t row : rows) {
    result.sent += state(row) == RowState::connected ? 1 : 0;
    result.behind += state(row) == RowState::behind ? 1 : 0;
    result.waiting += state(row) == RowState::waiting ? 1 : 0;
  }
  return result;
}

void TableCore::catch_up(std::uint32_t row) noexcept {
  DUNLIN_ASSERT_ALWAYS(states_[row] == RowState::behind && catching_up_[row].done.finished(),
                       "TAB-T2: only a peer that is behind is sent the whole row");
  // The peer counts as connected, with empty lists in its row, as after its creation; an operation
  // that is refused marks it as behind again.
  for (std::size_t i = 0; i < list_columns_.size(); ++i) {
    list_pushed_[row * list_columns_.size() + i] = 0;
  }
  set_state(row, RowState::connected);
  // The completion tells when the attempt has left the queue. If only a part was taken, the next
  // one waits for that, or it would fill the queue with beginnings for ever.
  CatchUp& attempt = catching_up_[row];
  attempt.began_ns = fabric_.now_ns();
  Batch batch(*this, &attempt.done, Notify::locally);
  for (const PushItem& item : whole_row_) stage(batch, {row, options_.members[row]}, item);
  batch.flush();
  const bool refused = states_[row] == RowState::behind;
  attempt.in_part = refused && batch.taken();
  if (!refused) attempt.rest_ns = 0;
}

[[gnu::always_inline]] inline void TableCore::stage(Batch& batch, Peer peer,
                                                    const PushItem& item) noexcept {
  if (item.column == PushItem::kWords) [[likely]] {
    batch.add(peer, item.offset, item.bytes);
  } else if (layout_.columns[item.column].kind == ColumnKind::stamped) {
    stage_stamped(batch, peer, item);
  } else {
    stage_list(batch, peer, item.column);
  }
}

void TableCore::stage_stamped(Batch& batch, Peer peer, const PushItem& item) noexcept {
  const Column& c = layout_.columns[item.column];
  const bool all = item.bytes == c.bytes;
  const std::size_t first = all ? 0 : (item.offset - c.offset) / c.stride_bytes;
  const std::size_t end = all ? c.count : first + 1;
  DUNLIN_ASSERT(end <= c.count, "TAB-T1: a node pushes entries that its row has");
  const std::size_t slot_bytes = c.stride_bytes / 2;
  std::uint8_t* newest = &newest_sent_[peer.row * stamped_entries_ + first_stamped_[item.column]];
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t entry = c.offset + i * c.stride_bytes;
    const std::size_t from = entry + row_copy::newer_slot(own_ + entry, slot_bytes) * slot_bytes;
    const unsigned older = 1U - newest[i];
    newest[i] = static_cast<std::uint8_t>(older);
    if (!batch.add(peer, entry + older * slot_bytes, from, slot_bytes)) newest[i] ^= 1;
  }
}

void TableCore::stage_list(Batch& batch, Peer peer, std::uint32_t column) noexcept {
  const Column& c = layout_.columns[column];
  std::size_t list = 0;
  while (list_columns_[list] != column) ++list;
  std::uint64_t& pushed = list_pushed_[peer.row * list_columns_.size() + list];

  const auto index_at = [&](std::size_t offset) {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(own_ + c.offset + offset));
  };
  const std::uint64_t begin = index_at(kListBeginOffset);
  const std::uint64_t end = index_at(kListEndOffset);
  const auto add_slots = [&](std::uint64_t first, std::uint64_t count) {
    if (count == 0) return;
    batch.add(peer, c.offset + kListSlotsOffset + first * c.stride_bytes, count * c.stride_bytes);
  };

  batch.add(peer, c.offset + kListBeginOffset, kWordBytes);
  const std::uint64_t from = pushed > begin ? pushed : begin;
  const std::uint64_t first = from % c.count;
  const std::uint64_t to_the_end = c.count - first;
  const std::uint64_t count = end - from;
  add_slots(first, count < to_the_end ? count : to_the_end);
  add_slots(0, count < to_the_end ? 0 : count - to_the_end);
  batch.add(peer, c.offset + kListEndOffset, kWordBytes);
  pushed = end;
}

}  // namespace dunlin
