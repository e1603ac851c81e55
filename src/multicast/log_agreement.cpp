#include "multicast/log_agreement.hpp"

#include <algorithm>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "fabric/bytes.hpp"

namespace dunlin::multicast {
namespace {

constexpr std::size_t kRingBytes = std::size_t{64} << 10;
constexpr std::size_t kPartBytes = kRingBytes / 8;  // the part of a snapshot in a message
constexpr std::uint64_t kAnew = 0;  // in a plan: the member's log begins with the source's snapshot

void write(Writer& writer, const LogPlace& place) {
  writer.u64(place.number);
  writer.u64(place.chain);
}
LogPlace read_place(Reader& reader) {
  LogPlace place;
  place.number = reader.u64();
  place.chain = reader.u64();
  return place;
}
void write(Writer& writer, const std::vector<std::string>& names) {
  writer.u32(static_cast<std::uint32_t>(names.size()));
  for (const std::string& name : names) writer.text(name);
}
std::vector<std::string> read_names(Reader& reader) {
  std::vector<std::string> names;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    names.push_back(reader.text());
  return names;
}

bool is_view(std::uint32_t kind) noexcept {
  return kind == static_cast<std::uint32_t>(Entry::view);
}

}  // namespace

SubgroupViewOptions LogAgreement::channel_of(const Subgroup& subgroup) {
  SubgroupViewOptions options{
      .name = subgroup.name,
      .generation = subgroup.generation() | std::uint64_t{1} << 63,  // differs from the view's own
      .members = subgroup.members,
      .senders = {},
      .ring_bytes = kRingBytes};
  for (std::uint32_t i = 0; i < subgroup.members.size(); ++i) options.senders.push_back(i);
  return options;
}

LogAgreement::LogAgreement(Fabric& fabric, const Subgroup& subgroup, Journal& journal,
                           Member member)
    : journal_(journal),
      name_(subgroup.name),
      member_(std::move(member)),
      me_(static_cast<std::uint32_t>(std::ranges::find(subgroup.members, fabric.rank()) -
                                     subgroup.members.begin())),
      reports_(subgroup.members.size()),
      logs_(subgroup.members.size()),
      view_(fabric, channel_of(subgroup), [this](std::span<const Delivery> batch) {
        for (const Delivery& delivery : batch) take(delivery.sender, delivery.message);
      }) {}

void LogAgreement::advance() noexcept {
  DUNLIN_ASSERT_ALWAYS(stage_ != Stage::begun, "a view begins once");
  stage_ = static_cast<Stage>(static_cast<std::uint8_t>(stage_) + 1);
}

std::size_t LogAgreement::poll() {
  if (!refusal_.empty()) return 0;
  try {
    std::size_t done = !begun() && journal_.poll() ? 1 : 0;
    if (stage_ == Stage::reporting && journal_.settled() && journal_.copying()) {
      journal_.drop_copy();  // it was made in a view that has ended
      ++done;
    }
    if (stage_ == Stage::reporting && journal_.settled()) done += send_report() ? 1 : 0;
    if (!to_send_.empty()) done += send_records() ? 1 : 0;
    if (to_announce_) done += announce_if_settled() ? 1 : 0;
    done += view_.poll();
    return done;
  } catch (const Error& e) {  // such as a log that cannot be read any more
    refusal_ = journal_.blame(e.what());
    return 1;
  }
}

bool LogAgreement::send_report() {
  std::vector<std::byte> message;
  Writer writer(message);
  const JournalState state = journal_.read_state(member_.live && !member_.by_quorum);
  writer.u32(static_cast<std::uint32_t>(Kind::report));
  writer.u32(member_.live ? 1 : 0);
  writer.u64(member_.begun);
  writer.u32(member_.past.had_members ? 1 : 0);
  writer.u32(member_.past.saw_all ? 1 : 0);
  write(writer, member_.past.departed);
  write(writer, state.end);
  write(writer, state.first);
  writer.u32(static_cast<std::uint32_t>(state.views.size()));
  for (const LoggedView& view : state.views) {
    write(writer, view.place);
    writer.u64(view.number);
    write(writer, view.members);
  }
  write(writer, member_.given_up);
  if (view_.send(message) != SendResult::sent) return false;
  advance();
  return true;
}

void LogAgreement::take(std::uint32_t sender, std::span<const std::byte> message) {
  Reader reader(message);
  const bool from_source = stage_ >= Stage::planning && sender == source_;
  switch (static_cast<Kind>(reader.u32())) {
    case Kind::report:
      return take_report(sender, reader.rest());
    case Kind::plan:
      if (from_source && stage_ == Stage::planning) take_plan(reader.rest());
      return;
    case Kind::record:
      if (from_source && stage_ == Stage::copying && source_ != me_) take_record(reader.rest());
      return;
    case Kind::snapshot:
      if (from_source && stage_ == Stage::copying && begins_anew_) take_snapshot(reader.rest());
      return;
    case Kind::end:
      if (from_source && stage_ == Stage::copying) take_end();
      return;
    case Kind::stored:
      return take_stored(sender);
    case Kind::begun:
      return take_begun(sender);
  }
}

/// A record that this member has already stays as it is: it may show that a view began (MC-L1).
void LogAgreement::take_record(std::span<const std::byte> message) {
  Reader reader(message);
  const std::uint64_t number = reader.u64();
  const std::uint32_t kind = reader.u32();
  const std::span<const std::byte> payload = reader.rest();
  if (number < from_ || begins_anew_) return;
  if (ours_) {
    const std::optional<log::Record> record = ours_->next();
    if (record && record->kind == kind && std::ranges::equal(record->payload, payload)) return;
    if (record && !is_view(record->kind) && !is_view(kind)) refuse_to_cut(number);
    keep_before(number);
  }
  journal_.append_again(kind, payload);
}

/// Once the snapshot is whole, this member's log begins with it.
void LogAgreement::take_snapshot(std::span<const std::byte> message) {
  Reader reader(message);
  if (!snapshot_) snapshot_.emplace();
  snapshot_->number = reader.u64();
  snapshot_->from = reader.u64();
  snapshot_->chain = reader.u64();
  const std::uint64_t bytes = reader.u64();
  const std::span<const std::byte> part = reader.rest();
  snapshot_->payload.insert(snapshot_->payload.end(), part.begin(), part.end());
  if (snapshot_->payload.size() < bytes) return;
  if (snapshot_->from == 0 || snapshot_->from > snapshot_->number ||
      snapshot_->number > reports_[source_]->end.number)
    throw Error("cannot take the snapshot of '" + member_.names[source_] +
                "': it does not fit what that member reported of its log");
  from_ = snapshot_->from;
  begins_anew_ = false;
  journal_.begin_copy(std::move(snapshot_));
  snapshot_.reset();
}

void LogAgreement::take_end() {
  if (begins_anew_ || (copies_ && journal_.next() != reports_[source_]->end.number))
    throw Error("'" + member_.names[source_] + "' ended the copy of its log before it was whole");
  if (ours_) keep_before(reports_[source_]->end.number);
  if (copies_) journal_.end_copy();
  if (logs_[me_] == MemberLog::lacks_records) to_announce_ = Kind::stored;
  advance();
  if (all_are(MemberLog::equal)) advance();
}

void LogAgreement::take_stored(std::uint32_t sender) {
  if (stage_ != Stage::storing || logs_[sender] != MemberLog::lacks_records) return;
  logs_[sender] = MemberLog::equal;
  if (all_are(MemberLog::equal)) advance();
}

void LogAgreement::appended() noexcept {
  DUNLIN_ASSERT_ALWAYS(equal(), "MC-L6: the logs are equal before a view is recorded in them");
  to_announce_ = Kind::begun;
}

void LogAgreement::take_begun(std::uint32_t sender) {
  if (stage_ != Stage::equal) return;
  logs_[sender] = MemberLog::begun;
  if (all_are(MemberLog::begun)) advance();
}

bool LogAgreement::all_are(MemberLog log) const noexcept {
  return std::ranges::all_of(logs_, [&](MemberLog of_member) { return of_member == log; });
}

/// Throws Error if the rest of this member's log counts.
void LogAgreement::keep_before(std::uint64_t number) {
  ours_.reset();
  const LogReport& own = *reports_[me_];
  if (has_begun_view(own, number)) refuse_to_cut(number);
  if (number < own.end.number) journal_.cut(own.end.number - number);
}

/// MC-L7: a log with another history is not cut off.
void LogAgreement::refuse_to_cut(std::uint64_t number) const {
  throw Error("record " + std::to_string(number) + " and what follows counted, and the log of '" +
              member_.names[source_] +
              "', with which the others go on, is without it: it has another history. Nothing was "
              "cut off; to go on with that history, move this log away");
}

void LogAgreement::take_report(std::uint32_t sender, std::span<const std::byte> message) {
  if (reports_[sender]) return;
  Reader reader(message);
  LogReport report{.member = member_.names[sender], .live = reader.u32() != 0, .end = {}};
  report.begun = reader.u64();
  report.past.had_members = reader.u32() != 0;
  report.past.saw_all = reader.u32() != 0;
  report.past.departed = read_names(reader);
  report.end = read_place(reader);
  report.first = read_place(reader);
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    LoggedView view{.place = read_place(reader)};
    view.number = reader.u64();
    view.members = read_names(reader);
    report.views.push_back(std::move(view));
  }
  report.given_up = read_names(reader);
  if (!reader.good()) throw Error("cannot read the report of '" + report.member + "' on its log");
  reports_[sender] = std::move(report);
  if (std::ranges::all_of(reports_, &std::optional<LogReport>::has_value)) choose();
}

