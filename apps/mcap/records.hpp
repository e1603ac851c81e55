#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The records of MCAP files (docs/formats/mcap.md), as values and as bytes. Pure.
///
/// A `read_...()` takes the content of a record and returns nothing if it is too short for its
/// fields. Further fields behind them are passed over, as the format asks.
namespace dunlin::app::mcap {

using Bytes = std::span<const std::byte>;
using Buffer = std::vector<std::byte>;

inline constexpr std::size_t kMagicBytes = 8;
inline constexpr std::array<unsigned char, kMagicBytes> kMagic{0x89, 'M', 'C',  'A',
                                                               'P',  '0', '\r', '\n'};
inline constexpr std::size_t kRecordHeadBytes = 9;    // the opcode, and the length of the content
inline constexpr std::size_t kMessageHeadBytes = 22;  // the fields before a message's data
inline constexpr std::size_t kFooterBytes = 20;       // the content's length

// Limits of the records that are read, so that no file makes a reader allocate without end.
inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{256} << 20U;  // not compressed
inline constexpr std::uint64_t kMaxLoadedBytes = std::uint64_t{1} << 30U;   // chunks that overlap
inline constexpr std::uint64_t kMaxSummaryBytes = std::uint64_t{1} << 30U;

static_assert(kMaxChunkBytes < kMaxLoadedBytes);
static_assert(kMaxChunkBytes < UINT32_MAX, "a message index counts its bytes in 4");

enum class Op : std::uint8_t {
  header = 1,
  footer = 2,
  schema = 3,
  channel = 4,
  message = 5,
  chunk = 6,
  message_index = 7,
  chunk_index = 8,
  attachment = 9,
  attachment_index = 10,
  statistics = 11,
  metadata = 12,
  metadata_index = 13,
  summary_offset = 14,
  data_end = 15
};

struct Schema {
  std::uint16_t id = 0;
  std::string name = {};
  std::string encoding = {};
  std::string data = {};
  friend bool operator==(const Schema&, const Schema&) = default;
};

struct Channel {
  std::uint16_t id = 0;
  std::uint16_t schema = 0;  // 0: none
  std::string topic = {};
  std::string encoding = {};  // its messages' encoding
  std::map<std::string, std::string> metadata = {};
  friend bool operator==(const Channel&, const Channel&) = default;
};

struct Message {
  std::uint16_t channel = 0;
  std::uint32_t sequence = 0;
  std::uint64_t log_ns = 0;
  std::uint64_t publish_ns = 0;
  Bytes data = {};
};

struct Chunk {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t bytes = 0;  // length before compression
  std::uint32_t crc = 0;    // checksum before compression; 0: not known
  std::string compression = {};
  Bytes records = {};
};

struct ChunkIndex {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t offset = 0;  // where the chunk's record is in the file
  std::uint64_t length = 0;  // the record's, with its head
  std::map<std::uint16_t, std::uint64_t> message_indexes = {};
  std::uint64_t message_index_bytes = 0;
  std::string compression = {};
  std::uint64_t compressed_bytes = 0;
  std::uint64_t bytes = 0;
};

struct Statistics {
  std::uint64_t messages = 0;
  std::uint16_t schemas = 0;
  std::uint32_t channels = 0;
  std::uint32_t attachments = 0;
  std::uint32_t metadata = 0;
  std::uint32_t chunks = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::map<std::uint16_t, std::uint64_t> messages_of = {};  // by channel
};

struct Footer {
  std::uint64_t summary_start = 0;  // 0: there is none
  std::uint64_t summary_offset_start = 0;
  std::uint32_t summary_crc = 0;
};

/// A record as it lies in a file or chunk.
struct Record {
  Op op = Op::header;
  Bytes content = {};
};
/// Takes the record at the beginning off these bytes; nothing if they end before it does.
[[nodiscard]] std::optional<Record> take_record(Bytes& from);
/// The length that the head of a record gives for its content.
[[nodiscard]] std::uint64_t content_bytes(Bytes head);

[[nodiscard]] std::optional<Schema> read_schema(Bytes content);
[[nodiscard]] std::optional<Channel> read_channel(Bytes content);
[[nodiscard]] std::optional<Message> read_message(Bytes content);
[[nodiscard]] std::optional<Chunk> read_chunk(Bytes content);
[[nodiscard]] std::optional<ChunkIndex> read_chunk_index(Bytes content);
[[nodiscard]] std::optional<Statistics> read_statistics(Bytes content);
[[nodiscard]] std::optional<Footer> read_footer(Bytes content);

// Each appends one record.
void add_header(Buffer& to, const std::string& profile, const std::string& library);
void add_schema(Buffer& to, const Schema& schema);
void add_channel(Buffer& to, const Channel& channel);
void add_message(Buffer& to, const Message& message);
void add_chunk(Buffer& to, const Chunk& chunk);
/// `entries`: log time, and offset in the chunk.
using IndexEntries = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
void add_message_index(Buffer& to, std::uint16_t channel, const IndexEntries& entries);
void add_chunk_index(Buffer& to, const ChunkIndex& index);
void add_statistics(Buffer& to, const Statistics& statistics);
void add_summary_offset(Buffer& to, Op group, std::uint64_t start, std::uint64_t length);
void add_data_end(Buffer& to, std::uint32_t crc);
/// `summary_crc`: of the summary up to here, to which this adds the footer's own fields.
void add_footer(Buffer& to, Footer footer);

/// CRC-32 as zlib has it, which goes on from `before`.
[[nodiscard]] std::uint32_t crc32_of(Bytes bytes, std::uint32_t before = 0) noexcept;

}  // namespace dunlin::app::mcap
