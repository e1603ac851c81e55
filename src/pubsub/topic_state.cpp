#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/limits.hpp>

#include "pubsub/topic_core.hpp"

/// The state of a topic, for a member that comes in and for a log (docs/formats/pubsub.md).
namespace dunlin::pubsub {
namespace {

constexpr std::uint32_t kStateVersion = 4;
constexpr std::size_t kMoreBytesASample = 32;  // for each sample, beside header and payload
constexpr std::size_t kMoreBytes = 16'384;     // behind the samples, and before all of them

void write_header(Writer& writer, const MessageHeader& header) {
  writer.bytes(std::as_bytes(std::span(&header, 1)));
}

void write_writer(Writer& writer, const RemoteWriter& remote) {
  writer.text(remote.member);
  writer.u16(remote.number);
  writer.u16(static_cast<std::uint16_t>((remote.refused ? 1U : 0U) | (remote.gone ? 2U : 0U)));
  write(writer,
        Announcement{.writes = true, .type_text = remote.type_text, .writer_qos = remote.qos});
}

}  // namespace

std::vector<std::byte> TopicCore::save() {
  now_ns_ = clock_->now_ns();
  if (storage_) storage_->expire(now_ns_);
  if (log_history_) begin_log();
  end_replay();
  std::vector<std::byte> state;
  Writer writer(state);
  writer.u32(kStateVersion);
  writer.text(type_text_);
  writer.u64(beginning_);
  writer.u64(position_);
  // All writers that the receiver has to know: live writers, and those of stored samples.
  std::map<const RemoteWriter*, std::uint32_t> places;
  std::vector<const RemoteWriter*> writers;
  const auto add = [&](const RemoteWriter* one) {
    if (places.try_emplace(one, static_cast<std::uint32_t>(writers.size())).second)
      writers.push_back(one);
  };
  std::uint32_t readers = 0;
  for (const auto& [name, member] : members_) {
    for (const auto& one : member.writers)
      if (one) add(one.get());
    readers += static_cast<std::uint32_t>(member.readers.size());
  }
  std::size_t left = 0;
  if (storage_)
    storage_->each([&](const Storage::Stored& stored) {
      add(stored.writer.get());
      for (const auto& one : stored.unregistered) add(one.get());
      left += 1 + stored.unregistered.size();
    });
  if (log_history_)
    log_history_->each_writer([&](const LogHistory::Incarnation& one) { add(one.writer.get()); });
  writer.u32(static_cast<std::uint32_t>(writers.size()));
  for (const RemoteWriter* const one : writers) write_writer(writer, *one);
  writer.u32(readers);
  for (const auto& [name, member] : members_)
    for (const auto& [number, reader] : member.readers) {
      writer.text(name);
      writer.u16(number);
      writer.u16(reader.refused ? 1 : 0);
      write(writer,
            Announcement{.writes = false, .type_text = reader.type_text, .reader_qos = reader.qos});
    }
  writer.u32(static_cast<std::uint32_t>(left));
  if (storage_) {
    writer.reserve(storage_->bytes() + storage_->size() * (kHeaderBytes + kMoreBytesASample) +
                   kMoreBytes);
    const auto save_one = [&](const Storage::Stored& stored, const RemoteWriter* of, Kind kind) {
      if (left == 0) return;
      --left;
      MessageHeader header = stored.header;
      header.kind = kind;
      writer.u32(places.at(of));
      write_header(writer, header);
      writer.u64(now_ns_ - stored.received_ns);  // its age: the receiver's clock differs
      writer.u64(stored.position);
      writer.u64(stored.order_position);
      writer.u32(static_cast<std::uint32_t>(stored.payload.size()));
      writer.bytes(stored.payload);
    };
    storage_->each([&](const Storage::Stored& stored) {
      save_one(stored, stored.writer.get(), stored.header.kind);
      for (const auto& one : stored.unregistered) save_one(stored, one.get(), Kind::unregister);
    });
  }
  if (log_history_) save_history(writer, places);
  clients_.save(writer);
  return state;
}

/// Loads a state. The endpoints of a log's state are those of an earlier life: what they wrote
/// until then is stored in the state, and the log behind the state is replayed.
void TopicCore::load(std::span<const std::byte> state, StateFrom from) {
  now_ns_ = clock_->now_ns();
  ++endpoint_changes_;
  Reader reader(state);
  const auto check = [&](bool good, const char* what) {
    if (good && reader.good()) return;
    throw Error("topic '" + name_ + "': cannot load the state that " +
                (from == StateFrom::log ? "its log begins with: " : "another member sent: ") +
                what + "; do all members use the same release?");
  };
  check(reader.u32() == kStateVersion, "it is of another version");
  type_text_ = reader.text();
  check(type_text_.size() <= kMaxTypeTextBytes, "its type is too long");
  beginning_ = reader.u64();
  position_ = reader.u64();
  std::vector<std::shared_ptr<RemoteWriter>> writers;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    auto writer = std::make_shared<RemoteWriter>();
    writer->member = interned(reader.text());
    writer->number = reader.u16();
    const std::uint16_t flags = reader.u16();
    Announcement announcement = read_announcement(reader, true);
    check(writer->number < kMaxTopicEndpoints, "a writer's number is too large");
    writer->qos = announcement.writer_qos;
    writer->type_text = std::move(announcement.type_text);
    writer->refused = (flags & 1U) != 0;
    writer->heard_ns = now_ns_;
    const auto member = members_.find(writer->member);
    if (from == StateFrom::log && (flags & 2U) == 0)
      replayed_[{std::string(writer->member), writer->number}] = writer;
    // A member can be gone for the receiver, and not yet for the sender. The members of a log's
    // state go when the log has been replayed.
    writer->gone = (flags & 2U) != 0 || (from == StateFrom::member && member == members_.end());
    if (!writer->gone && from == StateFrom::member) {
      auto& of_member = member->second.writers;
      if (of_member.size() <= writer->number) of_member.resize(std::size_t{writer->number} + 1);
      of_member[writer->number] = writer;
    }
    writers.push_back(std::move(writer));
  }
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const std::string name = reader.text();
    const std::uint16_t number = reader.u16();
    const bool refused = reader.u16() != 0;
    Announcement announcement = read_announcement(reader, false);
    const auto member = members_.find(name);
    if (from == StateFrom::member && member != members_.end())
      member->second.readers[number] = {.number = number,
                                        .qos = announcement.reader_qos,
                                        .type_text = std::move(announcement.type_text),
                                        .refused = refused};
  }
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const std::uint32_t place = reader.u32();
    const auto header = read_header(reader.bytes(kHeaderBytes));
    const std::uint64_t age_ns = reader.u64();
    const std::uint64_t position = reader.u64();
    const std::uint64_t order_position = reader.u64();
    const auto payload = reader.bytes(reader.u32());
    check(place < writers.size() && header && is_data(header->kind), "a stored sample is none");
    if (!storage_) continue;
    storage_->add({.header = *header,
                   .payload = payload,
                   .writer = writers[place].get(),
                   .received_ns = now_ns_ - std::min(age_ns, now_ns_),
                   .position = position,
                   .order_position = order_position},
                  writers[place]);
  }
  check(!log_history_ || load_history(reader, writers), "its places in the log are none");
  check(clients_.load(reader), "its clients are too many");
  check(true, "it ends too early");
  due_ns_ = 0;
}

