#include <algorithm>
#include <utility>

#include <dunlin/pubsub/limits.hpp>

#include "assert.hpp"
#include "multicast/log_cursor.hpp"
#include "pubsub/match.hpp"
#include "pubsub/topic_core.hpp"

/// Topics whose samples stay in their logs: late readers are given them from there (PUB-T5, PUB-K1
/// to PUB-K4).
namespace dunlin::pubsub {
namespace {

/// The topic takes one message for so many that a late reader is given.
constexpr std::size_t kGivenForOne = 2;
constexpr std::size_t kMostCredit = std::size_t{2} * kMaxBatchMessages;

}  // namespace

/// Counts a sample of the log, in its order.
void TopicCore::note_in_log(const MessageHeader& header, std::size_t payload_bytes,
                            RemoteWriter& writer) {
  begin_log();
  log_history_->add(payload_bytes, writer, position_, now_ns_, header.source_ns);
  if (log_history_->wants_landmark()) [[unlikely]]
    log_history_->mark(channel()->log_end(), in_use());
}

void TopicCore::begin_log() {
  if (!log_history_->begun()) [[unlikely]]
    log_history_->begin(channel()->log_start());
}

/// Ends the replay: the writers in the log are those of an earlier life.
void TopicCore::end_replay() {
  for (const auto& [id, writer] : replayed_) writer->gone = true;
  replayed_.clear();
}

LogHistory::InUse TopicCore::in_use() const noexcept {
  LogHistory::InUse use;
  for (const CatchingUp& one : catching_up_) {
    if (!one.logged || one.has_all) continue;
    use.samples = std::min(use.samples, one.logged->passed.samples);
    use.record = std::min(use.record, one.logged->cursor->number());
  }
  return use;
}

/// PUB-K3: a reader on its way keeps the records before it, unless they are too many.
std::uint64_t TopicCore::keep_log_from() const noexcept {
  if (!log_history_->begun()) return UINT64_MAX;
  const LogHistory::Landmark& first = log_history_->first();
  std::uint64_t record = first.from;
  for (const CatchingUp& one : catching_up_) {
    if (!one.logged || one.has_all) continue;
    if (one.logged->passed.bytes + kMaxOvertakenBytes >= first.before.bytes)
      record = std::min(record, one.logged->cursor->number());
  }
  return record;
}

/// PUB-T2: the reader's announcement is the message at hand.
void TopicCore::begin_log_way(ReaderCore& reader) {
  if (log_history_->counts().samples == 0) return;
  const LogHistory::Landmark& first = log_history_->first();
  reader.catches_up = true;
  catching_up_.push_back(
      {.reader = &reader,
       .logged = std::make_unique<LogWay>(LogWay{.cursor = channel()->read_log(first.position()),
                                                 .passed = first.before,
                                                 .place = log_history_->counts()})});
}

/// Gives all readers on their way equal parts of the samples of one poll. The topic takes at most
/// half as many messages as each reader with room was given: so the readers come closer to its end.
std::size_t TopicCore::give_logged(std::size_t& most_messages) {
  now_ns_ = clock_->now_ns();
  const std::size_t readers = catching_up_.size();
  std::size_t done = 0;
  for (CatchingUp& one : catching_up_) {
    done += give_logged(one, readers);
    if (!one.has_all && !one.reader->is_full() && one.logged->cursor->under_way())
      most_messages = std::min(most_messages, one.logged->credit / kGivenForOne);
  }
  std::erase_if(catching_up_, [](const CatchingUp& one) { return one.has_all; });
  return done;
}

std::size_t TopicCore::give_logged(CatchingUp& one, std::size_t readers) {
  DUNLIN_ASSERT(one.logged != nullptr, "PUB-K1: a late reader of a topic in a log reads the log");
  std::size_t done = 0;
  if (one.reader->is_full() || one.reader->dropped()) {
    one.logged->cursor->pause();
  } else {
    try {
      done = read_some(one, readers);
    } catch (...) {  // the log is damaged
      if (!failure_) failure_ = std::current_exception();
      lose(one, log_history_->counts().samples);
      end_catching_up(one);
      return 1;
    }
  }
  const bool is_over = one.logged->cursor->number() >= end_record_ || one.reader->dropped();
  if (is_over && !one.has_all) end_catching_up(one);
  return done;
}

std::size_t TopicCore::read_some(CatchingUp& one, std::size_t readers) {
  using multicast::LogCursor;
  LogWay& way = *one.logged;
  const LogCursor::Step step = way.cursor->begin_step();
  if (step == LogCursor::Step::busy) return 0;
  if (step == LogCursor::Step::trimmed) {
    go_on_behind_trim(one);
    return 1;
  }
  const std::size_t records = std::max<std::size_t>(kSamplesAPoll / readers, 1);
  LogCursor::Budget budget{.records = records, .bytes = kBytesAPoll / readers};
  while (!one.reader->is_full()) {
    const auto logged = way.cursor->next(end_record_, budget);
    if (!logged) break;
    give(one, *logged);
    way.credit = std::min(way.credit + 1, kMostCredit);
  }
  return records - budget.records;
}

/// Gives a message of the log to the reader, which gets only samples that count.
void TopicCore::give(CatchingUp& one, const multicast::Logged& logged) {
  auto header = read_header(logged.message);
  if (!header || !is_data(header->kind) || log_history_->is_passed_over(logged.record)) return;
  const auto writer = log_history_->writer_of(logged.sender, header->endpoint, logged.record);
  if (!writer || writer->refused) return;
  auto payload = logged.message.subspan(kHeaderBytes);
  if ((header->flags & kClientFlag) != 0) {
    header->flags &= static_cast<std::uint8_t>(~kClientFlag);
    payload = payload.subspan(kStampBytes);
  }
  LogWay& way = *one.logged;
  if (header->kind != Kind::unregister) {  // an unregister is no sample
    const LogHistory::Counts before = way.passed;
    ++way.passed.samples;
    ++way.passed.position;
    way.passed.bytes += payload.size();
    if (!log_history_->gives(before, way.place)) return;
  }
  if (!mismatch(writer->qos, qos_.level, one.reader->qos()).empty()) return;
  one.writers.insert(writer);
  give(one, {.header = *header,
             .payload = payload,
             .writer = writer.get(),
             .received_ns = writer->received_ns(header->source_ns),
             .position = way.passed.position});
}

/// PUB-K4: goes on behind the part of the log that a trim has removed.
void TopicCore::go_on_behind_trim(CatchingUp& one) {
  LogWay& way = *one.logged;
  const LogHistory::Landmark* const next = log_history_->first_from(way.cursor->first());
  lose(one, next != nullptr ? next->before.samples : log_history_->counts().samples);
  if (next == nullptr) return end_catching_up(one);
  way.passed = next->before;
  way.cursor = channel()->read_log(next->position());
}

/// Reports samples up to that one as lost: the reader would have been given them, and they are
/// gone.
void TopicCore::lose(CatchingUp& one, std::uint64_t up_to) {
  const LogWay& way = *one.logged;
  // Only the newest samples before its place would have been given to the reader.
  const std::uint64_t kept = std::min(log_history_->max_samples(), way.place.samples);
  const std::uint64_t first = std::max(way.passed.samples, way.place.samples - kept);
  if (up_to <= first) return;
  one.reader->lost_status.total_count += static_cast<std::uint32_t>(up_to - first);
  one.reader->changed(Status::sample_lost);
}

void TopicCore::spend_credit(std::size_t messages) noexcept {
  for (CatchingUp& one : catching_up_)
    if (one.logged) one.logged->credit -= std::min(one.logged->credit, kGivenForOne * messages);
}

// --- the state of the topic ----------------------------------------------------------------------

void TopicCore::save_history(Writer& writer,
                             const std::map<const RemoteWriter*, std::uint32_t>& places) {
  std::uint32_t count = 0;
  log_history_->each_writer([&](const LogHistory::Incarnation&) { ++count; });
  writer.u32(count);
  log_history_->each_writer([&](const LogHistory::Incarnation& one) {
    writer.u32(places.at(one.writer.get()));
    writer.u64(one.announced);
    writer.u64(one.writer->newest_sample);
    writer.u64(one.writer->newest_source_ns);
    writer.u64(now_ns_ - one.writer->newest_received_ns);  // the writer's age
  });
  log_history_->save(writer);
}

bool TopicCore::load_history(Reader& reader,
                             const std::vector<std::shared_ptr<RemoteWriter>>& writers) {
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const std::uint32_t place = reader.u32();
    if (place >= writers.size()) return false;
    const std::shared_ptr<RemoteWriter>& writer = writers[place];
    log_history_->announce(reader.u64(), writer);
    writer->newest_sample = reader.u64();
    writer->newest_source_ns = reader.u64();
    writer->newest_received_ns = now_ns_ - std::min(reader.u64(), now_ns_);
  }
  return log_history_->load(reader);
}

}  // namespace dunlin::pubsub
