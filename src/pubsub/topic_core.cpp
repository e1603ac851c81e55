#include "pubsub/topic_core.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/limits.hpp>

#include "assert.hpp"
#include "fabric/thread_guard.hpp"
#include "pubsub/match.hpp"
#include "pubsub/topic_qos.hpp"

namespace dunlin::pubsub {
namespace {

/// The lowest number that no endpoint has. The withdrawal of a number's earlier owner comes before
/// its new announcement.
template <class Endpoints>
[[nodiscard]] std::uint16_t free_number(const Endpoints& endpoints, const std::string& what) {
  for (std::uint16_t number = 0; number < kMaxTopicEndpoints; ++number)
    if (std::ranges::none_of(endpoints, [number](const auto& e) { return e->number() == number; }))
      return number;
  throw Error("this member has " + std::to_string(endpoints.size()) + " " + what +
              "; more are not possible (kMaxTopicEndpoints)");
}

}  // namespace

TopicCore::TopicCore(Group& group, std::shared_ptr<PollClock> clock, std::string name, TopicQos qos,
                     std::string type_name)
    : group_(group),
      clock_(std::move(clock)),
      me_(member_name_of(group.fabric(), group.fabric().rank())),
      name_(std::move(name)),
      qos_(qos),
      type_name_(std::move(type_name)) {
  check_topic_qos(name_, qos_);
  if (is_kept_in_log(qos_))
    log_history_ = std::make_unique<LogHistory>(qos_);
  else if (stores(qos_.level))
    storage_ = std::make_unique<Storage>(qos_);
}

bool TopicCore::joined() const noexcept {
  return channel() != nullptr && channel()->joined() && may_send();
}
std::string TopicCore::why_waiting() const {
  if (channel() == nullptr || channel()->why_waiting().empty()) return {};
  return "topic '" + name_ + "': " + channel()->why_waiting();
}
bool TopicCore::ended() const noexcept { return ended_ || group_.ended(); }

std::size_t TopicCore::begin_poll() {
  if (due_ns_ != kInfiniteNs) now_ns_ = clock_->now_ns();
  close_endpoints();
  if (!why_refused.empty()) outbox_.clear();
  std::size_t done = outbox_.empty() || !may_send() ? 0 : send_outbox();
  for (const auto& writer : writers_) done += writer->note_room() ? 1 : 0;
  return done;
}

bool TopicCore::end_poll() {
  for (const auto& reader : readers_) due_at(reader->next_due_ns());
  if (due_ns_ != kInfiniteNs) {
    now_ns_ = clock_->now_ns();
    if (now_ns_ >= due_ns_) check_time();
  }
  return due_ns_ != kInfiniteNs || !catching_up_.empty() || !outbox_.empty() || failure_;
}

void TopicCore::refuse(std::string why) {
  why_refused = std::move(why);
  for (const auto& writer : writers_) {
    writer->active = false;
    writer->why_refused = why_refused;
  }
  for (const auto& reader : readers_) reader->why_refused = why_refused;
  outbox_.clear();
}

std::size_t TopicCore::send_outbox() {
  std::size_t sent = 0;
  while (!outbox_.empty()) {
    std::memcpy(outbox_.front().data() + offsetof(MessageHeader, topic), &number_, sizeof number_);
    if (channel()->send(outbox_.front()) != multicast::SendResult::sent) break;
    outbox_.pop_front();
    ++sent;
  }
  return sent;
}

std::size_t TopicCore::begin_drain(std::size_t& most) {
  budget_ = {.samples = kSamplesAPoll, .bytes = kBytesAPoll};
  if (catching_up_.empty()) [[likely]]
    return 0;
  return log_history_ ? give_logged(most) : give_stored(most);
}

void TopicCore::take(const multicast::Delivery& delivery) {
  receive(delivery);
  if (log_history_ && !catching_up_.empty()) [[unlikely]]
    end_record_ = channel()->log_record() + 1;
}

void TopicCore::end_drain(std::size_t messages) noexcept {
  if (log_history_ && !catching_up_.empty()) [[unlikely]]
    spend_credit(messages);
}

/// PUB-S1: a full reader that must be given everything holds the topic back, or is dropped.
bool TopicCore::waits_for_a_reader() {
  bool waits = false;
  for (const auto& reader : readers_) {
    if (!reader->is_full() || (reader->catches_up && !waits_for_late_readers())) [[likely]] {
      reader->full_since_ns = 0;
      continue;
    }
    now_ns_ = clock_->now_ns();
    if (reader->full_since_ns == 0) reader->full_since_ns = std::max<std::uint64_t>(now_ns_, 1);
    const SlowReader& slow = reader->qos().slow_reader;
    if (slow.kind == SlowReader::Kind::drop) {
      if (now_ns_ - reader->full_since_ns >= slow.after_ns) {
        reader->drop();
        continue;
      }
      due_at(reader->full_since_ns + slow.after_ns);
    }
    waits = true;
  }
  return waits;
}

void TopicCore::receive(const multicast::Delivery& delivery) {
  now_ns_ = clock_->now_ns();
  if (!replayed_.empty()) [[unlikely]]
    end_replay();
  auto header = read_header(delivery.message);
  if (!header || delivery.sender >= places_.size()) [[unlikely]] {
    ++counters.malformed;
    return;
  }
  Member& member = *places_[delivery.sender];
  auto payload = delivery.message.subspan(kHeaderBytes);
  const bool known_writer =
      header->endpoint < member.writers.size() && member.writers[header->endpoint] != nullptr;
  if (is_data(header->kind)) [[likely]] {
    if (!known_writer || member.writers[header->endpoint]->refused) [[unlikely]] {
      ++counters.malformed;
      if (log_history_) log_history_->pass_over(channel()->log_record());
      return;
    }
    hear(member, *member.writers[header->endpoint]);
    if (is_new(*header, payload)) [[likely]]
      data(*header, payload, member.writers[header->endpoint]);
    else if (log_history_)
      log_history_->pass_over(channel()->log_record());
    return;
  }
  Reader reader(payload);
  switch (header->kind) {
    case Kind::alive:
      if (known_writer) hear(member, *member.writers[header->endpoint]);
      return;
    case Kind::announce_writer:
      begin(member.name, *header);
      return add_writer(member, *header, read_announcement(reader, true));
    case Kind::announce_reader:
      begin(member.name, *header);
      return add_reader(member, *header, read_announcement(reader, false));
    case Kind::withdraw_writer:
      return remove_writer(member, header->endpoint);
    case Kind::withdraw_reader:
      return remove_reader(member, header->endpoint);
    default:
      return;
  }
}

void TopicCore::data(const MessageHeader& header, std::span<const std::byte> payload,
                     const std::shared_ptr<RemoteWriter>& writer) {
  DUNLIN_ASSERT(!writer->gone, "PUB-T4: the endpoints of a member go after its last sample");
  ++counters.received;
  counters.bytes += payload.size();
  if (header.kind != Kind::unregister) {
    ++position_;
    carrier_->count_sample();
  }
  const Incoming in{.header = header,
                    .payload = payload,
                    .writer = writer.get(),
                    .received_ns = now_ns_,
                    .position = position_,
                    .order_position = carrier_->position()};
  for (ReaderCore* const reader : writer->readers) {
    DUNLIN_ASSERT(reader->active, "PUB-T2: a reader begins where its announcement lies");
    if (reader->catches_up) [[unlikely]]
      continue;  // the reader comes to this sample on its way
    keep_failure([&] { reader->receive(in, now_ns_); });
  }
  if (storage_) storage_->add(in, writer);
  if (header.kind == Kind::unregister)
    tell_of_unregister(in);
  else if (log_history_)
    note_in_log(header, payload.size(), *writer);
}

/// RLY-1: whether this is not a client's sample that was delivered before. Takes the client's stamp
/// off the payload.
bool TopicCore::is_new(MessageHeader& header, std::span<const std::byte>& payload) {
  if ((header.flags & kClientFlag) == 0) [[likely]]
    return true;
  const auto stamp = read_stamp(payload);
  if (!stamp) {
    ++counters.malformed;
    return false;
  }
  header.flags &= static_cast<std::uint8_t>(~kClientFlag);
  payload = payload.subspan(kStampBytes);
  const bool is_new = clients_.note(*stamp);
  if (!is_new) ++counters.repeated;
  if (on_client) {
    keep_failure([&] {
      on_client({.client = stamp->client, .number = clients_.delivered_of(stamp->client)});
    });
  }
  return is_new;
}

/// Notes a sign of life of a writer whose lease runs.
void TopicCore::hear(Member& member, RemoteWriter& writer) {
  if (writer.qos.liveliness.lease_ns == kInfiniteNs) [[likely]]
    return;
  const auto heard = [this](RemoteWriter& one) {
    one.heard_ns = now_ns_;
    if (!std::exchange(one.silent, false)) return;
    due_at(now_ns_ + one.qos.liveliness.lease_ns);  // no timer ran while the writer was silent
    for (ReaderCore* const reader : one.readers) reader->heard_again();
  };
  heard(writer);
  if (writer.qos.liveliness.kind != Liveliness::Kind::manual_by_participant) return;
  for (const auto& other : member.writers)
    if (other && other->qos.liveliness.kind == Liveliness::Kind::manual_by_participant)
      heard(*other);
}

// --- endpoints of this member --------------------------------------------------------------------

std::shared_ptr<WriterCore> TopicCore::make_writer(std::shared_ptr<const TypeSupport> of,
                                                   const DataWriterQos& qos) {
  DUNLIN_ONE_THREAD(fabric());
  const std::uint16_t number = free_number(writers_, "writers of topic '" + name_ + "'");
  const Announcement announcement{.writes = true, .type_text = of->text, .writer_qos = qos};
  auto writer = std::make_shared<WriterCore>(shared_from_this(), std::move(of), number, qos);
  writer->announcement = ++announced_;
  outbox_.push_back(make_message({.kind = Kind::announce_writer,
                                  .endpoint = number,
                                  .sequence = announced_,
                                  .source_ns = now_ns()},
                                 &announcement));
  writers_.push_back(writer);
  carrier_->wake(*this);
  return writer;
}

std::shared_ptr<ReaderCore> TopicCore::make_reader(std::shared_ptr<const TypeSupport> of,
                                                   const DataReaderQos& qos,
                                                   AnyReader::Filter filter) {
  DUNLIN_ONE_THREAD(fabric());
  const std::string who = "a reader of topic '" + name_ + "': ";
  const std::uint16_t number = free_number(readers_, "readers of topic '" + name_ + "'");
  if (qos.limits.max_samples == 0 || qos.limits.max_samples > kMaxReaderSamples ||
      qos.limits.max_instances == 0)
    throw Error(who + "ResourceLimits of " + std::to_string(qos.limits.max_samples) +
                " samples and " + std::to_string(qos.limits.max_instances) +
                " instances; give 1 to " + std::to_string(kMaxReaderSamples) +
                " samples (kMaxReaderSamples) and 1 instance or more");
  if (qos.history.kind == History::Kind::keep_last && qos.history.depth == 0)
    throw Error(who + "a history of depth 0 keeps nothing; give 1 or more");
  const Announcement announcement{.writes = false, .type_text = of->text, .reader_qos = qos};
  auto reader = std::make_shared<ReaderCore>(shared_from_this(), std::move(of), number, qos,
                                             std::move(filter));
  reader->announcement = ++announced_;
  outbox_.push_back(make_message({.kind = Kind::announce_reader,
                                  .endpoint = number,
                                  .sequence = announced_,
                                  .source_ns = now_ns()},
                                 &announcement));
  readers_.push_back(reader);
  carrier_->wake(*this);
  return reader;
}

/// Withdraws endpoints that were closed, or of which no handle is left.
void TopicCore::close_endpoints() {
  const auto over = [](const auto& endpoint) {
    return endpoint->closed() || endpoint.use_count() == 1;
  };
  for (std::size_t i = 0; i < writers_.size();) {
    if (!over(writers_[i])) {
      ++i;
      continue;
    }
    WriterCore* const writer = writers_[i].get();
    writer->close();
    for (auto& [name, member] : members_)
      for (auto& [number, reader] : member.readers) std::erase(reader.writers, writer);
    outbox_.push_back(
        make_message({.kind = Kind::withdraw_writer, .endpoint = writer->number()}, nullptr));
    writers_.erase(writers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 0; i < readers_.size();) {
    if (!over(readers_[i])) {
      ++i;
      continue;
    }
    ReaderCore* const reader = readers_[i].get();
    reader->close();
    for (CatchingUp& one : catching_up_)
      if (one.reader == reader) end_catching_up(one);
    std::erase_if(catching_up_, [&](const CatchingUp& one) { return one.reader == reader; });
    for (auto& [name, member] : members_)
      for (const auto& writer : member.writers)
        if (writer) std::erase(writer->readers, reader);
    outbox_.push_back(
        make_message({.kind = Kind::withdraw_reader, .endpoint = reader->number()}, nullptr));
    readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void TopicCore::let_go() noexcept {
  type.reset();
  on_inconsistent = nullptr;
  on_client = nullptr;
}

bool TopicCore::is_idle() const noexcept {
  return writers_.empty() && readers_.empty() && outbox_.empty() && catching_up_.empty() &&
         due_ns_ == kInfiniteNs && !failure_ && !inconsistent_changed_;
}

bool TopicCore::unused(bool leaving_withdraws) const noexcept {
  if (!writers_.empty() || !readers_.empty()) return false;
  if (leaving_withdraws) return true;
  if (!outbox_.empty()) return false;
  if (!why_refused.empty()) return true;
  const auto mine = members_.find(me_);
  return mine == members_.end() ||
         (mine->second.readers.empty() &&
          std::ranges::all_of(mine->second.writers, [](const auto& one) { return !one; }));
}

void TopicCore::end() noexcept {
  ended_ = true;
  carrier_ = nullptr;
  // The endpoints hold the topic, and the topic holds them.
  writers_.clear();
  readers_.clear();
  catching_up_.clear();
}

WriteResult TopicCore::send(std::span<const std::byte> message) {
  DUNLIN_ASSERT(may_send(), "PUB-O2: a topic of an order has its number before it sends");
  switch (channel()->send(message)) {
    case multicast::SendResult::sent:
      return WriteResult::written;
    case multicast::SendResult::no_room:
      return WriteResult::no_room;
    case multicast::SendResult::ended:  // or this member will leave its group
      return ended() ? WriteResult::ended : WriteResult::not_ready;
    default:
      return WriteResult::not_ready;
  }
}

void TopicCore::assert_liveliness_of_participant() {
  for (const auto& writer : writers_)
    if (writer->qos().liveliness.kind == Liveliness::Kind::manual_by_participant)
      static_cast<void>(writer->assert_liveliness());
}

// --- time, and handlers --------------------------------------------------------------------------

void TopicCore::check_time() {
  for (const auto& writer : writers_) writer->check_time(now_ns_);
  for (const auto& reader : readers_) reader->check_time(now_ns_);
  for (auto& [name, member] : members_)
    for (const auto& writer : member.writers) {
      if (!writer || writer->silent || writer->qos.liveliness.lease_ns == kInfiniteNs) continue;
      if (now_ns_ - writer->heard_ns < writer->qos.liveliness.lease_ns) continue;
      writer->silent = true;
      for (ReaderCore* const reader : writer->readers) {
        keep_failure([&] {
          reader->comes_to(order_position());
          reader->went_silent(*writer, now_ns_);
        });
      }
    }
  recompute_due();
}

void TopicCore::recompute_due() {
  due_ns_ = kInfiniteNs;
  for (const auto& writer : writers_) due_at(writer->next_due_ns());
  for (const auto& reader : readers_) {
    due_at(reader->next_due_ns());
    if (reader->full_since_ns != 0 && reader->qos().slow_reader.kind == SlowReader::Kind::drop)
      due_at(reader->full_since_ns + reader->qos().slow_reader.after_ns);
  }
  for (const auto& [name, member] : members_)
    for (const auto& writer : member.writers)
      if (writer && !writer->silent && writer->qos.liveliness.lease_ns != kInfiniteNs)
        due_at(writer->heard_ns + writer->qos.liveliness.lease_ns);
}

void TopicCore::flush(std::exception_ptr& failure) {
  const auto keep = [&failure](const auto& call) {
    try {
      call();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  };
  if (failure_ && !failure) failure = std::exchange(failure_, nullptr);
  if (std::exchange(inconsistent_changed_, false) && on_inconsistent) keep(on_inconsistent);
  // Handlers may make and close entities: so the loops are by index, and hold each entity while it
  // is called.
  for (std::size_t i = 0; i < writers_.size(); ++i)
    if (writers_[i]->wants_flush()) keep([writer = writers_[i]] { writer->flush(); });
  for (std::size_t i = 0; i < readers_.size(); ++i)
    if (readers_[i]->wants_flush()) keep([reader = readers_[i]] { reader->flush(); });
}

}  // namespace dunlin::pubsub
