#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <dunlin/pubsub/type_support.hpp>

#include "mcap/file_reader.hpp"
#include "topic/recorded_topic.hpp"
#include "topic/tool.hpp"
#include "topic/type_tree.hpp"

namespace dunlin::app::topic {

/// The samples of a recorded file, each at its time. It asks no clock: the time comes in.
class Player {
 public:
  /// Throws BadInput if the file is damaged, or has what cannot be published.
  explicit Player(const Options& options);

  struct Topic {
    RecordedTopic recorded;  // the first channel of its
    TypeTree type;
    std::vector<pubsub::DataWriterQos> writers = {};  // the different ones that samples need
  };
  [[nodiscard]] const std::vector<Topic>& topics() const noexcept { return topics_; }

  struct Sample {
    std::size_t topic = 0;   // index in topics()
    std::size_t writer = 0;  // index in the topic's writers
    bool disposes = false;
    pubsub::RawSample raw = {};
  };
  /// Gives `publish` all samples whose time has come, until it returns false, as when there is no
  /// room for one. Returns whether all is done. The first call begins.
  bool play(std::uint64_t now_ns, const std::function<bool(const Sample&)>& publish);
  /// When play() has something to do next.
  [[nodiscard]] std::uint64_t due_ns() const noexcept { return due_ns_; }

  /// Lines about the coming replay, and about its result.
  [[nodiscard]] std::string plan() const;
  [[nodiscard]] std::string summary(const char* signal) const;
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  struct Played {
    std::size_t topic = 0;
    std::size_t writer = 0;
    bool disposes = false;
  };
  void add_channel(const mcap::Channel& channel);
  [[nodiscard]] bool load();
  void begin_pass(std::uint64_t now_ns);

  mcap::FileReader file_;
  double rate_;
  std::uint64_t loops_;  // 0: no end
  std::uint64_t from_ns_;
  std::vector<Topic> topics_;
  std::map<std::uint16_t, Played> channels_;  // those that are played
  std::uint64_t samples_ = 0;                 // how many these have in the file
  std::size_t planned_warnings_ = 0;          // how many of the file's plan() tells

  bool begun_ = false;
  bool loaded_ = false;
  Sample sample_;
  std::uint64_t due_ns_ = 0;
  std::uint64_t pass_begin_ns_ = 0;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::uint64_t passes_ = 0;
  std::uint64_t played_ = 0;
  std::uint64_t played_before_ = 0;  // in this pass
  std::uint64_t latest_ns_ = 0;      // the latest that a sample was
};

}  // namespace dunlin::app::topic
