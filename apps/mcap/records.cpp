#include "mcap/records.hpp"

#include <tuple>
#include <type_traits>
#include <utility>

#include <zlib.h>

#include "fabric/bytes.hpp"

namespace dunlin::app::mcap {
namespace {

/// The fields of a record in their order, but for the bytes at the end of Message and Chunk.
template <class T>
constexpr auto fields_of() {
  if constexpr (std::is_same_v<T, Schema>)
    return std::tuple(&T::id, &T::name, &T::encoding, &T::data);
  else if constexpr (std::is_same_v<T, Channel>)
    return std::tuple(&T::id, &T::schema, &T::topic, &T::encoding, &T::metadata);
  else if constexpr (std::is_same_v<T, Message>)
    return std::tuple(&T::channel, &T::sequence, &T::log_ns, &T::publish_ns);
  else if constexpr (std::is_same_v<T, Chunk>)
    return std::tuple(&T::start_ns, &T::end_ns, &T::bytes, &T::crc, &T::compression);
  else if constexpr (std::is_same_v<T, ChunkIndex>)
    return std::tuple(&T::start_ns, &T::end_ns, &T::offset, &T::length, &T::message_indexes,
                      &T::message_index_bytes, &T::compression, &T::compressed_bytes, &T::bytes);
  else if constexpr (std::is_same_v<T, Statistics>)
    return std::tuple(&T::messages, &T::schemas, &T::channels, &T::attachments, &T::metadata,
                      &T::chunks, &T::start_ns, &T::end_ns, &T::messages_of);
  else
    return std::tuple(&T::summary_start, &T::summary_offset_start, &T::summary_crc);
}

// --- a field -------------------------------------------------------------------------------------

bool read_field(Reader& from, std::uint16_t& to) { return to = from.u16(), from.good(); }
bool read_field(Reader& from, std::uint32_t& to) { return to = from.u32(), from.good(); }
bool read_field(Reader& from, std::uint64_t& to) { return to = from.u64(), from.good(); }
bool read_field(Reader& from, std::string& to) { return to = from.text(), from.good(); }
/// A map has its number of bytes before it.
template <class Key, class Value>
bool read_field(Reader& from, std::map<Key, Value>& to) {
  Bytes rest = from.bytes(from.u32());
  while (!rest.empty()) {
    Reader entry(rest);
    Key key{};
    if (!read_field(entry, key) || !read_field(entry, to[std::move(key)])) return false;
    rest = entry.rest();
  }
  return from.good();
}

void write_field(Writer& to, std::uint16_t value) { to.u16(value); }
void write_field(Writer& to, std::uint32_t value) { to.u32(value); }
void write_field(Writer& to, std::uint64_t value) { to.u64(value); }
void write_field(Writer& to, const std::string& value) { to.text(value); }
template <class Key, class Value>
void write_field(Writer& to, const std::map<Key, Value>& value) {
  Buffer bytes;
  Writer entries(bytes);
  for (const auto& [key, one] : value) {
    write_field(entries, key);
    write_field(entries, one);
  }
  to.u32(static_cast<std::uint32_t>(bytes.size()));
  to.bytes(bytes);
}

// --- a record ------------------------------------------------------------------------------------

/// False if there are too few bytes.
template <class T>
bool read_fields(Reader& from, T& record) {
  return std::apply([&](auto... field) { return (read_field(from, record.*field) && ...); },
                    fields_of<T>());
}

template <class T>
std::optional<T> read_whole(Bytes content) {
  Reader from(content);
  std::optional<T> record(std::in_place);
  if (!read_fields(from, *record)) record.reset();
  return record;
}

template <class T>
void write_fields(Writer& to, const T& record) {
  std::apply([&](auto... field) { (write_field(to, record.*field), ...); }, fields_of<T>());
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

template <class T>
void add_whole(Buffer& to, Op op, const T& record) {
  add_record(to, op, [&](Writer& writer) { write_fields(writer, record); });
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

std::optional<Schema> read_schema(Bytes content) { return read_whole<Schema>(content); }
std::optional<Channel> read_channel(Bytes content) { return read_whole<Channel>(content); }
std::optional<ChunkIndex> read_chunk_index(Bytes content) {
  return read_whole<ChunkIndex>(content);
}
std::optional<Statistics> read_statistics(Bytes content) { return read_whole<Statistics>(content); }
std::optional<Footer> read_footer(Bytes content) { return read_whole<Footer>(content); }

std::optional<Message> read_message(Bytes content) {
  Reader from(content);
  Message message;
  if (!read_fields(from, message)) return std::nullopt;
  message.data = from.rest();
  return message;
}

std::optional<Chunk> read_chunk(Bytes content) {
  Reader from(content);
  Chunk chunk;
  if (!read_fields(from, chunk)) return std::nullopt;
  chunk.records = from.bytes(from.u64());
  return from.good() ? std::optional(std::move(chunk)) : std::nullopt;
}

// --- writing -------------------------------------------------------------------------------------

void add_header(Buffer& to, const std::string& profile, const std::string& library) {
  add_record(to, Op::header, [&](Writer& writer) {
    writer.text(profile);
    writer.text(library);
  });
}

void add_schema(Buffer& to, const Schema& schema) { add_whole(to, Op::schema, schema); }
void add_channel(Buffer& to, const Channel& channel) { add_whole(to, Op::channel, channel); }
void add_chunk_index(Buffer& to, const ChunkIndex& index) { add_whole(to, Op::chunk_index, index); }
void add_statistics(Buffer& to, const Statistics& statistics) {
  add_whole(to, Op::statistics, statistics);
}

void add_message(Buffer& to, const Message& message) {
  add_record(to, Op::message, [&](Writer& writer) {
    write_fields(writer, message);
    writer.bytes(message.data);
  });
}

void add_chunk(Buffer& to, const Chunk& chunk) {
  add_record(to, Op::chunk, [&](Writer& writer) {
    write_fields(writer, chunk);
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
  const std::uint32_t of_summary = std::exchange(footer.summary_crc, 0);
  add_whole(to, Op::footer, footer);
  to.resize(to.size() - sizeof footer.summary_crc);
  const std::uint32_t crc = crc32_of(Bytes(to).subspan(begin), of_summary);
  Writer(to).u32(crc);
}

}  // namespace dunlin::app::mcap