void LogAgreement::choose() {
  std::vector<LogReport> reports;
  reports.reserve(reports_.size());
  for (const auto& report : reports_) reports.push_back(*report);
  const LogChoice choice = member_.by_quorum ? choose_log_by_quorum(reports) : choose_log(reports);
  if (!choice.refusal.empty()) {
    const bool waits = member_.may_wait && choice.others_may_help;
    (waits ? why_waiting_ : refusal_) = "subgroup '" + name_ + "': " + choice.refusal;
    return;
  }
  source_ = static_cast<std::uint32_t>(choice.source);
  inherits_ = std::ranges::find(choice.heirs, member_.names[me_]) != choice.heirs.end();
  for (const LoggedView& view : reports[source_].views)
    last_view_ = std::max(last_view_, view.number);
  advance();
  if (source_ == me_) make_plan();
}

/// The plan says from where on each member needs this member's records.
void LogAgreement::make_plan() {
  Writer writer(to_send_);
  writer.u32(static_cast<std::uint32_t>(Kind::plan));
  std::uint64_t least = reports_[me_]->end.number;
  for (const auto& report : reports_) {
    const std::optional<std::uint64_t> from =
        copy_begin(*reports_[me_], *report,
                   [&](std::uint64_t number) { return journal_.chain_before(number); });
    writer.u64(from.value_or(kAnew));
    if (!from && reports_[me_]->first.number > 1 && !snapshot_)
      snapshot_ = journal_.read_snapshot();
    least = std::min(least, from ? *from : snapshot_ ? snapshot_->from : 1);
  }
  reader_ = journal_.read_from(least);
}

