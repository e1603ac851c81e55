#include "log/group_commit.hpp"

#include <exception>
#include <utility>

namespace dunlin::log {

GroupCommit::GroupCommit(Disk& disk, Log& log)
    : log_(log),
      started_(log.next()),
      durable_(log.next()),
      worker_(disk.hire([this] { work(); })) {}

void GroupCommit::append(std::uint32_t kind, std::span<const std::byte> head,
                         std::span<const std::byte> payload) {
  if (failure_.empty()) waiting_.append(kind, head, payload);
}

void GroupCommit::work() noexcept {
  try {
    log_.commit(writing_);
  } catch (const std::exception& error) {
    worker_failure_ = error.what();
  }
}

bool GroupCommit::poll() {
  if (working_ && !worker_->idle()) return false;
  const bool news = std::exchange(working_, false);
  if (news) {
    if (failure_.empty()) failure_ = worker_failure_;
    if (failure_.empty()) durable_ = started_;
    writing_.clear();
  }
  if (waiting_.records() > 0 && failure_.empty()) {
    std::swap(waiting_, writing_);
    started_ += writing_.records();
    ++commits_;
    working_ = true;
    worker_->start();
  }
  return news;
}

void GroupCommit::finish() {
  do {
    worker_->wait();
    poll();
  } while (working_);
}

}  // namespace dunlin::log
