#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fabric/system.hpp"
#include "mcap/records.hpp"

namespace dunlin::app::mcap {

/// Reads an MCAP file of any writer: its channels, and its messages in the order of their log
/// times. Everything in the file is checked before it is used.
///
/// The constructor reads the summary. If the summary is missing, damaged, or does not describe all
/// messages, the constructor reads the whole file instead. A damaged chunk or message is left out,
/// and `warnings()` names it. BadInput is thrown only for a file that is no MCAP file, or that
/// cannot be read at all.
class FileReader {
 public:
  explicit FileReader(std::string path);
  ~FileReader();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// What is damaged or missing, a sentence each. next() may add some.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  [[nodiscard]] const std::string& library() const noexcept { return library_; }
  /// By id.
  [[nodiscard]] const std::map<std::uint16_t, Schema>& schemas() const noexcept { return schemas_; }
  [[nodiscard]] const std::map<std::uint16_t, Channel>& channels() const noexcept {
    return channels_;
  }
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return size_; }

  /// The next message, whose data are valid until the next call; false: there is none.
  [[nodiscard]] bool next(Message& message);
  /// The next message is the first one from this log time on.
  void rewind(std::uint64_t from_ns = 0);

 private:
  /// A chunk, or a run of records outside of chunks.
  struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t index_bytes = 0;  // length of the message indexes behind a chunk
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    bool chunk = true;
  };
  /// Its messages, by log time.
  struct Loaded;
  struct Later {
    bool operator()(const std::unique_ptr<Loaded>& one, const std::unique_ptr<Loaded>& other) const;
  };

  [[nodiscard]] Buffer read(std::uint64_t offset, std::uint64_t length) const;
  void warn(const std::string& text);
  [[nodiscard]] bool has_end(Footer& footer) const;
  [[nodiscard]] bool read_summary(const Footer& footer);
  void take_summary_record(const Record& record, std::uint64_t offset, std::uint64_t summary_start);
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] bool is_all_in_chunks(std::uint64_t end);
  void scan(bool ended);
  void scan_record(Op op, const Extent& place);
  void scan_chunk(Extent chunk);
  void scan_loose(const Record& record, const Extent& place);
  void end_run();
  void count(const Message& message);
  void learn(const Record& record, std::uint64_t offset);
  void learn_schema(Bytes content, std::uint64_t offset);
  void learn_channel(Bytes content, std::uint64_t offset);
  [[nodiscard]] std::unique_ptr<Loaded> load(const Extent& extent);
  static void open_chunk(Buffer& bytes, const Extent& extent);
  void open_next();
  void keep_open(std::unique_ptr<Loaded> one);

  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  std::vector<std::string> warnings_;
  std::string library_;
  std::map<std::uint16_t, Schema> schemas_;
  std::map<std::uint16_t, Channel> channels_;
  Statistics statistics_;
  std::vector<Extent> extents_;  // by start_ns
  Extent run_;                   // while the file is scanned: messages outside of chunks
  std::set<std::uint16_t> indexed_channels_;  // channels that the chunk indexes name
  std::size_t next_extent_ = 0;
  std::uint64_t from_ns_ = 0;
  std::uint64_t loaded_bytes_ = 0;
  std::vector<std::unique_ptr<Loaded>> open_;  // a heap by Later: chunks with messages to give
  std::unique_ptr<Loaded> current_;            // the chunk of the last message
};

}  // namespace dunlin::app::mcap
