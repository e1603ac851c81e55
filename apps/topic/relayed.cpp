#include "topic/relayed.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <dunlin/relay/client.hpp>

#include "command.hpp"
#include "fabric/system.hpp"
#include "read_file.hpp"
#include "signals.hpp"
#include "standard_output.hpp"
#include "topic/player.hpp"
#include "topic/recording.hpp"
#include "topic/sample_json.hpp"
#include "topic/sample_text.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint32_t kRelaySliceMs = 20;       // then it looks at signals
constexpr std::uint64_t kBeginMs = 10'000;        // time to find a relay, and the topic
constexpr std::uint64_t kAcknowledgeMs = 10'000;  // for acknowledgements at the end
constexpr std::uint64_t kFindMs = 2'000;          // a topic that the group may lack
constexpr std::uint64_t kReadersMs = 2'000;       // for readers to come into a new topic

relay::ClientOptions client_options_of(const Options& options) {
  return {.relays = options.relays,
          .secret = read_secret_file(options.place.fabric.secret_file, "--secret-file")};
}

class Relayed {
 public:
  explicit Relayed(const Options& options)
      : options_(options), client_(client_options_of(options)) {}

  void echo() {
    relay::ReaderQos qos;
    if (options_.stored) qos.durability.kind = pubsub::Durability::Kind::transient;
    relay::AnyRelayReader reader(client_, options_.topic, pubsub::raw_type_support(), qos);
    if (!begin(reader, options_.topic)) return;
    const TypeTree type = parse_type(reader.type_text());
    std::uint64_t shown = 0;
    const auto enough = [&] { return options_.count && shown >= *options_.count; };
    until(
        [&] {
          while (!enough() && reader.available()) {
            const auto sample = reader.take_one();
            say(sample->valid ? print_sample(type, sample->payload) + "---\n"
                              : "(an instance is disposed)\n---\n");
            ++shown;
          }
          if (!reader.why_refused().empty()) throw Error(reader.why_refused());
          return enough();
        },
        options_.limit_ms());
  }

  void publish() {
    relay::AnyRelayWriter writer(client_, options_.topic, pubsub::raw_type_support());
    if (!begin(writer, options_.topic)) return;
    const pubsub::RawSample sample = read_sample(parse_type(writer.type_text()), options_.sample);
    const auto period_ns = static_cast<std::uint64_t>(1e9 / options_.rate);
    std::uint64_t next_ns = 0;
    until([&] {
      if (!writer.why_refused().empty()) throw Error(writer.why_refused());
      const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
      if (now_ns < next_ns || writer.write(&sample) != pubsub::WriteResult::written) return false;
      next_ns = now_ns + period_ns;
      return writer.written() == options_.count.value_or(UINT64_MAX);
    });
    await_acknowledgements({writer});
    say(fmt::format("{} {} acknowledged\n", writer.acknowledged(),
                    writer.acknowledged() == 1 ? "sample" : "samples"));
  }

  void record() {
    if (options_.topics.empty())
      throw BadInput("a relay does not tell which topics there are: name those to record");
    std::vector<Source> sources;
    for (const std::string& name : options_.topics) {
      const pubsub::Durability durability{.kind = options_.stored
                                                      ? pubsub::Durability::Kind::transient
                                                      : pubsub::Durability::Kind::volatile_};
      sources.push_back(
          {.reader = relay::AnyRelayReader(
               client_, name, pubsub::raw_type_support(),
               {.reliability = pubsub::Reliability::best_effort(), .durability = durability})});
      sources.back().writer.described.topic = name;
      if (!begin(sources.back().reader, name)) return;
      say(fmt::format("records topic '{}' [{}]\n", name,
                      type_name_of(sources.back().reader.type_text())));
    }
    Recording recording(options_);
    recording.run([&] {
      until(
          [&] {
            for (Source& source : sources) take(source, recording);
            recording.tick(read_clock_ns(CLOCK_MONOTONIC));
            return recording.enough();
          },
          options_.limit_ms());
    });
    for (const Source& source : sources)
      if (source.reader.lost() > 0)
        say(fmt::format("topic '{}': {} samples were lost, because this client was slow\n",
                        source.writer.described.topic, source.reader.lost()));
    say(recording.summary(signal()));
  }

