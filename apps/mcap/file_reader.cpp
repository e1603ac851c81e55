#include "mcap/file_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
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
constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;  // of records outside of chunks

bool is_magic(Bytes bytes) {
  return bytes.size() == kMagicBytes && std::memcmp(bytes.data(), kMagic.data(), kMagicBytes) == 0;
}

}  // namespace

struct FileReader::Loaded {
  struct Entry {
    std::uint64_t log_ns;
    std::uint64_t at;  // of the message's content
    std::uint64_t bytes;
  };
  std::size_t number = 0;  // of the extent
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
  file_ = Descriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file_ || fstat(file_.get(), &status) != 0)
    throw BadInput(fmt::format("{}: cannot read it: {}", in_quotes(path_), error_text(errno)));
  if (!S_ISREG(status.st_mode))
    throw BadInput(fmt::format("{}: it is no regular file", in_quotes(path_)));
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (!is_magic(read(0, std::min<std::uint64_t>(size_, kMagicBytes))))
    damaged(0,
            "this is no MCAP file: it does not begin with the magic bytes 89 4d 43 41 50 30 0d "
            "0a");
  Footer footer;
  const bool ended = has_end(footer);
  if (!ended || !read_summary(footer)) scan(ended);
  std::ranges::stable_sort(extents_, {}, &Extent::start_ns);
}

FileReader::~FileReader() = default;

void FileReader::damaged(std::uint64_t offset, const std::string& what) const {
  throw BadInput(fmt::format("{}, offset {}: {}", in_quotes(path_), offset, what));
}

