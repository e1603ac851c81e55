#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/remote/in_flight.hpp>

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
  completion_.reset();
  status_ = Status::under_way;
  set_deadline(timeout_ns);
  if (progress_->was_stopped()) {
    end(Status::stopped);
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
  completion_.reset();
  status_ = Status::under_way;
  deadline_ns_ = kForever;
  progress_->fabric_.wake_at(0);
  progress_->link(*this);
}

void InFlight::end(Status status) noexcept {
  status_ = status;
  clean_up();
}

void InFlight::abandon() noexcept {
  if (finished()) return;
  DUNLIN_ONE_THREAD(&progress_->fabric_);
  progress_->fabric_.abandon(completion_);
  end(Status::abandoned);
  unlink();
  callback_ = nullptr;
  if (awaiting_ != nullptr) std::exchange(awaiting_, nullptr)->waiter_ = nullptr;
}

void InFlight::unlink() noexcept {
  if (!linked_) return;
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
