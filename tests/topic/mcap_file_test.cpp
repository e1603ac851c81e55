#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "command.hpp"
#include "mcap/file_reader.hpp"
#include "mcap/file_writer.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "support/rounds.hpp"

/// MCAP files of our own, whole and damaged.
namespace dunlin::app::mcap {
namespace {

using dunlin::test::contains;
using dunlin::test::OwnDirectory;
using dunlin::test::what_is_thrown_by;

struct Read {
  std::uint16_t channel = 0;
  std::uint32_t sequence = 0;
  std::uint64_t log_ns = 0;
  std::uint64_t publish_ns = 0;
  std::string data = {};
  friend bool operator==(const Read&, const Read&) = default;
};

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Twelve messages of two channels in four chunks.
std::vector<Read> write_file(const std::string& path, bool compresses) {
  FileWriter writer(path, {.compresses = compresses, .chunk_bytes = 400, .library = "test 1"});
  const std::uint16_t schema =
      writer.add(Schema{.name = "Pair", .encoding = "x-test", .data = "two numbers"});
  const std::uint16_t one = writer.add(Channel{
      .schema = schema, .topic = "one", .encoding = "x-text", .metadata = {{"k", "v"}, {"l", ""}}});
  const std::uint16_t two = writer.add(Channel{.topic = "two", .encoding = "x-text"});
  std::vector<Read> written;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const std::string data = "sample " + std::to_string(i) + std::string(60, 'x');
    const Read message{.channel = i % 3 == 0 ? two : one,
                       .sequence = i,
                       .log_ns = 1'000 + std::uint64_t{i} * 10,
                       .publish_ns = 500 + std::uint64_t{i},
                       .data = data};
    writer.write({.channel = message.channel,
                  .sequence = message.sequence,
                  .log_ns = message.log_ns,
                  .publish_ns = message.publish_ns,
                  .data = bytes_of(data)});
    written.push_back(message);
  }
  writer.finish();
  EXPECT_EQ(writer.file_bytes(), std::filesystem::file_size(path));
  return written;
}

std::vector<Read> read_all(FileReader& reader) {
  std::vector<Read> all;
  Message message;
  while (reader.next(message))
    all.push_back(
        {.channel = message.channel,
         .sequence = message.sequence,
         .log_ns = message.log_ns,
         .publish_ns = message.publish_ns,
         .data = {reinterpret_cast<const char*>(message.data.data()), message.data.size()}});
  return all;
}

std::string one_text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// The file without some records of its summary, as other writers leave them out, and with `extra`
/// between the chunks and the end of the data.
std::string rewritten(const std::string& content, const std::set<Op>& left_out,
                      const Buffer& extra = {}) {
  Buffer to;
  Footer footer;
  Bytes rest = bytes_of(content).subspan(kMagicBytes);
  bool in_summary = false;
  while (rest.size() > kMagicBytes) {
    const Bytes before = rest;
    const auto record = take_record(rest);
    if (!record || record->op == Op::footer) break;
    if (record->op == Op::data_end) to.insert(to.end(), extra.begin(), extra.end());
    if (in_summary && left_out.contains(record->op)) continue;
    to.insert(to.end(), before.begin(), before.end() - static_cast<std::ptrdiff_t>(rest.size()));
    if (record->op != Op::data_end) continue;
    in_summary = true;
    footer.summary_start = kMagicBytes + to.size();
  }
  const std::size_t end = to.size();
  add_footer(to, footer);
  std::fill(to.end() - 4, to.end(), std::byte{0});  // no CRC
  EXPECT_GT(to.size(), end);
  const std::string magic = content.substr(0, kMagicBytes);
  return magic + std::string(reinterpret_cast<const char*>(to.data()), to.size()) + magic;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
/// In place: a file system may wait for its disk when a file is replaced.
void put_content(const std::string& path, const std::string& content) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  EXPECT_EQ(pwrite(file, content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  EXPECT_EQ(ftruncate(file, static_cast<off_t>(content.size())), 0);
  close(file);
}

TEST(McapFile, GivesBackWhatWasWritten) {
  const OwnDirectory directory;
  for (const bool compresses : {true, false}) {
    const std::string path = directory / (compresses ? "zstd" : "none");
    const std::vector<Read> written = write_file(path, compresses);
    FileReader reader(path);
    EXPECT_TRUE(reader.warnings().empty());
    EXPECT_EQ(reader.library(), "test 1");
    ASSERT_EQ(reader.channels().size(), 2U);
    EXPECT_EQ(reader.channels().at(1).metadata.at("k"), "v");
    EXPECT_EQ(reader.schemas().at(1).data, "two numbers");
    EXPECT_EQ(reader.statistics().messages, 12U);
    EXPECT_EQ(reader.statistics().messages_of.at(2), 4U);
    EXPECT_EQ(reader.statistics().start_ns, 1'000U);
    EXPECT_EQ(reader.statistics().end_ns, 1'110U);
    EXPECT_GE(reader.statistics().chunks, 3U);
    EXPECT_EQ(read_all(reader), written);
    reader.rewind(1'075);
    EXPECT_EQ(read_all(reader), std::vector<Read>(written.begin() + 8, written.end()));
  }
}

TEST(McapFile, GivesMessagesOfChunksThatOverlapByTheirTimes) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  FileWriter writer(path, {.chunk_bytes = 1});  // each message is a chunk
  const std::uint16_t channel = writer.add(Channel{.topic = "t", .encoding = "x"});
  for (const std::uint64_t time_ns : {50U, 10U, 40U, 20U, 30U, 10U})
    writer.write({.channel = channel, .log_ns = time_ns});
  writer.finish();
  FileReader reader(path);
  std::vector<std::uint64_t> times;
  for (const Read& one : read_all(reader)) times.push_back(one.log_ns);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{10, 10, 20, 30, 40, 50}));
}

TEST(McapFile, ReadsAFileWithoutMessages) {
  const OwnDirectory directory;
  FileWriter(directory / "file", {}).finish();
  FileReader reader(directory / "file");
  EXPECT_TRUE(reader.warnings().empty());
  EXPECT_TRUE(read_all(reader).empty());
}

TEST(McapFile, DoesNotReplaceAFile) {
  const OwnDirectory directory;
  FileWriter(directory / "file", {}).finish();
  EXPECT_TRUE(contains(what_is_thrown_by([&] { FileWriter again(directory / "file", {}); }),
                       "it is there already"));
}

/// At each length, what whole chunks there are is read, with a warning.
TEST(McapFile, ReadsEachTruncationUpToTheLastWholeChunk) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  const std::vector<Read> written = write_file(path, true);
  std::size_t whole = written.size();
  std::size_t with_chunks = 0;
  for (std::uint64_t size = std::filesystem::file_size(path); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    if (size < kMagicBytes) {
      EXPECT_TRUE(contains(what_is_thrown_by([&] { FileReader reader(path); }),
                           "offset 0: this is no MCAP file"));
      continue;
    }
    FileReader reader(path);
    EXPECT_TRUE(contains(one_text(reader.warnings()), "has no end, as if its recorder was killed"));
    const std::vector<Read> read = read_all(reader);
    ASSERT_LE(read.size(), whole);
    EXPECT_EQ(read.size(), reader.statistics().messages);
    ASSERT_TRUE(std::equal(read.begin(), read.end(), written.begin()));
    with_chunks += read.size() < whole ? 1U : 0U;  // so often was a chunk cut
    whole = read.size();
  }
  EXPECT_EQ(whole, 0U);
  EXPECT_GE(with_chunks, 3U);
}

TEST(McapFile, IsReadWholeWhateverItsSummaryLeavesOut) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  const std::vector<Read> written = write_file(path, true);
  const std::string content = content_of(path);
  for (const std::set<Op>& left_out : {std::set{Op::channel},
                                       {Op::schema},
                                       {Op::channel, Op::schema},
                                       {Op::statistics},
                                       {Op::chunk_index},
                                       {Op::summary_offset},
                                       {Op::chunk_index, Op::statistics}}) {
    put_content(path, rewritten(content, left_out));
    FileReader reader(path);
    EXPECT_EQ(one_text(reader.warnings()), "");
    EXPECT_EQ(reader.channels().size(), 2U);
    EXPECT_EQ(reader.schemas().at(1).data, "two numbers");
    EXPECT_EQ(reader.statistics().messages, 12U);
    EXPECT_EQ(read_all(reader), written);
  }
}

/// A summary need not name a message that lies outside of chunks.
TEST(McapFile, IsReadWholeIfOnlySomeMessagesAreInChunks) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  std::vector<Read> written = write_file(path, true);
  const std::string data = "loose";
  Buffer extra;
  add_message(extra, {.channel = 1, .sequence = 99, .log_ns = 2'000, .data = bytes_of(data)});
  put_content(path, rewritten(content_of(path), {}, extra));
  written.push_back({.channel = 1, .sequence = 99, .log_ns = 2'000, .data = data});
  FileReader reader(path);
  EXPECT_EQ(read_all(reader), written);
}

/// A machine that crashed may leave a file of its full length, whose tail was never written.
TEST(McapFile, IsReadUpToZerosAtItsTail) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  const std::vector<Read> written = write_file(path, true);
  std::string content = content_of(path);
  std::size_t whole = written.size();
  std::size_t with_chunks = 0;
  for (std::size_t from = content.size(); from-- > kMagicBytes;) {
    content[from] = '\0';
    put_content(path, content);
    FileReader reader(path);
    EXPECT_TRUE(contains(one_text(reader.warnings()), "has no end")) << from;
    const std::vector<Read> read = read_all(reader);
    ASSERT_LE(read.size(), whole);
    EXPECT_EQ(read.size(), reader.statistics().messages);
    ASSERT_TRUE(std::equal(read.begin(), read.end(), written.begin()));
    with_chunks += read.size() < whole ? 1U : 0U;
    whole = read.size();
  }
  EXPECT_EQ(whole, 0U);
  EXPECT_GE(with_chunks, 3U);
}

/// Each byte is another one: what is whole is read, and the reader says what is not, or the byte
/// did not matter to it.
TEST(McapFile, LosesAtMostAChunkWithoutSayingSoWhateverByteIsDamaged) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  const std::string damaged = directory / "damaged";
  const std::vector<Read> written = write_file(path, true);
  const std::string good = content_of(path);
  std::size_t warned = 0;
  std::size_t tried = 0;
  for (std::size_t at = kMagicBytes; at < good.size(); at += dunlin::test::kSanitized ? 3 : 1) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (at % 2 == 0 ? 0x80 : 0x01));
    put_content(damaged, bad);
    ++tried;
    FileReader reader(damaged);
    const std::vector<Read> read = read_all(reader);
    if (reader.warnings().empty()) {
      EXPECT_EQ(read, written) << "byte " << at;
    } else {
      EXPECT_TRUE(contains(one_text(reader.warnings()), "damaged\"")) << "byte " << at;
      ++warned;
    }
  }
  EXPECT_GT(warned, tried / 2);
}

