#include <memory>
#include <new>

#include <dunlin/error.hpp>
#include <dunlin/remote/progress.hpp>
#include <dunlin/remote/protocol.hpp>

#include "assert.hpp"
#include "fabric/thread_guard.hpp"

namespace dunlin::remote {

// --- frames --------------------------------------------------------------------------------------

namespace {

/// Behind each frame: the pool that it goes back to.
constexpr std::size_t block_bytes(std::size_t frame) noexcept {
  return round_up(frame + sizeof(FramePool*), kCacheLineBytes);
}
FramePool*& owner_of(void* frame, std::size_t block) noexcept {
  return *reinterpret_cast<FramePool**>(static_cast<std::byte*>(frame) + block -
                                        sizeof(FramePool*));
}

}  // namespace

FramePool::~FramePool() {
  for (Free* next : free_)
    while (next != nullptr)
      ::operator delete (std::exchange(next, next->next), std::align_val_t{kCacheLineBytes});
}

void* FramePool::take(std::size_t bytes) noexcept {
  const std::size_t block = block_bytes(bytes), size = block / kCacheLineBytes;
  if (size < kSizes && free_[size] != nullptr) {
    DUNLIN_ASSERT(owner_of(free_[size], block) == this, "REM-5: a frame stays in one pool");
    return std::exchange(free_[size], free_[size]->next);
  }
  void* const frame = ::operator new (block, std::align_val_t{kCacheLineBytes}, std::nothrow);
  if (frame != nullptr) owner_of(frame, block) = this;
  return frame;
}

void FramePool::give_back(void* frame, std::size_t bytes) noexcept {
  const std::size_t block = block_bytes(bytes), size = block / kCacheLineBytes;
  DUNLIN_ASSERT(owner_of(frame, block) != nullptr, "REM-5: a frame goes back where it is from");
  FramePool& pool = *owner_of(frame, block);
  if (size >= kSizes) return ::operator delete (frame, std::align_val_t{kCacheLineBytes});
  pool.free_[size] = new (frame) Free{pool.free_[size]};
}

FramePool& ProtocolState::frames_of(Progress& progress) noexcept { return progress.frames_; }

// --- protocols under way -------------------------------------------------------------------------

bool Runs::start(Protocol<Status> protocol, ProtocolState*& state) noexcept {
  state = nullptr;
  if (!protocol.handle_) return false;
  protocol.handle_.resume();
  if (protocol.handle_.done()) return true;
  state = &std::exchange(protocol.handle_, nullptr).promise();
  link(*state);
  return true;
}

void Runs::link(ProtocolState& state) noexcept {
  DUNLIN_ASSERT(!state.finished_, "REM-1: what has ended is in no list");
  DUNLIN_ASSERT(state.outermost_ == &state, "REM-4: a protocol that another awaits is in no list");
  state.deadline_ns_ = kForever;
  state.awaiting_ = nullptr;
  state.callback_ = nullptr;
  state.in_ = this;
  state.before_ = last_;
  state.after_ = nullptr;
  (last_ != nullptr ? last_->after_ : first_) = &state;
  last_ = &state;
  ++size_;
}

void Runs::unlink(ProtocolState& state) noexcept {
  DUNLIN_ASSERT(state.in_ == this && size_ > 0, "REM-4: a protocol leaves the list that it is in");
  --size_;
  if (next_ == &state) next_ = state.after_;
  (state.before_ != nullptr ? state.before_->after_ : first_) = state.after_;
  (state.after_ != nullptr ? state.after_->before_ : last_) = state.before_;
}

std::size_t Runs::advance(bool stopped) {
  std::size_t done = 0;
  for (ProtocolState* state = first_; state != nullptr; state = next_) {
    next_ = state->after_;
    if (stopped) {
      complete(*state, Status::stopped);
    } else {
      if (state->waiter_->ready()) {
        state->goes_on_.resume();
        ++done;
      }
      if (!state->finished_ && state->deadline_ns_ == kForever) continue;
      if (!state->finished_ && progress_.fabric().now_ns() < state->deadline_ns_) {
        progress_.fabric().wake_at(state->deadline_ns_);
        continue;
      }
      complete(*state, Status::timed_out);
    }
    ++done;
  }
  return done;
}

void Runs::advance(ProtocolState& state) {
  DUNLIN_ASSERT(state.in_ == this && !state.finished_,
                "REM-1: a protocol that has ended goes on no more");
  if (state.waiter_->ready()) state.goes_on_.resume();
  if (state.finished_) complete(state, Status::ok);
}

void Runs::end_all(Status status) noexcept {
  while (first_ != nullptr) {
    ProtocolState& state = *first_;
    if (state.call_ != nullptr) state.call_->state_ = nullptr;
    drop(state, status);
  }
  DUNLIN_ASSERT(size_ == 0 && last_ == nullptr, "REM-3: no protocol is left in a list that ends");
}

/// Whatever waits for it hears nothing.
void Runs::drop(ProtocolState& state, Status status) noexcept {
  unlink(state);
  delete state.callback_;
  if (state.awaiting_ != nullptr) state.awaiting_->waiter_ = nullptr;
  state.settle_(state, status);
}

/// The callback may destroy the call: nothing of it is used after that. REM-4
void Runs::complete(ProtocolState& state, Status status) {
  DUNLIN_ASSERT(state.finished_ || (status != Status::ok && status != Status::under_way),
                "REM-1: a call whose protocol has not ended ends with a named error");
  unlink(state);
  const std::unique_ptr<std::function<void()>> callback(state.callback_);
  AwaitingCall* const awaiting = state.awaiting_;
  const auto waiter = awaiting == nullptr ? nullptr : std::exchange(awaiting->waiter_, nullptr);
  if (state.call_ != nullptr) state.call_->state_ = nullptr;
  state.settle_(state, status);
  if (waiter) waiter.resume();
  if (callback) (*callback)();
}

// --- calls ---------------------------------------------------------------------------------------

bool CallBase::may_begin() const {
  DUNLIN_ONE_THREAD(&progress_->fabric());
  if (!progress_->was_stopped()) return true;
  progress_->check_no_local_work();
  return false;
}

void CallBase::go_on(ProtocolState& state, std::uint64_t timeout_ns) noexcept {
  DUNLIN_ASSERT(state_ == &state && !state.finished_, "REM-1: a call is one protocol under way");
  Fabric& fabric = progress_->fabric();
  state.call_ = this;
  progress_->calls_.link(state);
  if (timeout_ns != kForever) {
    const std::uint64_t now = fabric.now_ns();
    state.deadline_ns_ = timeout_ns < kForever - now ? now + timeout_ns : kForever;
    if (state.deadline_ns_ != kForever) fabric.wake_at(state.deadline_ns_);
  }
}

void CallBase::then(std::function<void()> callback) {
  DUNLIN_ONE_THREAD(&progress_->fabric());
  if (finished()) return callback();
  DUNLIN_ASSERT(state_->call_ == this, "REM-4: a protocol knows where its call is, also moved");
  if (state_->callback_ == nullptr) state_->callback_ = new std::function<void()>;
  *state_->callback_ = std::move(callback);
}

void CallBase::give_up() noexcept {
  DUNLIN_ONE_THREAD(&progress_->fabric());
  DUNLIN_ASSERT(state_->call_ == this, "REM-3: a call gives its own protocol up");
  ProtocolState& state = *std::exchange(state_, nullptr);
  state.in_->drop(state, Status::abandoned);
}

bool CallBase::wait_until_finished(std::uint64_t timeout_ns) {
  if (!begun() || !finished()) return wait_all({this}, timeout_ns);
  progress_->poll_in_passing();
  return true;
}

void AwaitingCall::await_suspend(std::coroutine_handle<> waiter) {
  DUNLIN_ASSERT(!call_->finished(), "REM-4: a coroutine waits for what is under way");
  ProtocolState& state = *call_->state_;
  if (state.awaiting_ != nullptr)
    throw Error(
        "remote: another coroutine awaits this call already; one can, and others may poll it");
  state.awaiting_ = this;
  waiter_ = waiter;
}

}  // namespace dunlin::remote
