#include "topic/tool.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dunlin/pubsub.hpp>

#include "command.hpp"
#include "multicast/enter.hpp"
#include "standard_output.hpp"
#include "topic/bag.hpp"
#include "topic/relayed.hpp"
#include "topic/sample_json.hpp"
#include "topic/sample_text.hpp"
#include "topic/session.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint64_t kTopicsMs = 2'000;  // for the members to tell of their topics

using pubsub::RawSample;

/// The samples that members keep for late readers, and in their logs; a line each.
std::string describe_keeping(const pubsub::TopicQos& qos) {
  if (qos.level < pubsub::Level::volatile_storage) return {};
  std::string kept = qos.history.kind == pubsub::History::Kind::keep_all
                         ? fmt::format("the newest {} samples", qos.max_samples)
                         : fmt::format("the newest {} samples of each instance, and {} in all",
                                       qos.history.depth, qos.max_samples);
  if (qos.max_bytes != 0) kept += fmt::format(", of at most {} bytes", qos.max_bytes);
  if (qos.max_age_ns != pubsub::kInfiniteNs)
    kept += fmt::format(", for {:g} s", static_cast<double>(qos.max_age_ns) / 1e9);
  kept = fmt::format("Keeps: {}\n", kept);
  if (qos.level != pubsub::Level::logged) return kept;
  return kept + (qos.log_trim_bytes == 0
                     ? "Log: has all samples\n"
                     : fmt::format("Log: trimmed to these, every {} bytes\n", qos.log_trim_bytes));
}

class Tool {
 public:
  Tool(const Options& options, Session& session)
      : options_(options), session_(session), participant_(session.participant()) {}

  void run() {
    if (options_.work == Work::list)
      list();
    else if (find())
      work();
  }

 private:
  bool until(const std::function<bool()>& condition, std::uint64_t limit_ms = UINT64_MAX) {
    return session_.until(condition, limit_ms);
  }

  void list() {
    until([this] { return !participant_.topics().empty() || !participant_.orders().empty(); },
          kTopicsMs);
    for (const pubsub::TopicInfo& info : participant_.topics())
      say(fmt::format("{} [{}] {}, {} {}\n", info.name, info.type_name, describe(info.qos.level),
                      info.members.size(), info.members.size() == 1 ? "member" : "members"));
    for (const pubsub::OrderInfo& order : participant_.orders())
      if (std::ranges::find(options_.orders, order.name) == options_.orders.end())
        say(fmt::format("order {}, {} {}: --order {} shows its topics\n", order.name,
                        order.members.size(), order.members.size() == 1 ? "member" : "members",
                        order.name));
  }

  [[nodiscard]] const pubsub::TopicInfo* info() { return session_.find(options_.topic); }

  /// Comes into the topic, with what its members have agreed on. False if a signal came.
  bool find() {
    const bool found = until([this] { return info() != nullptr; }, options_.create ? 0 : kTopicsMs);
    if (!found && session_.signal() != nullptr) return false;
    if (!found && options_.create) return create();
    if (!found)
      throw BadInput(
          fmt::format("topic '{}': no member of group {} has it; `dunlin topic list` "
                      "shows those that there are",
                      options_.topic, options_.place.group));
    const pubsub::TopicInfo* const one = info();
    if (one->qos.level == pubsub::Level::logged && options_.work == Work::info) {
      print_logged(*one);
      return false;
    }
    if (one->qos.level == pubsub::Level::logged && options_.logs.log_directory.empty())
      throw BadInput(
          fmt::format("topic '{}' is logged: a member of it needs a log, and this "
                      "command has none; give --log, or be a client of a relay",
                      options_.topic));
    if (options_.create) return create();
    topic_ = pubsub::AnyTopic(participant_, options_.topic, pubsub::raw_type_support(), one->qos);
    return session_.joined(topic_);
  }
  /// If a member has it, with other policies, that is refused.
  bool create() {
    const NewTopic made = new_topic_of(options_);
    topic_ = pubsub::AnyTopic(participant_, options_.topic, made.type, made.qos);
    new_type_ = made.type->text;
    return session_.joined(topic_);
  }

  void work() {
    switch (options_.work) {
      case Work::info:
        return print_info();
      case Work::echo:
        return echo();
      case Work::publish:
        return publish();
      default:
        return measure();
    }
  }

  /// The endpoints are known to members of the topic only.
  static void print_logged(const pubsub::TopicInfo& one) {
    say(fmt::format("Type: {}\nLevel: {}\n{}Members: {}\n", one.type_name, describe(one.qos.level),
                    describe_keeping(one.qos), fmt::join(one.members, ", ")));
  }
  void print_info() {
    const pubsub::TopicInfo* const one = info();
    const pubsub::TopicQos& qos = topic_.qos();
    say(fmt::format("Type: {}\nLevel: {}\n{}{}\n{}\n", one == nullptr ? "" : one->type_name,
                    describe(qos.level),
                    qos.order.empty() ? "" : fmt::format("Order: {}\n", qos.order.view()),
                    describe_keeping(qos), topic_.type_text()));
    for (const bool writes : {true, false}) {
      std::string lines;
      std::size_t count = 0;
      for (const pubsub::EndpointInfo& endpoint : topic_.endpoints()) {
        if (endpoint.writes != writes) continue;
        ++count;
        const auto reliability =
            writes ? endpoint.writer_qos.reliability.kind : endpoint.reader_qos.reliability.kind;
        lines += fmt::format(
            "  {} {} of member '{}': {}{}\n", writes ? "writer" : "reader", endpoint.number,
            endpoint.member,
            reliability == pubsub::Reliability::Kind::reliable ? "reliable" : "best_effort",
            endpoint.refused ? ", refused: it has another type" : "");
      }
      say(fmt::format("{}: {}\n{}", writes ? "Writers" : "Readers", count, lines));
    }
  }