/// Sends as far as there is room. Returns whether anything was sent.
bool LogAgreement::send_records() {
  bool any = false;
  while (!to_send_.empty() && view_.send(to_send_) == SendResult::sent) {
    any = true;
    to_send_.clear();
    if (reader_) prepare_next();
  }
  return any;
}

/// Makes the next message: first of the snapshot, if a member needs it, then record by record.
void LogAgreement::prepare_next() {
  Writer writer(to_send_);
  if (snapshot_) {
    const std::span<const std::byte> rest = std::span(snapshot_->payload).subspan(snapshot_sent_);
    const std::span<const std::byte> part = rest.first(std::min(rest.size(), kPartBytes));
    writer.u32(static_cast<std::uint32_t>(Kind::snapshot));
    writer.u64(snapshot_->number);
    writer.u64(snapshot_->from);
    writer.u64(snapshot_->chain);
    writer.u64(snapshot_->payload.size());
    writer.bytes(part);
    snapshot_sent_ += part.size();
    if (part.size() == rest.size()) snapshot_.reset();
  } else if (const std::optional<log::Record> record = reader_->next()) {
    writer.u32(static_cast<std::uint32_t>(Kind::record));
    writer.u64(record->number);
    writer.u32(record->kind);
    writer.bytes(record->payload);
  } else {
    writer.u32(static_cast<std::uint32_t>(Kind::end));
    reader_.reset();
  }
}

/// Announces that everything that this member appended is on its disk.
bool LogAgreement::announce_if_settled() {
  if (!journal_.settled()) return false;
  std::vector<std::byte> message;
  Writer(message).u32(static_cast<std::uint32_t>(*to_announce_));
  if (view_.send(message) != SendResult::sent) return false;
  to_announce_.reset();
  return true;
}

void LogAgreement::take_plan(std::span<const std::byte> message) {
  Reader reader(message);
  const LogReport& source = *reports_[source_];
  for (std::size_t member = 0; member < reports_.size(); ++member) {
    const std::uint64_t from = reader.u64();
    if (!reader.good() || from > reports_[member]->end.number)
      throw Error("cannot follow the plan of '" + member_.names[source_] +
                  "' for making the logs equal: it does not fit what the members reported");
    if (from == source.end.number) logs_[member] = MemberLog::equal;
    if (member == me_) from_ = from;
  }
  if (source_ != me_ && logs_[me_] == MemberLog::lacks_records) prepare_for_records(source);
  advance();
}

/// Finds what this member has of the source's log already. MC-L8: a log that shares no record with
/// what the source still has counts until the whole copy is there.
void LogAgreement::prepare_for_records(const LogReport& source) {
  const LogReport& own = *reports_[me_];
  if (from_ == kAnew) {
    if (const std::optional<std::uint64_t> other = other_history(source, own))
      refuse_to_cut(*other);
    begins_anew_ = copies_ = true;
    return;
  }
  if (from_ < own.first.number) refuse_to_cut(from_);
  copies_ = own.end.number == 1;
  if (copies_) journal_.begin_copy(std::nullopt);
  if (from_ < own.end.number) ours_ = journal_.read_from(from_);
}

}  // namespace dunlin::multicast
