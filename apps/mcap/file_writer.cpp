#include "mcap/file_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "command.hpp"
#include "mcap/compression.hpp"
#include "text.hpp"

namespace dunlin::app::mcap {

FileWriter::FileWriter(std::string path, WriterOptions options)
    : path_(std::move(path)), options_(std::move(options)) {
  file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_)
    throw BadInput(
        errno == EEXIST
            ? fmt::format("{}: it is there already; give another name, or remove it",
                          in_quotes(path_))
            : fmt::format("{}: cannot make it: {}", in_quotes(path_), error_text(errno)));
  Buffer begin;
  for (const unsigned char byte : kMagic) begin.push_back(static_cast<std::byte>(byte));
  add_header(begin, {}, options_.library);
  put(begin);
}

void FileWriter::put(Bytes bytes) {
  data_crc_ = crc32_of(bytes, data_crc_);
  offset_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw Error(fmt::format(
          "{}: cannot write it: {}; what was written before can be read up to its last whole chunk",
          in_quotes(path_), error_text(errno)));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::uint16_t FileWriter::add(Schema schema) {
  if (schemas_.size() == UINT16_MAX)
    throw Error(fmt::format("{}: a file has at most {} schemas", in_quotes(path_), UINT16_MAX));
  schema.id = static_cast<std::uint16_t>(schemas_.size() + 1);
  add_schema(chunk_, schema);
  schemas_.push_back(std::move(schema));
  ++statistics_.schemas;
  return schemas_.back().id;
}

std::uint16_t FileWriter::add(Channel channel) {
  if (channels_.size() == UINT16_MAX)
    throw Error(fmt::format("{}: a file has at most {} channels", in_quotes(path_), UINT16_MAX));
  channel.id = static_cast<std::uint16_t>(channels_.size() + 1);
  add_channel(chunk_, channel);
  channels_.push_back(std::move(channel));
  ++statistics_.channels;
  return channels_.back().id;
}

void FileWriter::write(const Message& message) {
  const std::size_t bytes = kRecordHeadBytes + kMessageHeadBytes + message.data.size();
  if (chunk_messages_ > 0 && chunk_.size() + bytes > options_.chunk_bytes) end_chunk();
  const bool first = chunk_messages_++ == 0;
  chunk_start_ns_ = first ? message.log_ns : std::min(chunk_start_ns_, message.log_ns);
  chunk_end_ns_ = first ? message.log_ns : std::max(chunk_end_ns_, message.log_ns);
  entries_[message.channel].emplace_back(message.log_ns, chunk_.size());
  add_message(chunk_, message);
  Statistics& all = statistics_;
  all.start_ns = all.messages == 0 ? message.log_ns : std::min(all.start_ns, message.log_ns);
  all.end_ns = std::max(all.end_ns, message.log_ns);
  ++all.messages;
  ++all.messages_of[message.channel];
}

void FileWriter::end_chunk() {
  if (chunk_messages_ == 0) return;
  ChunkIndex index{.start_ns = chunk_start_ns_,
                   .end_ns = chunk_end_ns_,
                   .offset = offset_,
                   .compression = options_.compresses ? "zstd" : "",
                   .bytes = chunk_.size()};
  Buffer compressed;
  if (options_.compresses) compressed = compress_by_zstd(chunk_);
  const Bytes records = options_.compresses ? Bytes(compressed) : Bytes(chunk_);
  index.compressed_bytes = records.size();
  Buffer out;
  add_chunk(out, {.start_ns = chunk_start_ns_,
                  .end_ns = chunk_end_ns_,
                  .bytes = chunk_.size(),
                  .crc = crc32_of(chunk_),
                  .compression = index.compression,
                  .records = records});
  index.length = out.size();
  for (auto& [channel, entries] : entries_) {
    index.message_indexes[channel] = offset_ + out.size();
    std::ranges::stable_sort(entries, {}, &IndexEntries::value_type::first);
    add_message_index(out, channel, entries);
  }
  index.message_index_bytes = out.size() - index.length;
  put(out);
  chunks_.push_back(std::move(index));
  ++statistics_.chunks;
  chunk_.clear();
  chunk_messages_ = 0;
  entries_.clear();
}

void FileWriter::finish() {
  end_chunk();
  Buffer out;
  add_data_end(out, data_crc_);
  const std::uint64_t summary_start = offset_ + out.size();
  const std::size_t summary_begin = out.size();
  struct Group {
    Op op;
    std::uint64_t start;
    std::uint64_t length;
  };
  std::vector<Group> groups;
  const auto group = [&](Op op, const auto& fill) {
    const std::size_t begin = out.size();
    fill();
    if (out.size() > begin)
      groups.push_back({.op = op, .start = offset_ + begin, .length = out.size() - begin});
  };
  group(Op::schema, [&] {
    for (const Schema& one : schemas_) add_schema(out, one);
  });
  group(Op::channel, [&] {
    for (const Channel& one : channels_) add_channel(out, one);
  });
  group(Op::chunk_index, [&] {
    for (const ChunkIndex& one : chunks_) add_chunk_index(out, one);
  });
  group(Op::statistics, [&] { add_statistics(out, statistics_); });
  const std::uint64_t summary_offset_start = offset_ + out.size();
  for (const Group& one : groups) add_summary_offset(out, one.op, one.start, one.length);
  add_footer(out, {.summary_start = summary_start,
                   .summary_offset_start = summary_offset_start,
                   .summary_crc = crc32_of(Bytes(out).subspan(summary_begin))});
  for (const unsigned char byte : kMagic) out.push_back(static_cast<std::byte>(byte));
  put(out);
}

}  // namespace dunlin::app::mcap
