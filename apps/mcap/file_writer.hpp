#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fabric/system.hpp"
#include "mcap/records.hpp"

namespace dunlin::app::mcap {

struct WriterOptions {
  bool compresses = true;  // by zstd
  std::size_t chunk_bytes = std::size_t{1} << 20;
  std::string library = {};  // what the file says about its writer
};

/// Writes an MCAP file: chunks with message indexes, and at the end a summary, all with CRCs.
///
/// A chunk and its indexes reach the kernel by one write. So what a killed process leaves behind
/// is a file whose whole chunks can be read (FileReader).
class FileWriter {
 public:
  /// Makes the file. Throws BadInput if it is there already, or cannot be made.
  FileWriter(std::string path, WriterOptions options);

  /// Their ids. Throw Error if there are too many.
  [[nodiscard]] std::uint16_t add(Schema schema);
  [[nodiscard]] std::uint16_t add(Channel channel);
  /// Throws Error if the disk is full.
  void write(const Message& message);
  /// Writes the current chunk, if it has any message: all messages so far are then in the kernel,
  /// and survive this process.
  void end_chunk();
  /// The chunk at hand, the summary and the end of the file. Once, and nothing after it.
  void finish();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return offset_; }

 private:
  void put(Bytes bytes);

  std::string path_;
  WriterOptions options_;
  Descriptor file_;
  std::uint64_t offset_ = 0;
  std::uint32_t data_crc_ = 0;
  std::vector<Schema> schemas_;
  std::vector<Channel> channels_;
  std::vector<ChunkIndex> chunks_;
  Statistics statistics_;

  Buffer chunk_;  // records, not compressed yet
  std::uint64_t chunk_messages_ = 0;
  std::uint64_t chunk_start_ns_ = 0;
  std::uint64_t chunk_end_ns_ = 0;
  std::map<std::uint16_t, IndexEntries> entries_;
};

}  // namespace dunlin::app::mcap
