#include "pubsub/wire.hpp"

#include <cstring>

#include <dunlin/pubsub/limits.hpp>

namespace dunlin::pubsub {
namespace {

template <class Enum>
[[nodiscard]] bool read_enum(Reader& reader, Enum& to, Enum most) {
  const std::uint32_t value = reader.u32();
  if (value > static_cast<std::uint32_t>(most)) return false;
  to = static_cast<Enum>(value);
  return true;
}
template <class Enum>
void write_enum(Writer& writer, Enum value) {
  writer.u32(static_cast<std::uint32_t>(value));
}

}  // namespace

std::optional<MessageHeader> read_header(std::span<const std::byte> message) noexcept {
  if (message.size() < kHeaderBytes) return std::nullopt;
  MessageHeader header;
  std::memcpy(&header, message.data(), kHeaderBytes);
  const auto kind = static_cast<std::uint8_t>(header.kind);
  const bool known = (kind >= static_cast<std::uint8_t>(Kind::sample) &&
                      kind <= static_cast<std::uint8_t>(Kind::alive)) ||
                     (kind >= static_cast<std::uint8_t>(Kind::announce_writer) &&
                      kind <= static_cast<std::uint8_t>(Kind::declare_topic));
  const unsigned flags = is_data(header.kind) ? kXcdrFlag | kClientFlag : kXcdrFlag;
  if (!known || (header.flags & ~flags) != 0 || header.endpoint >= kMaxTopicEndpoints)
    return std::nullopt;
  return header;
}

std::optional<ClientStamp> read_stamp(std::span<const std::byte> payload) noexcept {
  if (payload.size() < kStampBytes) return std::nullopt;
  ClientStamp stamp;
  std::memcpy(&stamp, payload.data(), kStampBytes);
  if (stamp.number == 0) return std::nullopt;
  return stamp;
}

void write(Writer& writer, const Announcement& announcement) {
  writer.text(announcement.type_text);
  if (announcement.writes) {
    const DataWriterQos& qos = announcement.writer_qos;
    write_enum(writer, qos.reliability.kind);
    writer.u64(qos.deadline.period_ns);
    write_enum(writer, qos.liveliness.kind);
    writer.u64(qos.liveliness.lease_ns);
    writer.u64(qos.lifespan.duration_ns);
    write_enum(writer, qos.ownership.kind);
    writer.u32(qos.ownership.strength);
  } else {
    const DataReaderQos& qos = announcement.reader_qos;
    write_enum(writer, qos.reliability.kind);
    write_enum(writer, qos.durability.kind);
    writer.u64(qos.deadline.period_ns);
    write_enum(writer, qos.liveliness.kind);
    writer.u64(qos.liveliness.lease_ns);
    write_enum(writer, qos.ownership.kind);
  }
}

/// Reads an announcement. One that cannot be read has no type: no topic takes it.
Announcement read_announcement(Reader& reader, bool writes) {
  Announcement announcement{.writes = writes, .type_text = reader.text()};
  bool known = announcement.type_text.size() <= kMaxTypeTextBytes;
  if (writes) {
    DataWriterQos& qos = announcement.writer_qos;
    known &= read_enum(reader, qos.reliability.kind, Reliability::Kind::reliable);
    qos.deadline.period_ns = reader.u64();
    known &= read_enum(reader, qos.liveliness.kind, Liveliness::Kind::manual_by_topic);
    qos.liveliness.lease_ns = reader.u64();
    qos.lifespan.duration_ns = reader.u64();
    known &= read_enum(reader, qos.ownership.kind, Ownership::Kind::exclusive);
    qos.ownership.strength = reader.u32();
  } else {
    DataReaderQos& qos = announcement.reader_qos;
    known &= read_enum(reader, qos.reliability.kind, Reliability::Kind::reliable);
    known &= read_enum(reader, qos.durability.kind, Durability::Kind::persistent);
    qos.deadline.period_ns = reader.u64();
    known &= read_enum(reader, qos.liveliness.kind, Liveliness::Kind::manual_by_topic);
    qos.liveliness.lease_ns = reader.u64();
    known &= read_enum(reader, qos.ownership.kind, Ownership::Kind::either);
  }
  if (!known || !reader.good()) announcement.type_text.clear();
  return announcement;
}

std::vector<std::byte> make_message(const MessageHeader& header, const Announcement* announcement) {
  std::vector<std::byte> message(kHeaderBytes);
  std::memcpy(message.data(), &header, kHeaderBytes);
  Writer writer(message);
  if (announcement != nullptr) write(writer, *announcement);
  return message;
}

}  // namespace dunlin::pubsub
