#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/remote/in_flight.hpp>

#include "assert.hpp"
#include "fabric/thread_guard.hpp"

namespace dunlin::remote {

void InFlight::set_deadline(std::uint64_t timeout_ns) noexcept {
  deadline_ns_ = kForever;
  if (timeout_ns == kForever) return;
  const std::uint64_t now = progress_->fabric_.now_ns();
  deadline_ns_ = timeout_ns < kForever - now ? now + timeout_ns : kForever;
}

void InFlight::start(std::uint64_t timeout_ns) noexcept {
  DUNLIN_ONE_THREAD(&progress_->fabric_);
  abandon();
  DUNLIN_ASSERT(!linked_ && awaiting_ == nullptr, "REM-1: an operation ends before it begins anew");
  completion_.reset();
  status_ = Status::under_way;
  set_deadline(timeout_ns);
  if (progress_->was_stopped()) {
    end(progress_->why_none_begins());
  } else {
    advance();
  }
  if (finished()) return;
  if (deadline_ns_ != kForever) progress_->fabric_.wake_at(deadline_ns_);
  progress_->link(*this);
}

void InFlight::start_in_next_poll() noexcept {
  DUNLIN_ONE_THREAD(&progress_->fabric_);
  abandon();
  DUNLIN_ASSERT(!linked_ && awaiting_ == nullptr, "REM-1: an operation ends before it begins anew");
  completion_.reset();
  status_ = Status::under_way;
  deadline_ns_ = kForever;
  progress_->fabric_.wake_at(0);
  progress_->link(*this);
}

void InFlight::end(Status status) noexcept {
  DUNLIN_ASSERT(status != Status::under_way, "REM-1: an operation ends with `ok` or a named error");
  DUNLIN_ASSERT(status_ == Status::under_way || !linked_,
                "REM-1: an operation ends once, unless it is refused before it begins");
  status_ = status;
  clean_up();
}

void InFlight::abandon() noexcept {
  if (finished()) return;
  DUNLIN_ONE_THREAD(&progress_->fabric_);
  progress_->fabric_.abandon(completion_);
  end(Status::abandoned);
  DUNLIN_ASSERT(status_ == Status::abandoned,
                "REM-3: clean_up() does not begin the operation anew");
  unlink();
  callback_ = nullptr;
  if (awaiting_ != nullptr) std::exchange(awaiting_, nullptr)->waiter_ = nullptr;
}

void InFlight::unlink() noexcept {
  if (!linked_) return;
  DUNLIN_ASSERT(progress_->in_flight_ > 0, "REM-4: an operation leaves its list once");
  linked_ = false;
  --progress_->in_flight_;
  if (progress_->next_ == this) progress_->next_ = after_;
  (before_ != nullptr ? before_->after_ : progress_->first_) = after_;
  (after_ != nullptr ? after_->before_ : progress_->last_) = before_;
}

void Awaiting::await_suspend(std::coroutine_handle<> waiter) {
  if (operation_.awaiting_ != nullptr)
    throw Error(
        "remote: another coroutine awaits this operation already; one can, and others may poll it");
  DUNLIN_ASSERT(!operation_.finished(), "REM-4: a coroutine waits for what is under way");
  operation_.awaiting_ = this;
  waiter_ = waiter;
}

void InFlight::then(std::function<void()> callback) {
  DUNLIN_ONE_THREAD(&progress_->fabric_);
  if (finished()) {
    callback();
  } else {
    callback_ = std::move(callback);
  }
}

Status InFlight::wait(std::uint64_t timeout_ns) {
  if (finished())
    progress_->poll_in_passing();
  else
    wait_all({this}, timeout_ns);
  return status_;
}

}  // namespace dunlin::remote
