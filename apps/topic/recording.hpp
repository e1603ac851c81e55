#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include <dunlin/pubsub/type_support.hpp>

#include "mcap/file_writer.hpp"
#include "topic/recorded_topic.hpp"
#include "topic/tool.hpp"

namespace dunlin::app::topic {

/// The file that `record` writes: chunks reach it when they are full, and each second.
class Recording {
 public:
  /// Makes the file. Throws BadInput.
  explicit Recording(const Options& options);

  /// A channel for samples, and one for disposals when the first one comes.
  struct Writer {
    RecordedTopic described = {};
    std::array<std::uint16_t, 2> channels = {};  // 0: not yet
  };
  void add(Writer& writer, const pubsub::RawSample& sample, bool disposes,
           const mcap::Message& times);
  /// Ends the chunk at hand if a second has passed.
  void tick(std::uint64_t now_ns);
  /// Calls `work`, then ends the file, also if `work` throws, unless the file itself failed.
  template <class Work>
  void run(const Work& work) {
    try {
      work();
    } catch (...) {
      if (!failed_) file_.finish();
      throw;
    }
    file_.finish();
  }
  [[nodiscard]] std::uint64_t samples() const noexcept { return file_.statistics().messages; }
  [[nodiscard]] bool enough() const noexcept { return samples() >= most_; }
  /// A line about the recorded samples. `signal`: that ended it, or null.
  [[nodiscard]] std::string summary(const char* signal) const;

 private:
  [[nodiscard]] std::uint16_t schema(const RecordedTopic& described);

  mcap::FileWriter file_;
  std::uint64_t most_;
  std::map<std::string, std::uint16_t> schemas_;  // by the text of the type
  std::map<std::string, std::uint64_t> topics_;
  std::uint64_t flushed_ns_ = 0;
  bool failed_ = false;
};

}  // namespace dunlin::app::topic
