#include "multicast/durable_log.hpp"

#include <algorithm>
#include <iterator>

#include <dunlin/error.hpp>

#include "assert.hpp"

namespace dunlin::multicast {

DurableLog::~DurableLog() {
  end();
  journal_->finish();
}

void DurableLog::begin(Fabric& fabric, const Subgroup& subgroup, std::vector<std::string> names) {
  DUNLIN_ASSERT_ALWAYS(agreement_ == nullptr, "GRP-V1: a view is finished before the next begins");
  names_ = std::move(names);
  stage_ = Stage::equalizing;
  refusal_.clear();
  journal_->wake(&fabric);
  agreement_ = std::make_unique<LogAgreement>(
      fabric, subgroup, *journal_,
      LogAgreement::Member{
          .names = names_, .live = live_, .given_up = given_up_, .past = past_of(subgroup)});
}

void DurableLog::end() noexcept {
  agreement_.reset();
  replay_.reset();
}

const std::string& DurableLog::failure() const noexcept {
  return journal_->failure().empty() ? refusal_ : journal_->failure();
}

/// This member's knowledge of the subgroup before this view.
Past DurableLog::past_of(const Subgroup& subgroup) {
  Past past{.had_members = subgroup.had_members};
  if (live_) return past;
  if (seen_.empty()) saw_first_ = !past.had_members;
  past.saw_all = saw_first_;
  seen_.insert(names_.begin(), names_.end());
  std::ranges::copy_if(seen_, std::back_inserter(past.departed), [&](const std::string& name) {
    return std::ranges::find(names_, name) == names_.end();
  });
  return past;
}

std::size_t DurableLog::poll(bool delivered) {
  if (!agreement_ || !failure().empty()) return 0;
  std::size_t done = agreement_->poll();
  refusal_ = agreement_->refusal();
  if (!refusal_.empty()) return done;
  if (stage_ == Stage::equalizing) done += equalize();
  if (stage_ == Stage::replaying) done += replay();
  if (stage_ == Stage::appending) done += append();
  // The others have it all when they can deliver.
  if (stage_ == Stage::begun && delivered) agreement_.reset();
  return done;
}

std::size_t DurableLog::equalize() {
  if (!agreement_->equal()) return 0;
  if (!live_ && agreement_->inherits()) {
    live_ = true;
    journal_->goes_on_from(agreement_->last_view());
  }
  stage_ = Stage::replaying;
  return 0;
}

std::size_t DurableLog::replay() {
  std::size_t done = 0;
  if (!replayed_all_) {
    done += journal_->poll() ? 1 : 0;
    if (!journal_->settled()) return done;
    if (on_replay_) {
      ++done;
      if (replay_some()) return done;
    }
  }
  replayed_all_ = true;
  journal_->begin_view(agreement_->last_view() + 1, names_);
  agreement_->appended();
  stage_ = Stage::appending;
  return done + 1;
}

/// Hands up what the log held when this member began, and what others had of it. Returns whether
/// there may be more.
bool DurableLog::replay_some() {
  bool handing_up = false;
  const auto hand_up = [&](const Logged& logged) {
    ++replayed_;
    handing_up = true;
    on_replay_(logged);
    handing_up = false;
  };
  try {
    if (!replay_) replay_.emplace(journal_->replay(replayed_));  // a view may have ended meanwhile
    if (replay_->step(hand_up, kRecordsAtOnce)) return true;
  } catch (const Error& e) {
    if (handing_up) throw;                 // the user's own
    refusal_ = journal_->blame(e.what());  // the log can be read no more
    return true;
  }
  replay_.reset();
  return false;
}

std::size_t DurableLog::append() {
  if (!agreement_->begun()) return 0;
  live_ = true;
  stage_ = Stage::begun;
  return 0;
}

}  // namespace dunlin::multicast