Buffer FileReader::read(std::uint64_t offset, std::uint64_t length) const {
  Buffer bytes(length);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(file_.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) damaged(offset + done, fmt::format("cannot read it: {}", error_text(errno)));
    if (got == 0) damaged(offset + done, "the file has become shorter while it is read");
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

/// False: there is none that says where all messages are.
bool FileReader::read_summary(const Footer& footer) {
  if (footer.summary_start == 0) return false;
  const std::uint64_t end = size_ - kTailBytes;
  if (footer.summary_start < kMagicBytes || footer.summary_start > end)
    damaged(end, fmt::format("the footer says that the summary begins at offset {}",
                             footer.summary_start));
  const std::uint64_t length = end - footer.summary_start;
  if (length > kMaxSummaryBytes)
    damaged(footer.summary_start,
            fmt::format("the summary has {} bytes; {} can be read (kMaxSummaryBytes)", length,
                        kMaxSummaryBytes));
  // With the footer but its last field, over which the CRC goes, too.
  const Buffer bytes =
      read(footer.summary_start, length + kRecordHeadBytes + kFooterBytes - sizeof(std::uint32_t));
  if (footer.summary_crc != 0 && crc32_of(bytes) != footer.summary_crc)
    damaged(footer.summary_start, "the CRC of the summary is wrong");
  Bytes rest = Bytes(bytes).first(length);
  bool counted = false;
  while (!rest.empty()) {
    const std::uint64_t offset = footer.summary_start + (length - rest.size());
    const auto record = take_record(rest);
    if (!record) damaged(offset, "a record of the summary is longer than the summary");
    if (record->op == Op::chunk_index) {
      const auto index = read_chunk_index(record->content);
      if (!index || index->offset < kMagicBytes || index->length < kRecordHeadBytes ||
          index->offset > footer.summary_start ||
          index->length > footer.summary_start - index->offset)
        damaged(offset, "the index of a chunk is damaged");
      extents_.push_back({.offset = index->offset,
                          .length = index->length,
                          .start_ns = index->start_ns,
                          .end_ns = index->end_ns});
    } else if (record->op == Op::statistics) {
      const auto statistics = read_statistics(record->content);
      if (!statistics) damaged(offset, "the statistics are damaged");
      statistics_ = *statistics;
      counted = true;
    } else {
      learn(*record, offset);
    }
  }
  const bool whole = counted && (statistics_.messages == 0 || !extents_.empty()) &&
                     (statistics_.messages == 0 || !statistics_.messages_of.empty());
  if (whole) {
    const Buffer head =
        read(kMagicBytes, std::min<std::uint64_t>(size_ - kMagicBytes, kRecordHeadBytes + 4096));
    Bytes front(head);
    if (const auto record = take_record(front)) learn(*record, kMagicBytes);
    return true;
  }
  statistics_ = {};
  extents_.clear();
  return false;
}

/// Reads all records, and all chunks.
void FileReader::scan(bool ended) {
  std::uint64_t offset = kMagicBytes;
  const std::uint64_t end = ended ? size_ - kTailBytes : size_;
  Extent run{.chunk = false};
  bool data_ended = false;
  while (offset < end && !data_ended) {
    const bool has_head = end - offset >= kRecordHeadBytes;
    const Buffer head = has_head ? read(offset, kRecordHeadBytes) : Buffer();
    const std::uint64_t length = has_head ? content_bytes(head) : 0;
    if (!has_head || length > end - offset - kRecordHeadBytes) {
      const std::string what =
          has_head
              ? fmt::format("a record of kind {} has {} bytes, and {} are left",
                            std::to_integer<int>(head[0]), length, end - offset - kRecordHeadBytes)
              : fmt::format("a record has {} bytes", end - offset);
      if (ended) damaged(offset, what);
      break;
    }
    const auto op = static_cast<Op>(head[0]);
    const std::uint64_t whole = kRecordHeadBytes + length;
    if (op == Op::chunk) {
      end_run(run);
      Extent extent{.offset = offset, .length = whole};
      const auto loaded = load(extent);
      for (const auto& entry : loaded->entries)
        count(*read_message(Bytes(loaded->bytes).subspan(entry.at, entry.bytes)));
      if (!loaded->entries.empty()) {
        extent.start_ns = loaded->entries.front().log_ns;
        extent.end_ns = loaded->entries.back().log_ns;
        extents_.push_back(extent);
      }
    } else if (op == Op::message || op == Op::schema || op == Op::channel || op == Op::header) {
      if (length > kMaxChunkBytes)
        damaged(offset, fmt::format("a record has {} bytes; {} can be read (kMaxChunkBytes)",
                                    length, kMaxChunkBytes));
      const Buffer bytes = read(offset, whole);
      Bytes rest(bytes);
      scan_loose(run, *take_record(rest), offset);
    }
    data_ended = op == Op::data_end;
    offset += whole;
  }
  end_run(run);
  if (!ended)
    warning_ = fmt::format(
        "{} has no end, as if its recorder was killed: what lies before offset {} of {} is read, "
        "{} messages",
        in_quotes(path_), offset, size_, statistics_.messages);
}

/// Messages outside of chunks are read by runs, as if they were a chunk.
void FileReader::scan_loose(Extent& run, const Record& record, std::uint64_t offset) {
  if (record.op != Op::message) {
    learn(record, offset);
    return;
  }
  const auto message = read_message(record.content);
  if (!message || !channels_.contains(message->channel))
    damaged(offset, "a message is too short, or of a channel that is not there");
  count(*message);
  const std::uint64_t bytes = kRecordHeadBytes + record.content.size();
  if (run.length == 0) {
    run = {.offset = offset, .start_ns = message->log_ns, .chunk = false};
  }
  run.start_ns = std::min(run.start_ns, message->log_ns);
  run.end_ns = std::max(run.end_ns, message->log_ns);
  run.length = offset + bytes - run.offset;
  if (run.length >= kRunBytes) end_run(run);
}

void FileReader::end_run(Extent& run) {
  if (run.length > 0) extents_.push_back(run);
  run = {.chunk = false};
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
  if (!schema) damaged(offset, "a schema is too short for its fields");
  if (schema->id == 0) return;
  if (const auto [at, is_new] = schemas_.emplace(schema->id, *schema);
      !is_new && at->second != *schema)
    damaged(offset, fmt::format("there are two different schemas with the id {}", schema->id));
}

void FileReader::learn_channel(Bytes content, std::uint64_t offset) {
  const auto channel = read_channel(content);
  if (!channel) damaged(offset, "a channel is too short for its fields");
  if (channel->schema != 0 && !schemas_.contains(channel->schema))
    damaged(offset, fmt::format("channel {} has schema {}, which is not there", channel->id,
                                channel->schema));
  if (const auto [at, is_new] = channels_.emplace(channel->id, *channel);
      !is_new && at->second != *channel)
    damaged(offset, fmt::format("there are two different channels with the id {}", channel->id));
}

/// Puts the records of a chunk in the place of its own one.
void FileReader::open_chunk(Buffer& bytes, const Extent& extent) const {
  Bytes rest(bytes);
  const auto record = take_record(rest);
  if (!record || record->op != Op::chunk || !rest.empty())
    damaged(extent.offset, "there is no chunk where the summary says that there is one");
  const auto chunk = read_chunk(record->content);
  if (!chunk) damaged(extent.offset, "a chunk is too short for its fields");
  Buffer records;
  const std::string why = decompress(chunk->compression, chunk->records, chunk->bytes, records);
  if (!why.empty()) damaged(extent.offset, "a chunk cannot be read: " + why);
  if (chunk->crc != 0 && crc32_of(records) != chunk->crc)
    damaged(extent.offset, "the CRC of a chunk is wrong");
  bytes = std::move(records);
}

std::unique_ptr<FileReader::Loaded> FileReader::load(const Extent& extent) {
  if (extent.length > kMaxChunkBytes)
    damaged(extent.offset, fmt::format("a chunk has {} bytes; {} can be read (kMaxChunkBytes)",
                                       extent.length, kMaxChunkBytes));
  auto loaded = std::make_unique<Loaded>();
  loaded->bytes = read(extent.offset, extent.length);
  if (extent.chunk) open_chunk(loaded->bytes, extent);
  Bytes rest(loaded->bytes);
  while (!rest.empty()) {
    const std::uint64_t at = loaded->bytes.size() - rest.size();
    const auto record = take_record(rest);
    if (!record)
      damaged(extent.offset,
              fmt::format("the record at {} of this chunk is longer than the chunk", at));
    if (record->op != Op::message) {
      learn(*record, extent.offset);
      continue;
    }
    const auto message = read_message(record->content);
    if (!message || !channels_.contains(message->channel))
      damaged(extent.offset, fmt::format("the message at {} of this chunk is too short, or of a "
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
    auto loaded = load(extent);
    loaded->number = next_extent_;
    while (loaded->next < loaded->entries.size() && loaded->entries[loaded->next].log_ns < from_ns_)
      ++loaded->next;
    loaded_bytes_ += loaded->bytes.size();
    if (loaded_bytes_ > kMaxLoadedBytes)
      damaged(extent.offset, fmt::format("chunks of more than {} bytes (kMaxLoadedBytes) overlap "
                                         "in their times",
                                         kMaxLoadedBytes));
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
