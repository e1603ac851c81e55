#include <algorithm>
#include <ctime>
#include <list>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "fabric/system.hpp"
#include "standard_output.hpp"
#include "topic/bag.hpp"
#include "topic/recording.hpp"
#include "topic/type_tree.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint64_t kLookNs = 100'000'000;  // for topics that are new

using pubsub::RawSample;
using pubsub::SampleInfo;

/// A topic that is recorded. Its reader writes to the file from the participant's poll().
class Source {
 public:
  Source(const pubsub::DomainParticipant& participant, const pubsub::TopicInfo& info, bool stored,
         Recording& recording, std::uint64_t wall_clock_ns)
      : recording_(recording),
        wall_clock_ns_(wall_clock_ns),
        topic_(participant, info.name, pubsub::raw_type_support(), info.qos) {
    pubsub::DataReaderQos qos;
    if (stored && info.qos.level >= pubsub::Level::volatile_storage)
      qos.durability.kind = pubsub::Durability::Kind::transient;
    reader_ = pubsub::AnyReader(topic_, qos);
    reader_.on_sample([this](const void* sample, const SampleInfo& about) {
      on_sample(*static_cast<const RawSample*>(sample), about);
    });
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { reader_.close(); }

  [[nodiscard]] const std::string& name() const noexcept { return topic_.name(); }
  /// Throws Error if this member cannot read it.
  void check() const {
    if (!topic_.why_refused().empty()) throw Error(topic_.why_refused());
    if (const std::string why = reader_.why_refused(); !why.empty()) throw Error(why);
  }

 private:
  struct Writer {
    Recording::Writer recorded = {};
    std::uint64_t last_sequence = 0;
    std::uint64_t clock_ns = 0;  // added to its clock, it gives ours
  };

  void on_sample(const RawSample& sample, const SampleInfo& info) {
    const bool disposes = !info.valid();
    if (disposes && info.instance_state != pubsub::InstanceState::disposed) return;
    Writer& writer = writers_[{std::string(info.publication.member), info.publication.number}];
    const std::uint64_t log_ns = info.reception_ns + wall_clock_ns_;
    // A number is used again by a later writer of the same member.
    if (writer.last_sequence == 0 || info.sequence <= writer.last_sequence ||
        writer.recorded.described.type_text != topic_.type_text())
      meet(writer, info, log_ns);
    writer.last_sequence = info.sequence;
    recording_.add(writer.recorded, sample, disposes,
                   {.sequence = static_cast<std::uint32_t>(info.sequence),
                    .log_ns = log_ns,
                    .publish_ns = info.source_ns + writer.clock_ns});
  }

  void meet(Writer& writer, const SampleInfo& info, std::uint64_t log_ns) {
    writer.clock_ns = log_ns - info.source_ns;
    RecordedTopic described{
        .topic = topic_.name(),
        .type_text = topic_.type_text(),
        .plain = parse_type(topic_.type_text()).plain,
        .qos = topic_.qos(),
        .writer = fmt::format("{}/{}", info.publication.member, info.publication.number)};
    for (const pubsub::EndpointInfo& one : topic_.endpoints())
      if (one.writes && one.member == info.publication.member &&
          one.number == info.publication.number)
        described.writer_qos = one.writer_qos;
    writer.recorded = {.described = std::move(described)};
  }

  Recording& recording_;
  std::uint64_t wall_clock_ns_;  // added to the fabric's clock, it gives the time of day
  pubsub::AnyTopic topic_;
  pubsub::AnyReader reader_;
  std::map<std::pair<std::string, std::uint16_t>, Writer, std::less<>> writers_;
};

/// All topics that are recorded, of which some may come later.
class Recorder {
 public:
  Recorder(const Options& options, Session& session, Recording& recording)
      : options_(options),
        session_(session),
        recording_(recording),
        wall_clock_ns_(read_clock_ns(CLOCK_REALTIME) - session.now_ns()) {}

  void run() {
    if (options_.create) create();
    const bool over = session_.until(
        [this] {
          const std::uint64_t now_ns = session_.now_ns();
          if (now_ns - looked_ns_ >= kLookNs) {
            looked_ns_ = now_ns;
            look();
          }
          recording_.tick(now_ns);
          return recording_.enough();
        },
        options_.limit_ms());
    static_cast<void>(over);
  }

 private:
  /// Those that are created; a member may have them already.
  void create() {
    const NewTopic made = new_topic_of(options_);
    for (const std::string& name : options_.topics)
      made_.emplace_back(session_.participant(), name, made.type, made.qos);
  }
  void look() {
    for (const pubsub::AnyTopic& topic : made_)
      if (!topic.why_refused().empty()) throw Error(topic.why_refused());
    for (const Source& source : sources_) source.check();
    for (const pubsub::TopicInfo& info : session_.participant().topics()) {
      const bool wanted =
          options_.topics.empty() || std::ranges::count(options_.topics, info.name) > 0;
      if (!wanted || !known_.insert(info.name).second) continue;
      if (info.qos.level == pubsub::Level::logged && options_.logs.log_directory.empty()) {
        const std::string why = fmt::format(
            "topic '{}' is logged: a member of it needs a log, and this command has none; give "
            "--log, or record it through a relay",
            info.name);
        if (!options_.topics.empty()) throw BadInput(why);
        say(why + "\n");
        continue;
      }
      sources_.emplace_back(session_.participant(), info, options_.stored, recording_,
                            wall_clock_ns_);
      say(fmt::format("records topic '{}' [{}]\n", info.name, info.type_name));
    }
    if (std::exchange(told_, true)) return;
    for (const std::string& name : options_.topics)
      if (!known_.contains(name)) say(fmt::format("waits for topic '{}'\n", name));
  }

  const Options& options_;
  Session& session_;
  Recording& recording_;
  std::uint64_t wall_clock_ns_;
  std::uint64_t looked_ns_ = 0;
  bool told_ = false;
  std::set<std::string> known_;
  std::list<pubsub::AnyTopic> made_;
  std::list<Source> sources_;
};

}  // namespace

void record(const Options& options, Session& session) {
  Recording recording(options);
  recording.run([&] { Recorder(options, session, recording).run(); });
  say(recording.summary(session.signal()));
}

}  // namespace dunlin::app::topic
