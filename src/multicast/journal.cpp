#include "multicast/journal.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "fabric/bytes.hpp"
#include "multicast/long_messages.hpp"

namespace dunlin::multicast {
namespace {

/// In front of a message's bytes.
struct MessageHead {
  std::uint64_t slot;
  std::uint64_t sender;
};

void check(const Reader& reader) {
  if (!reader.good()) throw Error("a record of a multicast's log is too short");
}

LoggedView read_view(Reader& reader) {
  LoggedView view{.place = {}, .number = reader.u64()};
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const auto name = reader.bytes(reader.u8());
    view.members.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
  }
  check(reader);
  return view;
}
LoggedView read_view(std::span<const std::byte> payload) {
  Reader reader(payload);
  return read_view(reader);
}

void write_view(Writer& writer, const LoggedView& view) {
  writer.u64(view.number);
  writer.u32(static_cast<std::uint32_t>(view.members.size()));
  for (const std::string& member : view.members) {
    writer.u8(static_cast<std::uint8_t>(member.size()));
    writer.bytes(std::as_bytes(std::span(member)));
  }
}

[[nodiscard]] bool is(const log::Record& record, Entry kind) noexcept {
  return record.kind == static_cast<std::uint32_t>(kind);
}

[[noreturn]] void refuse(const log::Log& log, std::uint64_t number, const std::string& why) {
  throw Error("log '" + log.name() + "' in '" + log.path() + "': record " + std::to_string(number) +
              " is not what a multicast writes: " + why);
}

}  // namespace

Replay::Replay(log::Log& log, const ReplayStart& start, std::uint64_t but_for)
    : log_(log),
      reader_(log, start.from),
      number_(start.number),
      but_for_(but_for),
      view_(start.view.number),
      members_(start.view.members),
      reassemblies_(members_.size()),
      began_at_(members_.size()) {}

bool Replay::step(const std::function<void(const Logged&)>& upcall, std::size_t records,
                  std::size_t bytes) {
  for (std::size_t done = 0; records > 0 && done < bytes; --records) {
    const std::optional<log::Record> record = reader_.next();
    if (!record) return false;
    done += record->payload.size();
    take(*record, upcall);
  }
  return true;
}

void Replay::take(const log::Record& record, const std::function<void(const Logged&)>& upcall) {
  if (is(record, Entry::view)) {
    LoggedView view = read_view(record.payload);
    view_ = view.number;
    members_ = std::move(view.members);
    reassemblies_.assign(members_.size(), {});  // what the view has not completed, comes again
    began_at_.assign(members_.size(), 0);
    return;
  }
  Reader reader(record.payload);
  const std::uint64_t slot = reader.u64(), sender = reader.u64();
  check(reader);
  if (sender >= members_.size()) refuse(log_, record.number, "its view has no such sender");
  Reassembly& reassembly = reassemblies_[sender];
  if (!reassembly.open()) began_at_[sender] = record.number;
  if (!reassembly.add(
          {.message = reader.rest(), .slot = slot, .continues = is(record, Entry::fragment)}))
    return;
  const struct LetGo {  // also of a message for which the upcall throws
    Reassembly& held;
    ~LetGo() { held.let_go(); }
  } afterwards{reassembly};
  if (record.number < number_) {
    // The state has it.
  } else if (but_for_ > 0) {
    --but_for_;
  } else {
    upcall({.view = view_, .sender = members_[sender], .message = reassembly.message()});
  }
}

std::optional<std::uint64_t> Replay::first_open() const noexcept {
  std::optional<std::uint64_t> first;
  for (std::size_t i = 0; i < reassemblies_.size(); ++i)
    if (reassemblies_[i].open()) first = std::min(first.value_or(began_at_[i]), began_at_[i]);
  return first;
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

/// At opening, and on the worker's thread when it is committed.
void Journal::note(const log::Record& record, std::uint64_t chain_before) {
  if (!is(record, Entry::view)) return;
  LoggedView view = read_view(record.payload);
  view.place = {.number = record.number, .chain = chain_before};
  const std::lock_guard lock(mutex_);
  // What lies there or behind was cut off.
  while (!views_.empty() && views_.back().place.number >= record.number) views_.pop_back();
  if (views_.size() == kMaxLoggedViews) views_.erase(views_.begin());
  views_.push_back(std::move(view));
}

/// The views before a snapshot's `from`, and whether it holds a state; the state follows.
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
    if (behind > view->place.number + 1) break;  // it has messages
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
    read_view(reader);
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
                 .bytes = std::exchange(bytes_, 0)};
  }
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
