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
  awaits_state_ = subgroup.lacks_state;
  refusal_.clear();
  why_waiting_.clear();
  journal_->wake(&fabric);
  agreement_ = std::make_unique<LogAgreement>(fabric, subgroup, *journal_,
                                              LogAgreement::Member{.names = names_,
                                                                   .live = live_,
                                                                   .begun = last_begun_,
                                                                   .by_quorum = by_quorum_,
                                                                   .may_wait = !founders_.empty(),
                                                                   .given_up = given_up_,
                                                                   .past = past_of(subgroup)});
}

void DurableLog::end() noexcept {
  agreement_.reset();
  replay_.reset();
}

const std::string& DurableLog::failure() const noexcept {
  return journal_->failure().empty() ? refusal_ : journal_->failure();
}

Past DurableLog::past_of(const Subgroup& subgroup) {
  Past past{.had_members = subgroup.had_members};
  if (live_) return past;
  const auto is_here = [this](const std::string& name) {
    return std::ranges::find(names_, name) != names_.end();
  };
  if (!founders_.empty()) {
    past = {.had_members = true, .saw_all = true};
    std::ranges::remove_copy_if(founders_, std::back_inserter(past.departed), is_here);
    return past;
  }
  if (seen_.empty()) saw_first_ = !past.had_members;
  past.saw_all = saw_first_;
  seen_.insert(names_.begin(), names_.end());
  std::ranges::remove_copy_if(seen_, std::back_inserter(past.departed), is_here);
  return past;
}

std::size_t DurableLog::poll(bool delivered) {
  if (!agreement_ || !failure().empty()) return 0;
  std::size_t done = agreement_->poll();
  refusal_ = agreement_->refusal();
  why_waiting_ = agreement_->why_waiting();
  if (!refusal_.empty() || !why_waiting_.empty()) return done;
  if (stage_ == Stage::equalizing) done += equalize();
  if (stage_ == Stage::replaying && !by_quorum_) done += replay();
  if (stage_ == Stage::appending) done += append();
  if (stage_ == Stage::replaying && by_quorum_) done += replay();
  // Once a member can deliver, the others have all that they needed.
  if (stage_ == Stage::begun && delivered) agreement_.reset();
  return done;
}

std::size_t DurableLog::equalize() {
  if (!agreement_->equal()) return 0;
  live_ = live_ || agreement_->inherits();
  stage_ = by_quorum_ ? Stage::appending : Stage::replaying;
  if (by_quorum_) record_view();
  return by_quorum_ ? 1 : 0;
}

std::size_t DurableLog::replay() {
  std::size_t done = 0;
  if (!replayed_all_ && !awaits_state_) {
    done += journal_->poll() ? 1 : 0;
    if (!journal_->settled()) return done;
    if (!loaded_) load_state();
    if (!refusal_.empty()) return done;
    if (on_replay_) {
      ++done;
      if (replay_some()) return done;
    }
  }
  replayed_all_ = replayed_all_ || !awaits_state_;
  stage_ = by_quorum_ ? Stage::begun : Stage::appending;
  if (!by_quorum_) record_view();
  ever_begun_ = ever_begun_ || by_quorum_;
  return done + 1;
}

void DurableLog::record_view() {
  first_message_ = journal_->next() + 1;
  journal_->begin_view(agreement_->last_view() + 1, names_);
  agreement_->appended();
}

/// Hands up the messages of the log, including those that came from others to make the logs equal.
/// Returns whether there may be more.
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
    if (handing_up) throw;  // the user's upcall threw
    refusal_ = journal_->blame(e.what());
    return true;
  }
  replay_.reset();
  return false;
}

/// Loads the snapshot's state, once and in one call of the user's `load`.
void DurableLog::load_state() {
  std::optional<std::vector<std::byte>> state;
  try {
    state = journal_->read_state_of_user();
  } catch (const Error& e) {
    refusal_ = journal_->blame(e.what());
    return;
  }
  const Multicast::Load& load = load_logged_ ? load_logged_ : load_;
  if (state && !load) {
    refusal_ = journal_->blame(
        "it begins with a snapshot of the state, and this member has no `load` handler: call "
        "on_state, as the members did that wrote it");
    return;
  }
  loaded_ = true;
  if (state) load(*state);
}

bool DurableLog::trim_is_due() const noexcept {
  return trim_.every_bytes > 0 && stage_ == Stage::begun &&
         journal_->bytes_to_replay() >= trimmed_at_ + trim_.every_bytes;
}

void DurableLog::trim(const Deliverer::Delivered& delivered,
                      std::optional<std::span<const std::byte>> state, std::uint64_t now_ns) {
  DUNLIN_ASSERT_ALWAYS(begun(), "MC-L1: nothing is delivered before the view has begun");
  trimmed_at_ = journal_->bytes_to_replay();
  std::uint64_t from = first_message_ + delivered.complete;
  if (keep_from_) from = std::min(from, std::max(keep_from_(), journal_->least_from()));
  if (!journal_->knows_view_of(from)) return;
  beginnings_.push_back({.number = first_message_ + delivered.records,
                         .from = from,
                         .bytes = trimmed_at_,
                         .taken_ns = now_ns});
  const auto stays = [&](const Beginning& beginning) {
    constexpr std::uint64_t kSecondNs = 1'000'000'000;
    return !state && (trimmed_at_ - beginning.bytes < trim_.least_bytes ||
                      now_ns - beginning.taken_ns < trim_.least_seconds * kSecondNs);
  };
  std::optional<Beginning> latest;
  while (!beginnings_.empty() && !stays(beginnings_.front())) {
    latest = beginnings_.front();
    beginnings_.pop_front();
  }
  if (!latest) return;
  journal_->store(latest->number, latest->from, state, trimmed_at_ - latest->bytes);
  trimmed_at_ = journal_->bytes_to_replay();
  for (Beginning& beginning : beginnings_) beginning.bytes -= latest->bytes;
}

std::size_t DurableLog::append() {
  if (!agreement_->begun()) return 0;
  live_ = true;
  last_begun_ = agreement_->last_view() + 1;
  stage_ = by_quorum_ ? Stage::replaying : Stage::begun;
  ever_begun_ = ever_begun_ || !by_quorum_;
  return by_quorum_ ? 1 : 0;
}

}  // namespace dunlin::multicast
