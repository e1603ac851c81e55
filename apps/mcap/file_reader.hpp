#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/system.hpp"
#include "mcap/records.hpp"

namespace dunlin::app::mcap {

/// Reads an MCAP file of any writer: its channels, and its messages in the order of their log
/// times. Everything in the file is checked before it is used. All functions throw BadInput for a
/// file that is damaged, with its name and the offset of the damage.
///
/// A file with a summary is read by it. One without is read from begin to end once, by the
/// constructor. If it also lacks its end, as after a recorder was killed, all that lies before is
/// read, and `warning()` says so.
class FileReader {
 public:
  explicit FileReader(std::string path);
  ~FileReader();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Why not all may be there: a sentence. Empty: the file has its end.
  [[nodiscard]] const std::string& warning() const noexcept { return warning_; }
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
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    bool chunk = true;
  };
  /// Its messages, by log time.
  struct Loaded;
  struct Later {
    bool operator()(const std::unique_ptr<Loaded>& one, const std::unique_ptr<Loaded>& other) const;
  };

  [[noreturn]] void damaged(std::uint64_t offset, const std::string& what) const;
  [[nodiscard]] Buffer read(std::uint64_t offset, std::uint64_t length) const;
  [[nodiscard]] bool has_end(Footer& footer) const;
  [[nodiscard]] bool read_summary(const Footer& footer);
  void scan(bool ended);
  void scan_loose(Extent& run, const Record& record, std::uint64_t offset);
  void end_run(Extent& run);
  void count(const Message& message);
  void learn(const Record& record, std::uint64_t offset);
  void learn_schema(Bytes content, std::uint64_t offset);
  void learn_channel(Bytes content, std::uint64_t offset);
  [[nodiscard]] std::unique_ptr<Loaded> load(const Extent& extent);
  void open_chunk(Buffer& bytes, const Extent& extent) const;
  void open_next();
  void keep_open(std::unique_ptr<Loaded> one);

  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  std::string warning_;
  std::string library_;
  std::map<std::uint16_t, Schema> schemas_;
  std::map<std::uint16_t, Channel> channels_;
  Statistics statistics_;
  std::vector<Extent> extents_;  // by start_ns
  std::size_t next_extent_ = 0;
  std::uint64_t from_ns_ = 0;
  std::uint64_t loaded_bytes_ = 0;
  std::vector<std::unique_ptr<Loaded>> open_;  // a heap by Later: chunks with messages to give
  std::unique_ptr<Loaded> current_;            // the chunk of the last message
};

}  // namespace dunlin::app::mcap