/// Numbers as they could be: the largest, and the next ones.
TEST(McapFile, RefusesLengthsThatCannotBe) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  const std::string damaged = directory / "damaged";
  static_cast<void>(write_file(path, false));
  const std::string good = content_of(path);
  for (const std::uint64_t length : {UINT64_MAX, UINT64_MAX - 8, std::uint64_t{1} << 63U,
                                     std::uint64_t{1} << 40U, std::uint64_t{1} << 32U}) {
    for (std::size_t at = kMagicBytes; at + 8 < good.size(); at += 5) {
      std::string bad = good;
      std::memcpy(bad.data() + at, &length, sizeof length);
      put_content(damaged, bad);
      try {
        FileReader reader(damaged);
        EXPECT_LE(read_all(reader).size(), 12U);
      } catch (const BadInput& error) {
        EXPECT_TRUE(contains(error.what(), "offset "));
      }
    }
  }
}

TEST(McapFile, SaysWhatIsWrongAndWhere) {
  const OwnDirectory directory;
  const std::string path = directory / "file";
  const std::string damaged = directory / "damaged";
  const std::vector<Read> written = write_file(path, false);
  std::string bad = content_of(path);
  const std::size_t text = bad.find("sample 3");
  bad[text] = 'S';
  put_content(damaged, bad);
  FileReader reader(damaged);
  const std::vector<Read> without_chunk = read_all(reader);
  EXPECT_TRUE(contains(one_text(reader.warnings()), "the CRC of a chunk is wrong: it is left out"));
  EXPECT_GT(without_chunk.size(), 6U);
  EXPECT_TRUE(std::ranges::includes(written, without_chunk, {}, &Read::sequence, &Read::sequence));
  EXPECT_TRUE(
      std::ranges::none_of(without_chunk, [](const Read& one) { return one.sequence == 3; }));
  reader.rewind();
  EXPECT_EQ(read_all(reader), without_chunk);
  EXPECT_EQ(reader.warnings().size(), 1U);
  bad = content_of(path);
  bad[bad.size() - kMagicBytes - 1] = static_cast<char>(bad[bad.size() - kMagicBytes - 1] ^ 1);
  put_content(damaged, bad);
  FileReader by_scan(damaged);
  EXPECT_TRUE(contains(one_text(by_scan.warnings()), "the CRC of the summary is wrong"));
  EXPECT_EQ(read_all(by_scan), written);
  put_content(damaged, "PK\x03\x04 and so on");
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { FileReader other(damaged); }), "this is no MCAP file"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { FileReader other(directory / "none"); }),
                       "cannot read it: No such file"));
}

}  // namespace
}  // namespace dunlin::app::mcap