  void replay() {
    Player player(options_);
    std::vector<relay::AnyRelayWriter> writers;
    bool any_new = false;
    for (const Player::Topic& one : player.topics())
      if (!add_writer(one, writers, any_new)) return;
    say(player.plan());
    // A relay does not tell whether its topics have readers.
    if (any_new) until([] { return false; }, kReadersMs);
    const auto publish = [&](const Player::Sample& sample) {
      relay::AnyRelayWriter& writer = writers[sample.topic];
      if (!writer.why_refused().empty()) throw Error(writer.why_refused());
      return (sample.disposes ? writer.dispose(&sample.raw) : writer.write(&sample.raw)) ==
             pubsub::WriteResult::written;
    };
    until([&] { return player.play(read_clock_ns(CLOCK_MONOTONIC), publish); });
    await_acknowledgements(writers);
    say(player.summary(signal()));
  }

 private:
  struct Source {
    relay::AnyRelayReader reader;
    Recording::Writer writer = {};
  };

  /// A relay does not tell when its writer's clock was: both times are those of the receipt.
  static void take(Source& source, Recording& recording) {
    if (!source.reader.why_refused().empty()) throw Error(source.reader.why_refused());
    RecordedTopic& described = source.writer.described;
    while (const auto sample = source.reader.take_one()) {
      if (described.type_text != source.reader.type_text())
        source.writer = {.described = {.topic = described.topic,
                                       .type_text = source.reader.type_text(),
                                       .plain = sample->plain}};
      const std::uint64_t now_ns = read_clock_ns(CLOCK_REALTIME);
      recording.add(source.writer, {.payload = sample->payload}, !sample->valid,
                    {.sequence = static_cast<std::uint32_t>(sample->sequence),
                     .log_ns = now_ns,
                     .publish_ns = now_ns});
    }
  }

  /// Makes writers of the topic; the relay creates a missing one as it was recorded. False if a
  /// signal came.
  bool add_writer(const Player::Topic& played, std::vector<relay::AnyRelayWriter>& writers,
                  bool& any_new) {
    const RecordedTopic& recorded = played.recorded;
    const auto type =
        pubsub::raw_type_support(recorded.type_text, type_name_of(recorded.type_text));
    {
      const relay::AnyRelayWriter writer(client_, recorded.topic, type);
      until([&] { return writer.ready() || !writer.why_refused().empty(); }, kFindMs);
      if (!writer.why_refused().empty()) throw Error(writer.why_refused());
      if (writer.ready()) {
        writers.push_back(writer);
        return true;
      }
    }
    any_new = true;
    writers.emplace_back(client_, recorded.topic, type, recorded.qos.value_or(pubsub::TopicQos{}));
    return begin(writers.back(), recorded.topic);
  }

  void await_acknowledgements(const std::vector<relay::AnyRelayWriter>& writers) {
    for (const relay::AnyRelayWriter& writer : writers)
      if (!until([&] { return writer.all_acknowledged(); }, kAcknowledgeMs) && signal() == nullptr)
        throw Error(fmt::format("{} of {} samples are acknowledged; {}", writer.acknowledged(),
                                writer.written(), client_.why_disconnected()));
  }

  /// The name of the first signal that has come; null: none has.
  [[nodiscard]] const char* signal() noexcept {
    if (signal_ == nullptr) signal_ = signals_.caught();
    return signal_;
  }

  /// Runs until the condition holds, a signal comes, or the time is up.
  template <class Condition>
  bool until(const Condition& condition, std::uint64_t limit_ms = UINT64_MAX) {
    const std::uint64_t begin_ns = read_clock_ns(CLOCK_MONOTONIC);
    while (signal() == nullptr) {
      if (client_.run_until(condition, kRelaySliceMs)) return true;
      if ((read_clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1'000'000 >= limit_ms) return false;
    }
    return false;
  }

  /// False if a signal came.
  template <class Endpoint>
  bool begin(const Endpoint& endpoint, const std::string& topic) {
    const bool begun = until(
        [&] {
          return (endpoint.ready() && !endpoint.type_text().empty()) ||
                 !endpoint.why_refused().empty();
        },
        kBeginMs);
    if (!endpoint.why_refused().empty()) throw Error(endpoint.why_refused());
    if (begun || signal() != nullptr) return begun;
    throw Error(client_.connected()
                    ? fmt::format("topic '{}': no member of the group of relay {} has it, or it "
                                  "has no type yet",
                                  topic, client_.relay())
                    : fmt::format("no relay can be reached: {}", client_.why_disconnected()));
  }

  const Options& options_;
  SignalGuard signals_;
  const char* signal_ = nullptr;
  relay::RelayClient client_;
};

}  // namespace

void run_relayed(const Options& options) {
  Relayed relayed(options);
  switch (options.work) {
    case Work::echo:
      return relayed.echo();
    case Work::record:
      return relayed.record();
    case Work::replay:
      return relayed.replay();
    default:
      return relayed.publish();
  }
}

}  // namespace dunlin::app::topic
