#include "multicast/journal.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "fabric/bytes.hpp"
#include "multicast/logged_view.hpp"

namespace dunlin::multicast {
Replay::Replay(log::Log& log, const ReplayStart& start, std::uint64_t but_for)
    : reader_(log, start.from),
      number_(start.number),
      but_for_(but_for),
      next_(start.from),
      assembler_(log, start.view.number, start.view.members) {}

bool Replay::step(const std::function<void(const Logged&)>& upcall, std::size_t records,
                  std::size_t bytes) {
  for (std::size_t done = 0; records > 0 && done < bytes; --records) {
    const std::optional<log::Record> record = reader_.next();
    if (!record) return false;
    done += record->payload.size();
    next_ = record->number + 1;
    const std::optional<Logged> message = assembler_.add(*record);
    if (!message || record->number < number_) continue;  // the state has it
    if (but_for_ > 0)
      --but_for_;
    else
      upcall(*message);
  }
  return true;
}

LogPosition Replay::position() const {
  return {.number = next_,
          .from = first_open().value_or(next_),
          .view = assembler_.view(),
          .members = assembler_.members()};
}

Journal::Journal(std::shared_ptr<log::Disk> disk, const std::string& directory,
                 const std::string& name, std::uint64_t segment_bytes)
    : name_(name),
      disk_(std::move(disk)),
      log_(disk_->open(directory),
           {.name = name,
            .segment_bytes = segment_bytes,
            .on_record = [this](const log::Record& record,
                                std::uint64_t chain) { note(record, chain); },
            .on_snapshot = [this](const log::Snapshot& snapshot) { begin_with(snapshot); }}),
      commit_(std::make_unique<log::GroupCommit>(*disk_, log_)) {
  for (const log::SegmentInfo& segment : log_.segments()) bytes_ += segment.bytes;
}

std::uint64_t Journal::segment_bytes_for(const LogTrim& trim) noexcept {
  return trim.every_bytes == 0 ? kMostSegmentBytes : std::min(kMostSegmentBytes, trim.every_bytes);
}

/// Called at opening, and on the worker's thread when a record is committed.
void Journal::note(const log::Record& record, std::uint64_t chain_before) {
  if (!is(record, Entry::view)) return;
  LoggedView view = read_view(record.payload);
  view.place = {.number = record.number, .chain = chain_before};
  const std::lock_guard lock(mutex_);
  // Views from that record on were cut off.
  while (!views_.empty() && views_.back().place.number >= record.number) views_.pop_back();
  if (views_.size() == kMaxLoggedViews) views_.erase(views_.begin());
  views_.push_back(std::move(view));
}

/// The payload says whether it has a state, lists the views before `from`, and has the state.
void Journal::begin_with(const log::Snapshot& snapshot) {
  Reader reader(snapshot.payload);
  reader.u32();  // whether there is a state
  std::vector<LoggedView> views;
  for (std::uint32_t left = reader.u32(); left > 0; --left) {
    const std::uint64_t number = reader.u64(), chain = reader.u64();
    views.push_back(read_view(reader));
    views.back().place = {.number = number, .chain = chain};
  }
  if (views.empty()) throw Error("a snapshot of a multicast's log names no view");
  start_ = {.number = snapshot.number, .from = snapshot.from, .view = views.back()};
  least_from_ = snapshot.from;
  const std::lock_guard lock(mutex_);
  views_ = std::move(views);
}

std::vector<LoggedView> Journal::views_before(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto end = std::ranges::lower_bound(
      views_, number, {}, [](const LoggedView& view) { return view.place.number; });
  return {views_.begin(), end};
}

JournalState Journal::read_state(bool live) {
  JournalState state{.end = {.number = log_.next(), .chain = log_.chain()},
                     .first = {.number = log_.first(), .chain = log_.chain_before(log_.first())}};
  state.views = views_before(state.end.number);
  if (!live || state.first.number > 1) return state;
  std::uint64_t behind = state.end.number;
  auto view = state.views.end();
  while (view != state.views.begin()) {
    --view;
    if (behind > view->place.number + 1) break;  // the view has messages
    behind = view->place.number;
  }
  state.views.erase(state.views.begin(), view);
  return state;
}

std::optional<log::Snapshot> Journal::read_snapshot() {
  if (!log_.snapshot()) return std::nullopt;
  return log_.read_snapshot();
}

std::optional<std::vector<std::byte>> Journal::read_state_of_user() {
  const std::optional<log::Snapshot> snapshot = read_snapshot();
  if (!snapshot) return std::nullopt;
  Reader reader(snapshot->payload);
  if (reader.u32() == 0) return std::nullopt;
  for (std::uint32_t left = reader.u32(); left > 0; --left) {
    reader.u64();
    reader.u64();
    static_cast<void>(read_view(reader));
  }
  check(reader);
  const auto state = reader.rest();
  return std::vector<std::byte>(state.begin(), state.end());
}

void Journal::store(std::uint64_t number, std::uint64_t from,
                    std::optional<std::span<const std::byte>> state, std::uint64_t bytes_behind) {
  const std::vector<LoggedView> views = views_before(from);
  log::Snapshot snapshot{.number = number, .from = from};
  std::vector<std::byte>& payload = snapshot.payload;
  Writer writer(payload);
  writer.u32(state ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(views.size()));
  for (const LoggedView& view : views) {
    writer.u64(view.place.number);
    writer.u64(view.place.chain);
    write_view(writer, view);
  }
  if (state) payload.insert(payload.end(), state->begin(), state->end());
  commit_->store(std::move(snapshot));
  least_from_ = from;
  bytes_ = bytes_behind;
}

std::uint64_t Journal::give_up(std::uint64_t least_bytes) {
  if (read_state_of_user())
    throw Error("log '" + log_.name() + "' in '" + log_.path() +
                "' begins with a snapshot of its member's state: messages that are in it are gone "
                "already, and later ones cannot be given up without it; its member trims it "
                "(MulticastOptions::log_trim)");
  std::uint64_t left = 0;
  for (log::LogReader reader(log_, start_.from); const auto record = reader.next();)
    left += record->payload.size();
  std::uint64_t number = start_.from;
  Replay passed(log_, start_);
  for (log::LogReader reader(log_, start_.from); const auto record = reader.next();) {
    if (left < least_bytes + record->payload.size()) break;
    left -= record->payload.size();
    passed.step([](const Logged&) {}, 1);
    number = record->number + 1;
  }
  if (number <= start_.number) return 0;
  store(number, passed.first_open().value_or(number), std::nullopt, left);
  commit_->finish();
  if (!failure().empty()) throw Error(failure());
  return number - start_.number;
}

void Journal::begin_copy(std::optional<log::Snapshot> snapshot) {
  {
    const std::lock_guard lock(mutex_);
    original_ = {.views = std::exchange(views_, {}),
                 .start = std::exchange(start_, {}),
                 .bytes = std::exchange(bytes_, 0),
                 .least_from = least_from_};
  }
  least_from_ = 1;
  if (snapshot) begin_with(*snapshot);
  commit_->begin_copy(std::move(snapshot));
}

void Journal::end_copy() noexcept {
  commit_->end_copy();
  original_ = {};
}

void Journal::drop_copy() {
  commit_->drop_copy();
  start_ = std::move(original_.start);
  bytes_ = original_.bytes;
  least_from_ = original_.least_from;
  const std::lock_guard lock(mutex_);
  views_ = std::move(original_.views);
}

void Journal::begin_view(std::uint64_t number, const std::vector<std::string>& members) {
  std::vector<std::byte> payload;
  Writer writer(payload);
  write_view(writer, {.place = {}, .number = number, .members = members});
  commit_->append(static_cast<std::uint32_t>(Entry::view), {}, payload);
}

void Journal::append(std::uint32_t sender, const Record& record) {
  const MessageHead head{.slot = record.slot, .sender = sender};
  commit_->append(static_cast<std::uint32_t>(record.continues ? Entry::fragment : Entry::message),
                  std::as_bytes(std::span(&head, 1)), record.message);
  bytes_ += record.message.size();
}

}  // namespace dunlin::multicast
