#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "topic/bag.hpp"
#include "topic/player.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint64_t kFindMs = 2'000;     // for the members to tell of their topics
constexpr std::uint64_t kReadersMs = 2'000;  // for a reader to come into a topic that it awaits

/// A topic of the file, with the writers for its samples.
class Target {
 public:
  Target(Session& session, const Player::Topic& played, const std::string& path)
      : played_(played), path_(path) {
    const RecordedTopic& recorded = played.recorded;
    const pubsub::TopicInfo* const info = session.find(recorded.topic);
    const pubsub::TopicQos qos =
        info != nullptr ? info->qos : recorded.qos.value_or(pubsub::TopicQos{});
    if (qos.level == pubsub::Level::logged)
      throw BadInput(fmt::format(
          "topic '{}' is logged: a member of it needs a log, and this command has none; replay it "
          "through a relay",
          recorded.topic));
    type_ = pubsub::raw_type_support(recorded.type_text, type_name_of(recorded.type_text));
    topic_ = pubsub::AnyTopic(session.participant(), recorded.topic, type_, qos);
  }

  /// Whether all its writers can write. Throws Error and BadInput.
  bool ready() {
    if (!topic_.why_refused().empty()) throw Error(topic_.why_refused());
    if (!topic_.joined()) return false;
    if (writers_.empty()) make_writers();
    bool all = true;
    for (const pubsub::AnyWriter& writer : writers_) {
      if (const std::string why = writer.why_refused(); !why.empty()) throw Error(why);
      all = all && writer.ready();
    }
    return all;
  }

  /// Readers that each of its writers reaches.
  [[nodiscard]] std::uint64_t readers() const {
    std::uint64_t least = UINT64_MAX;
    for (const pubsub::AnyWriter& writer : writers_)
      least = std::min<std::uint64_t>(least, writer.publication_matched_status().current_count);
    return least;
  }
  /// Says so if no reader ever came for one of its writers.
  void warn_if_unheard() const {
    for (const pubsub::AnyWriter& writer : writers_)
      if (writer.publication_matched_status().total_count == 0)
        return say(fmt::format("warning: topic '{}' had no reader that its samples reach\n",
                               topic_.name()));
  }

  bool publish(const Player::Sample& sample) {
    pubsub::AnyWriter& writer = writers_[sample.writer];
    const pubsub::WriteResult result =
        sample.disposes ? writer.dispose(&sample.raw) : writer.write(&sample.raw);
    if (result == pubsub::WriteResult::written) return true;
    if (result == pubsub::WriteResult::no_room || result == pubsub::WriteResult::not_ready)
      return false;
    throw Error(fmt::format("topic '{}' takes no samples any more: {} {}", topic_.name(),
                            pubsub::describe(result), writer.why_refused()));
  }

 private:
  void make_writers() {
    const std::string& has = topic_.type_text();
    if (!has.empty() && !pubsub::types_match(has, type_->text))
      throw BadInput(fmt::format("topic '{}': its samples in {} are of another type: {}",
                                 topic_.name(), in_quotes(path_),
                                 pubsub::show_both_types(has, type_->text)));
    for (const pubsub::DataWriterQos& qos : played_.writers)
      writers_.emplace_back(topic_, qos, type_);
  }

  const Player::Topic& played_;
  const std::string& path_;
  std::shared_ptr<const pubsub::TypeSupport> type_;
  pubsub::AnyTopic topic_;
  std::vector<pubsub::AnyWriter> writers_;
};

/// A member that waits for a topic comes into it only after the topic was made. False if a signal
/// came.
bool await_readers(const Options& options, Session& session, const std::vector<Target>& targets) {
  const std::uint64_t wanted = options.wait_readers.value_or(1);
  session.until(
      [&] {
        return std::ranges::all_of(
            targets, [&](const Target& target) { return target.readers() >= wanted; });
      },
      options.wait_readers ? UINT64_MAX : kReadersMs);
  return session.signal() == nullptr;
}

}  // namespace

void replay(const Options& options, Session& session) {
  Player player(options);
  session.until(
      [&] {
        for (const Player::Topic& one : player.topics())
          if (session.find(one.recorded.topic) == nullptr) return false;
        return true;
      },
      kFindMs);
  std::vector<Target> targets;
  targets.reserve(player.topics().size());
  for (const Player::Topic& one : player.topics())
    targets.emplace_back(session, one, player.path());
  const bool ready = session.until([&] {
    bool all = true;
    for (Target& target : targets) all = target.ready() && all;
    return all;
  });
  if (!ready) return;
  say(player.plan());
  if (!await_readers(options, session, targets)) return;
  session.until([&] {
    const bool done = player.play(session.now_ns(), [&](const Player::Sample& sample) {
      return targets[sample.topic].publish(sample);
    });
    if (!done) session.participant().fabric().wake_at(player.due_ns());
    return done;
  });
  for (const Target& target : targets) target.warn_if_unheard();
  say(player.summary(session.signal()));
}

}  // namespace dunlin::app::topic
