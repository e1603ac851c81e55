#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/pubsub.hpp>

#include "multicast/place.hpp"

/// `dunlin topic`: one of its works, as a member of the group.
namespace dunlin::app::topic {

enum class Work : std::uint8_t { list, info, echo, publish, hz, bw, record, replay };

struct Options {
  Work work = Work::list;
  cast::PlaceOptions place = {};
  std::string topic = {};
  std::string sample = {};
  std::vector<std::string> orders = {};      // be in these, so their topics are known
  std::vector<std::string> relays = {};      // echo, publish, record, replay: a client of these
  pubsub::ParticipantOptions logs = {};      // the logs of logged topics
  bool create = false;                       // takes part in a logged topic that no member has yet,
  std::string type_file = {};                // of this type,
  std::uint32_t keep = pubsub::kAllSamples;  // and with these policies
  std::uint64_t log_trim_bytes = 0;
  double rate = 1;
  std::optional<std::uint64_t> count = {};
  std::optional<double> seconds = {};
  // record, replay
  std::string file = {};
  std::vector<std::string> topics = {};  // empty: all
  bool stored = false;
  bool about_file = false;
  std::string compression = "zstd";
  std::size_t chunk_kb = 1'024;
  std::uint64_t loops = 1;                         // 0: no end
  double start_offset = 0;                         // seconds
  std::optional<std::uint64_t> wait_readers = {};  // for each topic; none: one, if it comes soon

  [[nodiscard]] std::uint64_t limit_ms() const {
    return seconds ? static_cast<std::uint64_t>(*seconds * 1e3) : UINT64_MAX;
  }
};

/// The topic that --create names. Throws BadInput.
struct NewTopic {
  std::shared_ptr<const pubsub::TypeSupport> type = {};
  pubsub::TopicQos qos = {};
};
[[nodiscard]] NewTopic new_topic_of(const Options& options);
/// Throws BadInput for options of logs that do not fit each other, or the work.
void check_topic_logs(const Options& options);

/// Returns when it is done, or a signal has come. Throws BadInput and Error.
void run(const Options& options);

}  // namespace dunlin::app::topic
