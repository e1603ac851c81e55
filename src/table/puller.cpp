#include "table/puller.hpp"

#include <algorithm>

#include "table/counters.hpp"

namespace dunlin {

Puller::Puller(Fabric& fabric, const Layout& layout, RegionId region, std::size_t stride_bytes,
               std::size_t rows, std::uint64_t interval_ns, const InitialRow& initial)
    : fabric_(fabric),
      layout_(layout),
      region_(region),
      stride_bytes_(stride_bytes),
      interval_ns_(interval_ns),
      memory_(rows * stride_bytes + kCacheLineBytes),
      pulls_(rows) {
  for (const Column& c : layout_.columns) {
    if (c.kind == ColumnKind::list) lists_.push_back(&c);
  }
  void* at = memory_.data();
  std::size_t space = memory_.size();
  auto* first =
      static_cast<std::byte*>(std::align(kCacheLineBytes, rows * stride_bytes, at, space));
  for (std::size_t i = 0; i < rows; ++i) {
    pulls_[i].staging = first + i * stride_bytes;
    initial(pulls_[i].staging);
    pulls_[i].guards.resize(lists_.size());
  }
  batch_.reserve(rows * (1 + lists_.size()));
}

Puller::~Puller() {
  for (Pull& pull : pulls_) fabric_.abandon(pull.done);
}

void Puller::pull(std::span<const std::uint32_t> targets, std::span<const Rank> members,
                  std::span<const std::byte* const> rows, TableCounters& counters) noexcept {
  now_ns_ = interval_ns_ == 0 ? 0 : fabric_.now_ns();
  batch_.clear();
  for (const std::uint32_t row : targets) {
    advance(row, members[row], const_cast<std::byte*>(rows[row]), counters);
  }
  post_batch();
  // Pulls under way, and rows that have arrived by now, are for the next poll; the others are due
  // when their interval has passed.
  std::uint64_t next_ns = UINT64_MAX;
  for (const std::uint32_t row : targets) {
    const Pull& pull = pulls_[row];
    if (!pull.done.finished()) continue;
    next_ns = std::min(next_ns, pull.step == Step::idle ? pull.started_ns + interval_ns_ : now_ns_);
  }
  if (next_ns != UINT64_MAX) fabric_.wake_at(next_ns);
}

void Puller::post_batch() noexcept {
  std::size_t from = 0;
  while (from < batch_.size()) {
    const Posted posted = fabric_.post(std::span(batch_).subspan(from));
    if (posted.all()) break;
    from += posted.accepted;
    // Back-pressure: this row starts over when the operations that were taken are finished.
    for (Pull& pull : pulls_) {
      if (&pull.done == batch_[from].completion) pull.step = Step::idle;
    }
    ++from;
  }
}

void Puller::advance(std::uint32_t row, Rank peer, std::byte* into,
                     TableCounters& counters) noexcept {
  Pull& pull = pulls_[row];
  if (!pull.done.finished()) return;
  if (pull.done.failed()) {
    pull.done.reset();
    pull.step = Step::idle;
  }
  switch (pull.step) {
    case Step::idle:
      break;
    case Step::ends:
      return start(row, peer, Step::row);
    case Step::row:
      if (!lists_.empty()) return start(row, peer, Step::begins);
      [[fallthrough]];
    case Step::begins:
      take_in(pull, into);
      counters.count_pull(row, fabric_.recent_ns());
      pull.step = Step::idle;
  }
  if (!due(pull)) return;
  pull.started_ns = now_ns_;
  start(row, peer, lists_.empty() ? Step::row : Step::ends);
}

bool Puller::due(const Pull& pull) const noexcept {
  return interval_ns_ == 0 || pull.started_ns == 0 || now_ns_ >= pull.started_ns + interval_ns_;
}

void Puller::start(std::uint32_t row, Rank peer, Step step) noexcept {
  Pull& pull = pulls_[row];
  pull.step = step;
  if (step == Step::row) return read(pull, row, peer, 0, pull.staging, layout_.row_bytes);
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    const std::size_t list = lists_[i]->offset;
    if (step == Step::ends) {
      read(pull, row, peer, list + kListEndOffset, &pull.guards[i].end_before, kWordBytes);
    } else {
      read(pull, row, peer, list + kListBeginOffset, &pull.guards[i].begin_after, kWordBytes);
    }
  }
}

void Puller::read(Pull& pull, std::uint32_t row, Rank peer, std::size_t offset, void* to,
                  std::size_t bytes) noexcept {
  batch_.push_back(
      dunlin::read(peer, region_, row * stride_bytes_ + offset, to, bytes).notify(pull.done));
}

void Puller::take_in(Pull& pull, std::byte* into) noexcept {
  std::size_t list = 0;
  for (const Column& c : layout_.columns) {
    switch (c.kind) {
      case ColumnKind::word:
        row_copy::place_words(c, into, pull.staging);
        break;
      case ColumnKind::stamped:
        row_copy::place_stamped(c, into, pull.staging);
        break;
      case ColumnKind::list:
        row_copy::place_list(c, into, pull.staging, pull.guards[list++]);
        break;
    }
  }
}

}  // namespace dunlin
