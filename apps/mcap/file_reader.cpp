#include "mcap/file_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.hpp"
#include "fabric/bytes.hpp"
#include "mcap/compression.hpp"
#include "text.hpp"

namespace dunlin::app::mcap {
namespace {

constexpr std::uint64_t kTailBytes = kRecordHeadBytes + kFooterBytes + kMagicBytes;
constexpr std::uint64_t kMostHeaderBytes = 4096;  // a longer header is passed over
constexpr std::size_t kMostWarnings = 20;
constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;  // an extent outside of chunks

/// A part of the file that does not hold what it should. The text names the offset.
class Damage : public std::runtime_error {
 public:
  Damage(std::uint64_t offset, const std::string& what)
      : std::runtime_error(fmt::format("offset {}: {}", offset, what)) {}
};

bool is_magic(Bytes bytes) {
  return bytes.size() == kMagicBytes && std::memcmp(bytes.data(), kMagic.data(), kMagicBytes) == 0;
}

}  // namespace

struct FileReader::Loaded {
  struct Entry {
    std::uint64_t log_ns;
    std::uint64_t at;  // where the message's content begins
    std::uint64_t bytes;
  };
  std::size_t number = 0;  // the extent's
  Buffer bytes = {};
  std::vector<Entry> entries = {};
  std::size_t next = 0;
};

bool FileReader::Later::operator()(const std::unique_ptr<Loaded>& one,
                                   const std::unique_ptr<Loaded>& other) const {
  const std::uint64_t a = one->entries[one->next].log_ns;
  const std::uint64_t b = other->entries[other->next].log_ns;
  return a != b ? a > b : one->number > other->number;
}

FileReader::FileReader(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a FIFO waits for its writer.
  file_ = Descriptor(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file_ || fstat(file_.get(), &status) != 0)
    throw BadInput(fmt::format("{}: cannot read it: {}", in_quotes(path_), error_text(errno)));
  if (!S_ISREG(status.st_mode))
    throw BadInput(fmt::format("{}: it is no regular file", in_quotes(path_)));
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (!is_magic(read(0, std::min<std::uint64_t>(size_, kMagicBytes))))
    throw BadInput(
        fmt::format("{}, offset 0: this is no MCAP file: it does not begin with the "
                    "magic bytes 89 4d 43 41 50 30 0d 0a",
                    in_quotes(path_)));
  Footer footer;
  const bool ended = has_end(footer);
  if (!ended || !read_summary(footer)) scan(ended);
  std::ranges::stable_sort(extents_, {}, &Extent::start_ns);
}

FileReader::~FileReader() = default;

void FileReader::warn(const std::string& text) {
  if (warnings_.size() > kMostWarnings) return;
  if (warnings_.size() == kMostWarnings)
    return warnings_.push_back(in_quotes(path_) + " has more damage, which is not listed");
  warnings_.push_back(fmt::format("{}, {}", in_quotes(path_), text));
}

Buffer FileReader::read(std::uint64_t offset, std::uint64_t length) const {
  Buffer bytes(length);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(file_.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw BadInput(fmt::format(
          "{}, offset {}: {}", in_quotes(path_), offset + done,
          got == 0 ? "the file has become shorter while it is read" : error_text(errno)));
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

/// Whether the file ends as its writer ended it.
bool FileReader::has_end(Footer& footer) const {
  if (size_ < kMagicBytes + kTailBytes) return false;
  const Buffer tail = read(size_ - kTailBytes, kTailBytes);
  Bytes rest(tail);
  const auto record = take_record(rest);
  if (!record || record->op != Op::footer || !is_magic(rest)) return false;
  footer = *read_footer(record->content);
  return true;
}

/// False if there is no summary, or it does not say where all messages are.
bool FileReader::read_summary(const Footer& footer) {
  if (footer.summary_start == 0) return false;
  const std::uint64_t end = size_ - kTailBytes;
  try {
    if (footer.summary_start < kMagicBytes || footer.summary_start > end)
      throw Damage(end, fmt::format("the footer says that the summary begins at offset {}",
                                    footer.summary_start));
    const std::uint64_t length = end - footer.summary_start;
    if (length > kMaxSummaryBytes)
      throw Damage(footer.summary_start,
                   fmt::format("the summary has {} bytes; {} can be read (kMaxSummaryBytes)",
                               length, kMaxSummaryBytes));
    // The CRC goes over the footer, too, but for its last field.
    const Buffer bytes = read(footer.summary_start,
                              length + kRecordHeadBytes + kFooterBytes - sizeof(std::uint32_t));
    if (footer.summary_crc != 0 && crc32_of(bytes) != footer.summary_crc)
      throw Damage(footer.summary_start, "the CRC of the summary is wrong");
    Bytes rest = Bytes(bytes).first(length);
    while (!rest.empty()) {
      const std::uint64_t offset = footer.summary_start + (length - rest.size());
      const auto record = take_record(rest);
      if (!record) throw Damage(offset, "a record of the summary is longer than the summary");
      take_summary_record(*record, offset, footer.summary_start);
    }
    if (is_complete() && is_all_in_chunks(footer.summary_start)) return true;
  } catch (const Damage& damage) {
    warn(fmt::format("{}: the summary is not used, and the whole file is read", damage.what()));
  }
  statistics_ = {};
  extents_.clear();
  schemas_.clear();
  channels_.clear();
  return false;
}

void FileReader::take_summary_record(const Record& record, std::uint64_t offset,
                                     std::uint64_t summary_start) {
  if (record.op == Op::chunk_index) {
    const auto index = read_chunk_index(record.content);
    if (!index || index->offset < kMagicBytes || index->length < kRecordHeadBytes ||
        index->offset > summary_start || index->length > summary_start - index->offset)
      throw Damage(offset, "the index of a chunk is damaged");
    for (const auto& [channel, at] : index->message_indexes) indexed_channels_.insert(channel);
    extents_.push_back({.offset = index->offset,
                        .length = index->length,
                        .index_bytes = index->message_index_bytes,
                        .start_ns = index->start_ns,
                        .end_ns = index->end_ns});
  } else if (record.op == Op::statistics) {
    const auto statistics = read_statistics(record.content);
    if (!statistics) throw Damage(offset, "the statistics are damaged");
    statistics_ = *statistics;
  } else if (record.op == Op::channel) {
    const auto channel = read_channel(record.content);
    if (!channel) throw Damage(offset, "a channel is too short for its fields");
    channels_.emplace(channel->id, *channel);  // its schema may follow, or be in the chunks only
  } else {
    learn(record, offset);
  }
}

/// The format lets a writer leave out any part of the summary.
bool FileReader::is_complete() const {
  std::set<std::uint16_t> used = indexed_channels_;
  for (const auto& [channel, messages] : statistics_.messages_of) used.insert(channel);
  return !used.empty() && std::ranges::all_of(used, [this](std::uint16_t id) {
    return channels_.contains(id) && statistics_.messages_of.contains(id);
  }) && std::ranges::all_of(channels_, [this](const auto& channel) {
    return channel.second.schema == 0 || schemas_.contains(channel.second.schema);
  });
}

/// False if a message or another chunk lies between the chunks that the summary names. Between
/// them, only the heads of records are read.
bool FileReader::is_all_in_chunks(std::uint64_t end) {
  std::ranges::sort(extents_, {}, &Extent::offset);
  std::uint64_t at = kMagicBytes;
  for (std::size_t i = 0; i <= extents_.size(); ++i) {
    const std::uint64_t until = i < extents_.size() ? extents_[i].offset : end;
    while (at < until) {
      if (until - at < kRecordHeadBytes) return false;
      const Buffer head = read(at, kRecordHeadBytes);
      const auto op = static_cast<Op>(head[0]);
      const std::uint64_t length = content_bytes(head);
      if (op == Op::message || op == Op::chunk || length > until - at - kRecordHeadBytes)
        return false;
      if (op == Op::header && length <= kMostHeaderBytes) {
        const Buffer whole = read(at, kRecordHeadBytes + length);
        Bytes rest(whole);
        learn(*take_record(rest), at);
      }
      at += kRecordHeadBytes + length;
    }
    if (at != until) return false;
    if (i == extents_.size()) break;
    const Extent& chunk = extents_[i];
    if (chunk.index_bytes > end - chunk.offset - chunk.length) return false;
    at = chunk.offset + chunk.length + chunk.index_bytes;
  }
  return true;
}

/// Reads all records, and all chunks.
void FileReader::scan(bool ended) {
  std::uint64_t offset = kMagicBytes;
  const std::uint64_t end = ended ? size_ - kTailBytes : size_;
  std::string why;  // the rest is not read
  bool data_ended = false;
  while (offset < end && !data_ended && why.empty()) {
    const std::uint64_t left = end - offset;
    const Buffer head = left < kRecordHeadBytes ? Buffer() : read(offset, kRecordHeadBytes);
    const auto op = head.empty() ? Op{} : static_cast<Op>(head[0]);
    const std::uint64_t length = head.empty() ? 0 : content_bytes(head);
    if (head.empty()) {
      why = fmt::format("a record has {} bytes", left);
    } else if (op == Op{}) {
      why = "there are zeros in place of a record";
    } else if (length > left - kRecordHeadBytes) {
      why = fmt::format("a record of kind {} has {} bytes, and {} are left", static_cast<int>(op),
                        length, left - kRecordHeadBytes);
    } else {
      scan_record(op, {.offset = offset, .length = kRecordHeadBytes + length});
      data_ended = op == Op::data_end;
      offset += kRecordHeadBytes + length;
    }
  }
  end_run();
  if (!why.empty() && ended)
    warn(fmt::format("offset {}: {}: what follows is not read, up to offset {}", offset, why, end));
  if (!ended)
    warnings_.push_back(fmt::format(
        "{} has no end, as if its recorder was killed: what lies before offset {} of {} is read, "
        "{} messages",
        in_quotes(path_), offset, size_, statistics_.messages));
}

/// A record that is damaged is left out.
void FileReader::scan_record(Op op, const Extent& place) {
  try {
    if (op == Op::chunk) return scan_chunk(place);
    if (op != Op::message && op != Op::schema && op != Op::channel && op != Op::header)
      return end_run();
    if (place.length > kMaxChunkBytes)
      throw Damage(place.offset, fmt::format("a record has {} bytes; {} can be read "
                                             "(kMaxChunkBytes)",
                                             place.length, kMaxChunkBytes));
    const Buffer bytes = read(place.offset, place.length);
    Bytes rest(bytes);
    scan_loose(*take_record(rest), place);
  } catch (const Damage& damage) {
    warn(fmt::format("{}: it is left out, {} bytes", damage.what(), place.length));
    end_run();  // load() of a run reads it without gaps
  }
}

void FileReader::scan_chunk(Extent chunk) {
  end_run();
  const auto loaded = load(chunk);
  for (const auto& entry : loaded->entries)
    count(*read_message(Bytes(loaded->bytes).subspan(entry.at, entry.bytes)));
  if (loaded->entries.empty()) return;
  chunk.start_ns = loaded->entries.front().log_ns;
  chunk.end_ns = loaded->entries.back().log_ns;
  extents_.push_back(chunk);
}

/// Messages outside of chunks are read by runs, as if they were a chunk.
void FileReader::scan_loose(const Record& record, const Extent& place) {
  if (record.op != Op::message) return learn(record, place.offset);
  const auto message = read_message(record.content);
  if (!message || !channels_.contains(message->channel))
    throw Damage(place.offset, "a message is too short, or of a channel that is not there");
  count(*message);
  if (run_.length == 0)
    run_ = {.offset = place.offset, .start_ns = message->log_ns, .chunk = false};
  run_.start_ns = std::min(run_.start_ns, message->log_ns);
  run_.end_ns = std::max(run_.end_ns, message->log_ns);
  run_.length = place.offset + place.length - run_.offset;
  if (run_.length >= kRunBytes) end_run();
}

void FileReader::end_run() {
  if (run_.length > 0) extents_.push_back(run_);
  run_ = {};
}

void FileReader::count(const Message& message) {
  Statistics& all = statistics_;
  all.start_ns = all.messages == 0 ? message.log_ns : std::min(all.start_ns, message.log_ns);
  all.end_ns = std::max(all.end_ns, message.log_ns);
  ++all.messages;
  ++all.messages_of[message.channel];
}

void FileReader::learn(const Record& record, std::uint64_t offset) {
  if (record.op == Op::schema) learn_schema(record.content, offset);
  if (record.op == Op::channel) learn_channel(record.content, offset);
  if (record.op == Op::header) {
    Reader from(record.content);
    static_cast<void>(from.text());
    library_ = from.text();
  }
}

void FileReader::learn_schema(Bytes content, std::uint64_t offset) {
  const auto schema = read_schema(content);
  if (!schema) throw Damage(offset, "a schema is too short for its fields");
  if (schema->id == 0) return;
  if (const auto [at, is_new] = schemas_.emplace(schema->id, *schema);
      !is_new && at->second != *schema)
    throw Damage(offset, fmt::format("there are two different schemas with the id {}", schema->id));
}

void FileReader::learn_channel(Bytes content, std::uint64_t offset) {
  const auto channel = read_channel(content);
  if (!channel) throw Damage(offset, "a channel is too short for its fields");
  if (channel->schema != 0 && !schemas_.contains(channel->schema))
    throw Damage(offset, fmt::format("channel {} has schema {}, which is not there", channel->id,
                                     channel->schema));
  if (const auto [at, is_new] = channels_.emplace(channel->id, *channel);
      !is_new && at->second != *channel)
    throw Damage(offset,
                 fmt::format("there are two different channels with the id {}", channel->id));
}

/// Puts the records of a chunk in the place of its own one.
void FileReader::open_chunk(Buffer& bytes, const Extent& extent) {
  Bytes rest(bytes);
  const auto record = take_record(rest);
  if (!record || record->op != Op::chunk || !rest.empty())
    throw Damage(extent.offset, "there is no chunk where the summary says that there is one");
  const auto chunk = read_chunk(record->content);
  if (!chunk) throw Damage(extent.offset, "a chunk is too short for its fields");
  Buffer records;
  const std::string why = decompress(chunk->compression, chunk->records, chunk->bytes, records);
  if (!why.empty()) throw Damage(extent.offset, "a chunk cannot be read: " + why);
  if (chunk->crc != 0 && crc32_of(records) != chunk->crc)
    throw Damage(extent.offset, "the CRC of a chunk is wrong");
  bytes = std::move(records);
}

std::unique_ptr<FileReader::Loaded> FileReader::load(const Extent& extent) {
  if (extent.length > kMaxChunkBytes)
    throw Damage(extent.offset, fmt::format("a chunk has {} bytes; {} can be read (kMaxChunkBytes)",
                                            extent.length, kMaxChunkBytes));
  auto loaded = std::make_unique<Loaded>();
  loaded->bytes = read(extent.offset, extent.length);
  if (extent.chunk) open_chunk(loaded->bytes, extent);
  Bytes rest(loaded->bytes);
  while (!rest.empty()) {
    const std::uint64_t at = loaded->bytes.size() - rest.size();
    const auto record = take_record(rest);
    if (!record)
      throw Damage(extent.offset,
                   fmt::format("the record at {} of this chunk is longer than the chunk", at));
    if (record->op != Op::message) {
      learn(*record, extent.offset);
      continue;
    }
    const auto message = read_message(record->content);
    if (!message || !channels_.contains(message->channel))
      throw Damage(extent.offset,
                   fmt::format("the message at {} of this chunk is too short, or of a "
                               "channel that is not there",
                               at));
    loaded->entries.push_back(
        {.log_ns = message->log_ns, .at = at + kRecordHeadBytes, .bytes = record->content.size()});
  }
  std::ranges::stable_sort(loaded->entries, {}, &Loaded::Entry::log_ns);
  return loaded;
}

void FileReader::rewind(std::uint64_t from_ns) {
  from_ns_ = from_ns;
  next_extent_ = 0;
  loaded_bytes_ = 0;
  current_.reset();
  open_.clear();
}

/// Opens all chunks that may hold what comes first.
void FileReader::open_next() {
  while (next_extent_ < extents_.size()) {
    const Extent& extent = extents_[next_extent_];
    if (!open_.empty()) {
      const Loaded& first = *open_.front();
      if (extent.start_ns > first.entries[first.next].log_ns) return;
    }
    ++next_extent_;
    if (extent.end_ns < from_ns_) continue;
    std::unique_ptr<Loaded> loaded;
    try {
      loaded = load(extent);
    } catch (const Damage& damage) {
      warn(fmt::format("{}: it is left out, {} bytes", damage.what(), extent.length));
      extents_.erase(extents_.begin() + static_cast<std::ptrdiff_t>(--next_extent_));
      continue;
    }
    loaded->number = next_extent_;
    while (loaded->next < loaded->entries.size() && loaded->entries[loaded->next].log_ns < from_ns_)
      ++loaded->next;
    loaded_bytes_ += loaded->bytes.size();
    if (loaded_bytes_ > kMaxLoadedBytes)
      throw BadInput(fmt::format(
          "{}, offset {}: chunks of more than {} bytes (kMaxLoadedBytes) overlap in their times",
          in_quotes(path_), extent.offset, kMaxLoadedBytes));
    keep_open(std::move(loaded));
  }
}

/// If it has a message to give.
void FileReader::keep_open(std::unique_ptr<Loaded> one) {
  if (one->next == one->entries.size()) {
    loaded_bytes_ -= one->bytes.size();
    return;
  }
  open_.push_back(std::move(one));
  std::ranges::push_heap(open_, Later());
}

bool FileReader::next(Message& message) {
  if (current_) keep_open(std::move(current_));
  open_next();
  if (open_.empty()) return false;
  std::ranges::pop_heap(open_, Later());
  current_ = std::move(open_.back());
  open_.pop_back();
  const Loaded::Entry& entry = current_->entries[current_->next++];
  message = *read_message(Bytes(current_->bytes).subspan(entry.at, entry.bytes));
  return true;
}

}  // namespace dunlin::app::mcap
