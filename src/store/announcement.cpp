#include "store/announcement.hpp"

#include "store/state.hpp"

namespace dunlin::store {

using remote::Status;

void Announcement::begin(std::uint64_t word) noexcept {
  stop();
  word_ = word;
  to_ = 0;
  stage_ = Stage::write;
}

void Announcement::stop() noexcept {
  state_.fabric.abandon(done_);
  done_.reset();
}

Status Announcement::step() noexcept {
  const RegionId index = state_.index.id();
  for (;;) {
    if (!done_.finished()) return Status::under_way;
    if (done_.failed()) {  // until the members agree
      done_.reset();
      stage_ = Stage::write;
      return Status::busy;
    }
    if (stage_ == Stage::read && seen_ == 0) {
      ++to_;
      stage_ = Stage::write;
    } else if (stage_ == Stage::read) {
      stage_ = Stage::written;
      return Status::busy;
    }
    Operation next;
    if (stage_ == Stage::write) {
      while (to_ < state_.progress.capacity() &&
             (to_ == state_.fabric.rank() || state_.progress.is_gone(to_) ||
              !state_.fabric.connected(to_, index)))
        ++to_;
      if (to_ >= state_.progress.capacity()) return Status::ok;
      next = write(to_, index, kToldAt, &word_, kWordBytes).notify(done_, Notify::remotely);
    } else {
      next = read(to_, index, kToldAt, &seen_, kWordBytes).notify(done_);
    }
    done_.reset();
    if (!state_.fabric.post(next).all()) return Status::busy;
    stage_ = stage_ == Stage::write ? Stage::written : Stage::read;
  }
}

}  // namespace dunlin::store
