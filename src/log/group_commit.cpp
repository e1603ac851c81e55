#include "log/group_commit.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "assert.hpp"

namespace dunlin::log {

GroupCommit::GroupCommit(Disk& disk, Log& log)
    : log_(log),
      first_waiting_(log.next()),
      started_(log.next()),
      durable_(log.next()),
      worker_(disk.hire([this] { work(); })) {}

void GroupCommit::append(std::uint32_t kind, std::span<const std::byte> head,
                         std::span<const std::byte> payload) {
  if (failure_.empty()) waiting_.append(kind, head, payload);
}

void GroupCommit::work() noexcept {
  try {
    if (doing_.drops_copy) log_.drop_copy();
    if (doing_.cut) log_.truncate_from(*doing_.cut);
    if (doing_.copy) log_.begin_copy(doing_.copy->snapshot);
    log_.commit(writing_);
    if (doing_.ends_copy) log_.end_copy();
    if (!doing_.snapshot) return;
    const std::uint64_t from = doing_.snapshot->from;
    log_.store(std::move(*doing_.snapshot));
    log_.trim_before(from);
  } catch (const std::exception& error) {
    worker_failure_ = error.what();
  }
}

void GroupCommit::cut(std::uint64_t records) noexcept {
  if (!failure_.empty()) return;  // nothing was appended since
  DUNLIN_ASSERT_ALWAYS(records < next(), "a log is cut off by no more records than it has");
  if (records <= waiting_.records())
    return waiting_.keep(waiting_.records() - static_cast<std::uint32_t>(records));
  first_waiting_ = next() - records;
  waiting_.clear();
  beside_.cut = first_waiting_;
  durable_ = std::min(durable_, first_waiting_);
}

void GroupCommit::begin_copy(std::optional<Snapshot> snapshot) {
  if (!failure_.empty()) return;
  DUNLIN_ASSERT_ALWAYS(settled() && !copying(),
                       "LOG-S3: a copy begins while nothing waits to be written");
  original_next_ = first_waiting_;
  first_waiting_ = started_ = durable_ = snapshot ? snapshot->from : 1;
  beside_.copy = Copy{.snapshot = std::move(snapshot)};
}

void GroupCommit::end_copy() noexcept {
  if (!failure_.empty()) return;
  DUNLIN_ASSERT_ALWAYS(copying(), "LOG-S3: a copy that ends has begun");
  beside_.ends_copy = true;
  original_next_.reset();
}

void GroupCommit::drop_copy() noexcept {
  if (!failure_.empty()) return;
  DUNLIN_ASSERT_ALWAYS(settled() && copying(),
                       "LOG-S3: a copy is dropped while nothing waits to be written");
  first_waiting_ = started_ = durable_ = *original_next_;
  original_next_.reset();
  beside_.drops_copy = true;
}

bool GroupCommit::poll() {
  if (failure_.empty() && worker_->is_gone()) {
    failure_ = "this process was forked by the one that has the log open, and writes nothing to it";
    working_ = false;
    return true;
  }
  if (working_ && !worker_->idle()) return false;
  const bool news = std::exchange(working_, false);
  if (news) {
    if (failure_.empty()) failure_ = worker_failure_;
    if (failure_.empty()) durable_ = std::min(started_, first_waiting_);
    DUNLIN_ASSERT_ALWAYS(!failure_.empty() || durable_ <= log_.next(),
                         "LOG-D1: what is durable has been committed");
    writing_.clear();
  }
  if (has_work() && failure_.empty() && !*reader_waits_) {
    std::swap(waiting_, writing_);
    doing_ = std::exchange(beside_, {});
    started_ = first_waiting_ + writing_.records();
    first_waiting_ = started_;
    ++commits_;
    working_ = true;
    DUNLIN_ASSERT_ALWAYS(failure_.empty(), "LOG-D5: nothing is written after a failure");
    worker_->start();
  }
  return news;
}

bool GroupCommit::may_read() {
  if (!failure_.empty() || copying() || beside_.copy || beside_.ends_copy || beside_.drops_copy)
    return false;
  *reader_waits_ = working_ && !worker_->idle();
  return !*reader_waits_;
}

void GroupCommit::finish() {
  do {
    *reader_waits_ = false;
    worker_->wait();
    poll();
  } while (working_);
}

}  // namespace dunlin::log