  pubsub::AnyReader make_reader() {
    pubsub::DataReaderQos qos;
    qos.history = pubsub::History::keep_all();
    if (options_.stored && topic_.qos().level >= pubsub::Level::volatile_storage) {
      qos.durability.kind = pubsub::Durability::Kind::transient;
      qos.reliability = pubsub::Reliability::reliable();
    }
    return {topic_, qos};
  }
  [[nodiscard]] const TypeTree& type() {
    const std::string& text = topic_.type_text().empty() ? new_type_ : topic_.type_text();
    if (text.empty())
      throw BadInput(
          fmt::format("topic '{}' has no type yet: give --type, or start a member that "
                      "defines it",
                      topic_.name()));
    if (!type_ || type_of_ != text) {
      type_of_ = text;
      type_ = std::make_unique<TypeTree>(parse_type(type_of_));
    }
    return *type_;
  }

  void echo() {
    pubsub::AnyReader reader = make_reader();
    std::uint64_t shown = 0;
    until(
        [&] {
          const auto samples = reader.take();
          for (std::size_t i = 0; i < samples.size(); ++i) {
            if (options_.count && shown >= *options_.count) break;
            ++shown;
            const auto& raw = *static_cast<const RawSample*>(samples.data(i));
            if (samples.info(i).valid())
              say(print_sample(type(), raw.payload) + "---\n");
            else
              say("(an instance is disposed, or has no writers)\n---\n");
          }
          return options_.count && shown >= *options_.count;
        },
        options_.limit_ms());
  }

  void publish() {
    const RawSample sample = read_sample(type(), options_.sample);
    pubsub::AnyWriter writer(topic_, {}, pubsub::raw_type_support(type_of_, {}));
    const auto period_ns = static_cast<std::uint64_t>(1e9 / options_.rate);
    std::uint64_t written = 0;
    std::uint64_t next_ns = 0;
    until([&] {
      const std::uint64_t now_ns = participant_.fabric().now_ns();
      if (now_ns < next_ns) {
        participant_.fabric().wake_at(next_ns);
        return false;
      }
      if (writer.write(&sample) != pubsub::WriteResult::written) return false;
      next_ns = now_ns + period_ns;
      return ++written == options_.count.value_or(UINT64_MAX);
    });
    say(fmt::format("{} {} written\n", written, written == 1 ? "sample" : "samples"));
  }

  /// A line a second.
  void measure() {
    const pubsub::AnyReader reader = make_reader();
    const bool bytes = options_.work == Work::bw;
    pubsub::TopicCounters before = topic_.counters();
    std::uint64_t begin_ns = participant_.fabric().now_ns();
    until(
        [&] {
          static_cast<void>(pubsub::AnyReader(reader).take());
          const std::uint64_t now_ns = participant_.fabric().now_ns();
          participant_.fabric().wake_at(begin_ns + 1'000'000'000);
          const double seconds = static_cast<double>(now_ns - begin_ns) / 1e9;
          if (seconds < 1) return false;
          const pubsub::TopicCounters now = topic_.counters();
          const double samples = static_cast<double>(now.received - before.received) / seconds;
          const double rate = static_cast<double>(now.bytes - before.bytes) / seconds;
          say(bytes ? fmt::format("{:.1f} KB/s, {:.0f} bytes a sample\n", rate / 1e3,
                                  samples > 0 ? rate / samples : 0)
                    : fmt::format("{:.1f} samples/s\n", samples));
          before = now;
          begin_ns = now_ns;
          return false;
        },
        options_.limit_ms());
  }

  const Options& options_;
  Session& session_;
  pubsub::DomainParticipant& participant_;
  pubsub::AnyTopic topic_;
  std::string new_type_;  // set if the topic is created
  std::string type_of_;
  std::unique_ptr<TypeTree> type_;
};

void run_as_member(const Options& options, Session& session) {
  if (options.work == Work::record) return record(options, session);
  if (options.work == Work::replay) return replay(options, session);
  Tool(options, session).run();
}

}  // namespace

void run(const Options& options) {
  const bool no_group = options.place.group.empty();
  if (options.work == Work::info && no_group) return print_file_info(options.topic);
  if (options.work == Work::record && options.about_file) return print_file_info(options.file);
  if (options.relays.empty() && (no_group || options.place.name.empty()))
    throw BadInput("--group and --name are missing: give them, or --relay");
  check_bag_options(options);
  check_topic_logs(options);
  if (!options.relays.empty() && !options.orders.empty())
    throw BadInput(
        "--order: a client of a relay comes into no order; leave --order or --relay out");
  if (!options.relays.empty() && options.wait_readers)
    throw BadInput(
        "--wait-readers: a relay does not tell how many readers a topic has; leave it or --relay "
        "out");
  if (!options.relays.empty()) return run_relayed(options);
  const cast::Place place(options.place);
  SignalGuard signals;
  const cast::Entered entered =
      cast::enter(place, GroupOptions{.rendezvous = place.rendezvous()}, signals);
  if (!entered.group) return;
  Session session(*entered.group, signals, options.logs);
  if (session.join_orders(options.orders)) run_as_member(options, session);
  session.leave();
}

}  // namespace dunlin::app::topic
