#include <algorithm>
#include <utility>

#include <dunlin/pubsub/limits.hpp>

#include "assert.hpp"
#include "fabric/hash.hpp"
#include "pubsub/match.hpp"
#include "pubsub/topic_core.hpp"

/// The endpoints of all members, as their announcements make them.
namespace dunlin::pubsub {
namespace {

/// A late reader that has room is given so many samples in a poll, however large the samples are.
constexpr std::size_t kLeastGiven = 2;

[[nodiscard]] std::string reader_name(std::string_view member, std::uint16_t number) {
  return "reader " + std::to_string(number) + " of member '" + std::string(member) + "'";
}

}  // namespace

bool TopicCore::is_me(const Member& member) const noexcept { return member.name == me_; }

std::string_view TopicCore::interned(std::string_view name) {
  const auto found = names_.find(name);
  return found != names_.end() ? *found : *names_.emplace(name).first;
}

/// PUB-T4: members that are in the subgroup no more take their endpoints with them.
void TopicCore::refresh_members() {
  now_ns_ = clock_->now_ns();
  const Subgroup& subgroup = channel()->subgroup();
  places_.clear();
  std::set<std::string_view> present;
  for (const Rank rank : subgroup.members) {
    const std::string_view name = interned(member_name_of(group_.fabric(), rank));
    present.insert(name);
    Member& member = members_.try_emplace(name, Member{.name = name}).first->second;
    // The member has started anew, and this member has not polled in between.
    if (member.rank.value_or(rank) != rank) forget_member(member);
    member.rank = rank;
  }
  for (auto it = members_.begin(); it != members_.end();) {
    if (present.contains(it->first)) {
      ++it;
    } else {
      forget_member(it->second);
      it = members_.erase(it);
    }
  }
  for (const Rank rank : subgroup.members)
    places_.push_back(&members_.find(member_name_of(group_.fabric(), rank))->second);
}

void TopicCore::forget_member(Member& member) {
  for (std::size_t number = 0; number < member.writers.size(); ++number)
    remove_writer(member, static_cast<std::uint16_t>(number));
  while (!member.readers.empty()) remove_reader(member, member.readers.begin()->first);
}

/// PUB-T3. An empty text is that of a tool, which takes any type, or of an announcement that cannot
/// be read, whose samples cannot be read either.
bool TopicCore::takes_type(const std::string& text) {
  if (text.empty()) return true;
  if (type_text_.empty()) type_text_ = text;
  if (!types_match(type_text_, text)) return false;
  if (text.size() > type_text_.size()) type_text_ = text;  // appended members count now
  return true;
}

/// Begins the topic; a topic that all members had left is another one when it begins anew.
void TopicCore::begin(std::string_view member, const MessageHeader& header) noexcept {
  if (beginning_ != 0) [[likely]]
    return;
  constexpr std::uint64_t kOddMultiplier = 0x9e3779b97f4a7c15;
  beginning_ = (fnv1a(member) ^ (header.source_ns * kOddMultiplier)) | 1U;
}

void TopicCore::refuse(std::string_view member, const char* what, std::uint16_t number,
                       const std::string& text) {
  ++inconsistent.total_count;
  inconsistent.last =
      "topic '" + name_ + "': " + what + " " + std::to_string(number) + " of member '" +
      std::string(member) +
      "' is refused, because its type is another one: " + show_both_types(type_text_, text);
  inconsistent_changed_ = true;
}

void TopicCore::add_writer(Member& member, const MessageHeader& header, Announcement announcement) {
  ++endpoint_changes_;
  const std::uint16_t number = header.endpoint;
  remove_writer(member, number);
  if (member.writers.size() <= number) member.writers.resize(std::size_t{number} + 1);
  auto writer =
      std::make_shared<RemoteWriter>(RemoteWriter{.member = member.name,
                                                  .number = number,
                                                  .qos = announcement.writer_qos,
                                                  .type_text = announcement.type_text,
                                                  .refused = !takes_type(announcement.type_text),
                                                  .heard_ns = now_ns_});
  member.writers[number] = writer;
  if (log_history_) log_history_->announce(channel()->log_record(), writer);
  if (writer->refused) refuse(member.name, "writer", number, announcement.type_text);
  due_ns_ = 0;  // this writer's lease may be the next to run out
  if (is_me(member)) {
    const auto mine = std::ranges::find_if(writers_, [&](const auto& one) {
      return one->number() == number && one->announcement == header.sequence;
    });
    if (mine != writers_.end()) {
      if (writer->refused) {
        (*mine)->why_refused = inconsistent.last;
      } else {
        (*mine)->active = true;
        for (auto& [name, other] : members_)
          for (auto& [n, reader] : other.readers) match(other, reader, **mine);
      }
    }
  }
  if (writer->refused) return;
  for (const auto& reader : readers_)
    if (reader->active) match(writer, *reader);
}

void TopicCore::add_reader(Member& member, const MessageHeader& header, Announcement announcement) {
  ++endpoint_changes_;
  const std::uint16_t number = header.endpoint;
  remove_reader(member, number);
  RemoteReader& remote =
      member.readers
          .emplace(number, RemoteReader{.number = number,
                                        .qos = announcement.reader_qos,
                                        .type_text = announcement.type_text,
                                        .refused = !takes_type(announcement.type_text)})
          .first->second;
  if (remote.refused) refuse(member.name, "reader", number, announcement.type_text);
  if (!remote.refused)
    for (const auto& writer : writers_)
      if (writer->active) match(member, remote, *writer);
  if (!is_me(member)) return;
  const auto mine = std::ranges::find_if(readers_, [&](const auto& one) {
    return one->number() == number && one->announcement == header.sequence;
  });
  if (mine == readers_.end()) return;
  if (remote.refused) {
    (*mine)->why_refused = inconsistent.last;
    return;
  }
  // PUB-T2: the announcement is the reader's place in the order.
  ReaderCore& reader = **mine;
  reader.active = true;
  for (auto& [name, other] : members_)
    for (const auto& writer : other.writers)
      if (writer && !writer->refused) match(writer, reader);
  if (reader.qos().durability.kind == Durability::Kind::volatile_) return;
  if (log_history_) return begin_log_way(reader);
  if (!storage_) return;
  storage_->expire(now_ns_);
  reader.catches_up = true;
  catching_up_.push_back({.reader = &reader, .way = storage_->begin_way()});
  give_stored(catching_up_.back(), budget_);  // what is left of the budget
  if (catching_up_.back().has_all) catching_up_.pop_back();
}

void TopicCore::give(CatchingUp& one, const Incoming& in) {
  one.order_position = in.order_position;
  keep_failure([&] { one.reader->receive(in, now_ns_); });
}

/// Tells readers of an unregister. Readers on their way hear of it behind the newest sample of the
/// instance; those that have passed that sample hear of it now.
void TopicCore::tell_of_unregister(const Incoming& in) {
  if (!storage_) return;
  for (CatchingUp& one : catching_up_) {
    if (storage_->lies_ahead(one.way, in.header.key_hash)) continue;
    Incoming behind = in;
    behind.order_position = one.order_position;
    give(one, behind);
  }
}

/// Gives stored samples as far as the reader has room, and the budget lasts. A way ends as soon as
/// the reader has all: from there on it gets samples as they come (PUB-T2).
void TopicCore::give_stored(CatchingUp& one, Budget& budget) {
  ReaderCore& reader = *one.reader;
  const Storage::Stored* stored = storage_->next(one.way);
  for (std::size_t given = 0; stored != nullptr && budget.samples > 0 && !reader.is_full();
       stored = storage_->next(one.way)) {
    if (budget.bytes == 0 && given >= kLeastGiven) break;
    ++given;
    --budget.samples;
    budget.bytes -= std::min(budget.bytes, stored->payload.size());
    storage_->pass(one.way);
    if (!mismatch(stored->writer->qos, qos_.level, reader.qos()).empty()) continue;
    one.writers.insert(stored->writer);
    Incoming in{.header = stored->header,
                .payload = stored->payload,
                .writer = stored->writer.get(),
                .received_ns = stored->received_ns,
                .position = stored->position,
                .order_position = stored->order_position};
    give(one, in);
    in.header.kind = Kind::unregister;
    for (const auto& writer : stored->unregistered) {
      in.writer = writer.get();
      give(one, in);
    }
  }
  if (stored == nullptr || reader.closed() || reader.dropped()) end_catching_up(one);
}

void TopicCore::end_catching_up(CatchingUp& one) {
  ReaderCore& reader = *one.reader;
  one.has_all = true;
  reader.catches_up = false;
  reader.comes_to(order_position());
  if (!reader.closed() && !reader.dropped())
    for (const auto& writer : one.writers)
      if (!writer->alive()) keep_failure([&] { reader.forget(*writer, now_ns_); });
  if (!one.logged) storage_->end_way(one.way);
}

/// Gives all readers on their way equal parts of the samples of one poll. The topic takes at most
/// half as many messages as each reader with room was given: so the readers come closer to its end.
std::size_t TopicCore::give_stored(std::size_t& most_messages) {
  now_ns_ = clock_->now_ns();
  const std::size_t readers = catching_up_.size();
  std::size_t given = 0;
  for (CatchingUp& one : catching_up_) {
    Budget budget{.samples = std::max(kSamplesAPoll / readers, kLeastGiven),
                  .bytes = kBytesAPoll / readers};
    const std::size_t samples = budget.samples;
    give_stored(one, budget);
    const std::size_t to_one = samples - budget.samples;
    given += to_one;
    if (!one.has_all && !one.reader->is_full())
      most_messages = std::min(most_messages, to_one / kLeastGiven);
  }
  budget_ = {};
  std::erase_if(catching_up_, [](const CatchingUp& one) { return one.has_all; });
  storage_->let_go_of_overtaken();
  return given;
}

void TopicCore::match(const std::shared_ptr<RemoteWriter>& writer, ReaderCore& reader) {
  const std::string why = mismatch(writer->qos, qos_.level, reader.qos());
  if (!why.empty()) {
    reader.mismatched("topic '" + name_ + "': " + writer->name() + " and " +
                      reader_name(me_, reader.number()) + " do not match: " + why);
    return;
  }
  DUNLIN_ASSERT(!writer->refused, "PUB-T3: an endpoint of another type matches none");
  writer->readers.push_back(&reader);
  reader.matched(!writer->silent);
}

void TopicCore::match(const Member& member, RemoteReader& remote, WriterCore& writer) {
  if (remote.refused) return;
  const std::string why = mismatch(writer.qos(), qos_.level, remote.qos);
  if (!why.empty()) {
    ++writer.incompatible_status.total_count;
    writer.incompatible_status.last =
        "topic '" + name_ + "': writer " + std::to_string(writer.number()) + " of member '" + me_ +
        "' and " + reader_name(member.name, remote.number) + " do not match: " + why;
    writer.changed(Status::offered_incompatible_qos);
    return;
  }
  remote.writers.push_back(&writer);
  ++writer.matched_status.current_count;
  ++writer.matched_status.total_count;
  writer.changed(Status::publication_matched);
}

void TopicCore::remove_writer(Member& member, std::uint16_t number) {
  if (number >= member.writers.size() || !member.writers[number]) return;
  const std::shared_ptr<RemoteWriter> writer = std::move(member.writers[number]);
  writer->gone = true;
  ++endpoint_changes_;
  for (ReaderCore* const reader : std::exchange(writer->readers, {})) {
    keep_failure([&] {
      reader->comes_to(order_position());
      reader->unmatched(*writer, now_ns_);
    });
  }
}

void TopicCore::remove_reader(Member& member, std::uint16_t number) {
  const auto found = member.readers.find(number);
  if (found == member.readers.end()) return;
  for (WriterCore* const writer : found->second.writers) {
    --writer->matched_status.current_count;
    writer->changed(Status::publication_matched);
  }
  member.readers.erase(found);
  ++endpoint_changes_;
}

std::vector<EndpointInfo> TopicCore::endpoints() const {
  std::vector<EndpointInfo> all;
  for (const auto& [name, member] : members_) {
    for (const auto& writer : member.writers)
      if (writer)
        all.push_back({.member = std::string(name),
                       .number = writer->number,
                       .writes = true,
                       .refused = writer->refused,
                       .writer_qos = writer->qos});
    for (const auto& [number, reader] : member.readers)
      all.push_back({.member = std::string(name),
                     .number = number,
                     .writes = false,
                     .refused = reader.refused,
                     .reader_qos = reader.qos});
  }
  return all;
}

}  // namespace dunlin::pubsub