/// Replays a message of the log, when all members begin again: the endpoints of that time are gone,
/// and what they wrote is stored.
void TopicCore::replay(const multicast::Logged& logged) {
  auto header = read_header(logged.message);
  if (!header) {
    ++counters.malformed;
    return;
  }
  now_ns_ = clock_->now_ns();
  auto payload = logged.message.subspan(kHeaderBytes);
  Reader reader(payload);
  if (header->kind == Kind::announce_reader || header->kind == Kind::announce_writer)
    begin(logged.sender, *header);
  if (header->kind == Kind::announce_reader) {
    static_cast<void>(takes_type(read_announcement(reader, false).type_text));
    return;
  }
  const std::pair<std::string, std::uint16_t> id{std::string(logged.sender), header->endpoint};
  if (header->kind == Kind::announce_writer) {
    const Announcement announcement = read_announcement(reader, true);
    if (const auto before = replayed_.find(id); before != replayed_.end())
      before->second->gone = true;
    replayed_[id] = std::make_shared<RemoteWriter>(
        RemoteWriter{.member = interned(logged.sender),
                     .number = header->endpoint,
                     .qos = announcement.writer_qos,
                     .type_text = announcement.type_text,
                     .refused = !takes_type(announcement.type_text)});
    if (log_history_) log_history_->announce(logged.record, replayed_[id]);
    return;
  }
  const auto writer = replayed_.find(id);
  const bool known = writer != replayed_.end() && !writer->second->refused;
  if (!is_data(header->kind)) return;
  if (!known || !is_new(*header, payload)) {
    if (log_history_) log_history_->pass_over(logged.record);
    return;
  }
  const bool is_sample = header->kind != Kind::unregister;
  if (is_sample) ++position_;
  if (storage_)
    storage_->add({.header = *header,
                   .payload = payload,
                   .writer = writer->second.get(),
                   .received_ns = now_ns_,
                   .position = position_},
                  writer->second);
  if (log_history_ && is_sample) note_in_log(*header, payload.size(), *writer->second);
}

}  // namespace dunlin::pubsub
