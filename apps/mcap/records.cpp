#include "mcap/records.hpp"

#include <utility>

#include <zlib.h>

#include "fabric/bytes.hpp"

namespace dunlin::app::mcap {
namespace {

/// Calls `entry(reader)` for each entry of a map or array, which has its bytes before it.
template <class Entry>
bool read_entries(Reader& from, const Entry& entry) {
  Bytes rest = from.bytes(from.u32());
  if (!from.good()) return false;
  Reader entries(rest);
  while (!rest.empty()) {
    entry(entries);
    if (!entries.good()) return false;
    rest = Reader(entries).rest();
  }
  return true;
}

template <class T>
std::optional<T> if_good(const Reader& from, T value) {
  if (!from.good()) return std::nullopt;
  return value;
}

/// A record whose content `fill(writer)` writes.
template <class Fill>
void add_record(Buffer& to, Op op, const Fill& fill) {
  to.push_back(static_cast<std::byte>(op));
  const std::size_t length_at = to.size();
  Writer writer(to);
  writer.u64(0);
  const std::size_t begin = to.size();
  fill(writer);
  const std::uint64_t length = to.size() - begin;
  for (std::size_t i = 0; i < sizeof length; ++i)
    to[length_at + i] = static_cast<std::byte>(length >> (8 * i));
}

/// What `fill(writer)` writes, behind its number of bytes.
template <class Fill>
void add_entries(Writer& writer, const Fill& fill) {
  Buffer bytes;
  Writer entries(bytes);
  fill(entries);
  writer.u32(static_cast<std::uint32_t>(bytes.size()));
  writer.bytes(bytes);
}

}  // namespace

std::uint32_t crc32_of(Bytes bytes, std::uint32_t before) noexcept {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint64_t content_bytes(Bytes head) { return Reader(head.subspan(1)).u64(); }

std::optional<Record> take_record(Bytes& from) {
  if (from.size() < kRecordHeadBytes) return std::nullopt;
  const std::uint64_t length = content_bytes(from.first(kRecordHeadBytes));
  if (length > from.size() - kRecordHeadBytes) return std::nullopt;
  const Record record{.op = static_cast<Op>(from[0]),
                      .content = from.subspan(kRecordHeadBytes, length)};
  from = from.subspan(kRecordHeadBytes + length);
  return record;
}

// --- reading -------------------------------------------------------------------------------------

std::optional<Schema> read_schema(Bytes content) {
  Reader from(content);
  Schema schema{.id = from.u16()};
  schema.name = from.text();
  schema.encoding = from.text();
  schema.data = from.text();
  return if_good(from, std::move(schema));
}

std::optional<Channel> read_channel(Bytes content) {
  Reader from(content);
  Channel channel{.id = from.u16(), .schema = from.u16()};
  channel.topic = from.text();
  channel.encoding = from.text();
  const bool good = read_entries(from, [&](Reader& entry) {
    std::string key = entry.text();
    channel.metadata[std::move(key)] = entry.text();
  });
  if (!good) return std::nullopt;
  return channel;
}

std::optional<Message> read_message(Bytes content) {
  Reader from(content);
  Message message{.channel = from.u16(),
                  .sequence = from.u32(),
                  .log_ns = from.u64(),
                  .publish_ns = from.u64()};
  message.data = from.rest();
  return if_good(from, message);
}

std::optional<Chunk> read_chunk(Bytes content) {
  Reader from(content);
  Chunk chunk{.start_ns = from.u64(), .end_ns = from.u64(), .bytes = from.u64(), .crc = from.u32()};
  chunk.compression = from.text();
  chunk.records = from.bytes(from.u64());
  return if_good(from, std::move(chunk));
}

std::optional<ChunkIndex> read_chunk_index(Bytes content) {
  Reader from(content);
  ChunkIndex index{
      .start_ns = from.u64(), .end_ns = from.u64(), .offset = from.u64(), .length = from.u64()};
  const bool good = read_entries(from, [&](Reader& entry) {
    const std::uint16_t channel = entry.u16();
    index.message_indexes[channel] = entry.u64();
  });
  index.message_index_bytes = from.u64();
  index.compression = from.text();
  index.compressed_bytes = from.u64();
  index.bytes = from.u64();
  if (!good) return std::nullopt;
  return if_good(from, std::move(index));
}

std::optional<Statistics> read_statistics(Bytes content) {
  Reader from(content);
  Statistics statistics{.messages = from.u64(),
                        .schemas = from.u16(),
                        .channels = from.u32(),
                        .attachments = from.u32(),
                        .metadata = from.u32(),
                        .chunks = from.u32(),
                        .start_ns = from.u64(),
                        .end_ns = from.u64()};
  const bool good = read_entries(from, [&](Reader& entry) {
    const std::uint16_t channel = entry.u16();
    statistics.messages_of[channel] = entry.u64();
  });
  if (!good) return std::nullopt;
  return statistics;
}

std::optional<Footer> read_footer(Bytes content) {
  Reader from(content);
  const Footer footer{
      .summary_start = from.u64(), .summary_offset_start = from.u64(), .summary_crc = from.u32()};
  return if_good(from, footer);
}

std::optional<std::uint32_t> read_data_end(Bytes content) {
  Reader from(content);
  const std::uint32_t crc = from.u32();
  return if_good(from, crc);
}

// --- writing -------------------------------------------------------------------------------------

void add_header(Buffer& to, const std::string& profile, const std::string& library) {
  add_record(to, Op::header, [&](Writer& writer) {
    writer.text(profile);
    writer.text(library);
  });
}

void add_schema(Buffer& to, const Schema& schema) {
  add_record(to, Op::schema, [&](Writer& writer) {
    writer.u16(schema.id);
    writer.text(schema.name);
    writer.text(schema.encoding);
    writer.text(schema.data);
  });
}

void add_channel(Buffer& to, const Channel& channel) {
  add_record(to, Op::channel, [&](Writer& writer) {
    writer.u16(channel.id);
    writer.u16(channel.schema);
    writer.text(channel.topic);
    writer.text(channel.encoding);
    add_entries(writer, [&](Writer& entries) {
      for (const auto& [key, value] : channel.metadata) {
        entries.text(key);
        entries.text(value);
      }
    });
  });
}

void add_message(Buffer& to, const Message& message) {
  add_record(to, Op::message, [&](Writer& writer) {
    writer.u16(message.channel);
    writer.u32(message.sequence);
    writer.u64(message.log_ns);
    writer.u64(message.publish_ns);
    writer.bytes(message.data);
  });
}

void add_chunk(Buffer& to, const Chunk& chunk) {
  add_record(to, Op::chunk, [&](Writer& writer) {
    writer.u64(chunk.start_ns);
    writer.u64(chunk.end_ns);
    writer.u64(chunk.bytes);
    writer.u32(chunk.crc);
    writer.text(chunk.compression);
    writer.u64(chunk.records.size());
    writer.bytes(chunk.records);
  });
}

void add_message_index(Buffer& to, std::uint16_t channel, const IndexEntries& entries) {
  add_record(to, Op::message_index, [&](Writer& writer) {
    writer.u16(channel);
    writer.u32(static_cast<std::uint32_t>(entries.size() * 16));
    for (const auto& [log_ns, offset] : entries) {
      writer.u64(log_ns);
      writer.u64(offset);
    }
  });
}

void add_chunk_index(Buffer& to, const ChunkIndex& index) {
  add_record(to, Op::chunk_index, [&](Writer& writer) {
    writer.u64(index.start_ns);
    writer.u64(index.end_ns);
    writer.u64(index.offset);
    writer.u64(index.length);
    add_entries(writer, [&](Writer& entries) {
      for (const auto& [channel, offset] : index.message_indexes) {
        entries.u16(channel);
        entries.u64(offset);
      }
    });
    writer.u64(index.message_index_bytes);
    writer.text(index.compression);
    writer.u64(index.compressed_bytes);
    writer.u64(index.bytes);
  });
}

void add_statistics(Buffer& to, const Statistics& statistics) {
  add_record(to, Op::statistics, [&](Writer& writer) {
    writer.u64(statistics.messages);
    writer.u16(statistics.schemas);
    writer.u32(statistics.channels);
    writer.u32(statistics.attachments);
    writer.u32(statistics.metadata);
    writer.u32(statistics.chunks);
    writer.u64(statistics.start_ns);
    writer.u64(statistics.end_ns);
    add_entries(writer, [&](Writer& entries) {
      for (const auto& [channel, messages] : statistics.messages_of) {
        entries.u16(channel);
        entries.u64(messages);
      }
    });
  });
}

void add_summary_offset(Buffer& to, Op group, std::uint64_t start, std::uint64_t length) {
  add_record(to, Op::summary_offset, [&](Writer& writer) {
    const auto op = static_cast<std::byte>(group);
    writer.bytes(Bytes(&op, 1));
    writer.u64(start);
    writer.u64(length);
  });
}

void add_data_end(Buffer& to, std::uint32_t crc) {
  add_record(to, Op::data_end, [&](Writer& writer) { writer.u32(crc); });
}

void add_footer(Buffer& to, Footer footer) {
  const std::size_t begin = to.size();
  add_record(to, Op::footer, [&](Writer& writer) {
    writer.u64(footer.summary_start);
    writer.u64(footer.summary_offset_start);
    writer.u32(0);
  });
  const Bytes own = Bytes(to).subspan(begin, to.size() - begin - sizeof(std::uint32_t));
  to.resize(to.size() - sizeof(std::uint32_t));
  const std::uint32_t crc = crc32_of(own, footer.summary_crc);
  Writer(to).u32(crc);
}

}  // namespace dunlin::app::mcap
