#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "bench/fabric/group.hpp"
#include "bench/harness/statistics.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"

/// Topics and readers that come, while others are at work.
namespace dunlin::bench {
namespace {

using pubsub::Level;
using Small = Blob<64>;
using Record = Blob<1'000>;

constexpr double kMostPauseNs = 1e6;      // of other topics, in 99 of 100 changes
constexpr double kLeastLiveRate = 0.9;    // of the stream without late readers
constexpr std::uint32_t kKept = 4'096;    // samples that a late reader is given
constexpr double kWithoutChangeNs = 1e6;  // as long as it may take that a topic comes and goes

/// Member 1 gets nanoseconds from the call for a topic, at both members at once, to the first
/// sample.
std::optional<double> first_sample(TopicNode& node, std::uint64_t& number, std::uint32_t topics) {
  std::vector<double> times;
  for (std::uint32_t i = 0; i < topics; ++i) {
    node.meet();
    const double start = now_ns();
    const pubsub::Topic<Small> topic(node.participant(), "new" + std::to_string(++number),
                                     measured_qos(Level::atomic));
    if (node.writes()) {
      pubsub::DataWriter<Small> writer(pubsub::Publisher(node.participant()), topic);
      node.poll_until(
          [&] { return writer->publication_matched_status().current_count > 0 && writer.loan(); });
      writer.publish();
      node.meet();
    } else {
      bool got = false;
      pubsub::DataReader<Small> reader(pubsub::Subscriber(node.participant()), topic);
      reader.on_sample([&](const Small&, const pubsub::SampleInfo& info) { got |= info.valid(); });
      node.poll_until([&] { return got; });
      times.push_back(now_ns() - start);
      node.meet();
    }
  }
  if (node.writes()) return std::nullopt;
  std::ranges::sort(times);
  return quantile(times, 0.5);
}

std::vector<Result> creation(const Effort& effort) {
  const Group group(real_network("shm"), effort, 2);
  const std::uint32_t topics = effort.scaled(200);
  Team team(group.team(2));
  team.run([&](Member& me) {
    TopicNode node(me, group.join(me.rank()));
    std::uint64_t number = 0;
    alternate(me, effort.rounds, {[&] { return first_sample(node, number, topics); }});
  });
  return {{.params = {{"until", "the first sample of a new topic"}, {"members", 2.0}},
           .unit = "ns",
           .value = summarize(team.series(0))}};
}

/// What the two members of a pause know of each other.
struct Scene {
  std::atomic<bool> streams{false};       // member 0 does, and looks at the changes
  std::atomic<std::uint64_t> changes{0};  // odd while one is under way
  std::atomic<std::uint64_t> written{0};
  std::atomic<bool> over{false};
};

/// Member 0 streams, and gets the 99 % quantile of the longest pauses, one in each change. A pause
/// counts for each change that was under way at any moment of it.
double longest_pauses(TopicNode& node, MeasuredTopic<Small>& live, Scene& scene) {
  std::vector<double> longest;
  std::uint64_t written = 0, seen = node.delivered, changes = 0;
  double last = now_ns();
  scene.streams = true;
  const auto end_pause = [&] {
    const double now = now_ns(), pause = now - last;
    last = now;
    const std::uint64_t before = std::exchange(changes, scene.changes);
    longest.resize((changes + 1) / 2);
    for (std::uint64_t i = before / 2; i < longest.size(); ++i) {
      longest[i] = std::max(longest[i], pause);
    }
  };
  Patience patience;
  while (!scene.over) {
    while (live.write()) ++written;
    patience.after(node.poll() > 0);
    if (node.delivered == seen) continue;
    seen = node.delivered;
    end_pause();
  }
  end_pause();
  scene.written = written;
  std::ranges::sort(longest);
  return quantile(longest, 0.99);
}

/// Member 1 makes so many topics come and go; or none, and as many pauses of that length.
void change_topics(TopicNode& node, Scene& scene, std::uint32_t changes, bool comes) {
  const auto is_there = [&](const std::string& name) {
    return std::ranges::any_of(node.participant().topics(),
                               [&](const auto& info) { return info.name == name; });
  };
  node.poll_until([&] { return scene.streams.load(); });
  for (std::uint32_t i = 0; i < changes; ++i) {
    ++scene.changes;
    if (comes) {
      const std::string name = "passing" + std::to_string(i);
      {
        const pubsub::Topic<Small> topic(node.participant(), name, measured_qos(Level::atomic));
        node.poll_until([&] { return topic.joined(); });
      }
      node.poll_until([&] { return !is_there(name); });
    } else {
      const double end = now_ns() + kWithoutChangeNs;
      node.poll_until([&] { return now_ns() >= end; });
    }
    ++scene.changes;
  }
  scene.over = true;
}

std::optional<double> pause(TopicNode& node, MeasuredTopic<Small>& live, std::uint32_t changes,
                            bool comes) {
  Scene& scene = *reinterpret_cast<Scene*>(node.me().arena().data());
  return node.turn([&]() -> std::optional<double> {
    std::optional<double> measured;
    if (node.writes()) {
      measured = longest_pauses(node, live, scene);
    } else {
      change_topics(node, scene, changes, comes);
    }
    node.meet();
    node.goal += scene.written;
    node.poll_until([&] { return node.delivered >= node.goal; });
    node.meet();
    if (node.writes()) {
      scene.changes = 0;
      scene.streams = scene.over = false;
    }
    return measured;
  });
}

std::vector<Result> pause_of_others(const Effort& effort) {
  const Group group(real_network("shm"), effort, 2);
  const std::uint32_t changes = effort.scaled(200);
  Team team(group.team(2));
  team.run([&](Member& me) {
    TopicNode node(me, group.join(me.rank()));
    const auto live = make_topics<Small>(node, "live", 1, measured_qos(pubsub::Level::atomic), 1);
    alternate(me, effort.rounds,
              {[&] { return pause(node, *live.front(), changes, false); },
               [&] { return pause(node, *live.front(), changes, true); }});
  });
  return {compared({.params = {{"of", "99 % of the changes"}, {"members", 2.0}},
                    .unit = "ns",
                    .goal = Goal{.on = Goal::On::value, .bound = kMostPauseNs}},
                   team.series(1), "no topic comes or goes for 1 ms", team.series(0))};
}

/// A member that comes into a topic as a reader, is given what the topic keeps, and goes, over and
/// over.
class Visitor {
 public:
  Visitor(TopicNode& node, std::string topic, pubsub::TopicQos qos)
      : node_(node), name_(std::move(topic)), qos_(qos) {}

  void comes(bool does) noexcept { comes_ = does; }
  [[nodiscard]] std::uint64_t visits() const noexcept { return visits_; }

  std::size_t poll() {
    if (comes_ && !topic_ && !node_.participant().holds_topics()) {
      topic_ = pubsub::Topic<Record>(node_.participant(), name_, qos_);
      pubsub::DataReaderQos qos;
      qos << pubsub::Reliability::reliable()
          << pubsub::Durability{pubsub::Durability::Kind::transient};
      reader_ = pubsub::DataReader<Record>(pubsub::Subscriber(node_.participant()), topic_, qos);
      reader_.on_sample(
          [this](const Record&, const pubsub::SampleInfo& info) { got_ += info.valid() ? 1 : 0; });
    }
    const std::size_t done = node_.poll();
    if (topic_ && (got_ >= kKept || !comes_)) {
      visits_ += got_ >= kKept ? 1 : 0;
      got_ = 0;
      reader_ = {};
      topic_ = {};
    }
    return done;
  }

 private:
  TopicNode& node_;
  std::string name_;
  pubsub::TopicQos qos_;
  bool comes_ = false;
  std::uint64_t got_ = 0;
  std::uint64_t visits_ = 0;
  pubsub::Topic<Record> topic_;
  pubsub::DataReader<Record> reader_;
};

/// Two processes, and three members: the third one is in the second one's thread.
std::vector<Result> late_readers(const Effort& effort) {
  const Group group(real_network("shm"), effort, 3);
  const std::uint64_t samples = effort.scaled(50'000) + kKept;
  pubsub::TopicQos qos = measured_qos(Level::volatile_storage);
  qos.max_samples = kKept;
  Team team(group.team(2));
  team.run([&](Member& me) {
    auto fabrics = group.join_many(me.rank(), me.rank() == 0 ? 1 : 2);
    TopicNode node(me, std::move(fabrics.front()));
    std::unique_ptr<TopicNode> late;
    std::unique_ptr<Visitor> visitor;
    if (fabrics.size() > 1) {
      late = std::make_unique<TopicNode>(me, std::move(fabrics.back()));
      visitor = std::make_unique<Visitor>(*late, "live0", qos);
      node.beside = [&] { return visitor->poll(); };
    }
    const auto live = make_topics<Record>(node, "live", 1, qos, 1);
    alternate(me, effort.rounds,
              {[&] { return stream<Record>(node, live, samples); },
               [&] {
                 if (visitor) visitor->comes(true);
                 const auto rate = stream<Record>(node, live, samples);
                 if (visitor) visitor->comes(false);
                 return rate;
               }});
    if (visitor)
      me.note(std::to_string(visitor->visits()) + " late readers were given " +
              std::to_string(kKept) + " samples in " + std::to_string(effort.rounds + 1) +
              " rounds");
    me.meet();  // without polls, which would see that others go
  });
  return {compared({.params = {{"bytes", double(sizeof(Record))}, {"level", "volatile_storage"}},
                    .unit = "1/s",
                    .goal = Goal{.bound = kLeastLiveRate},
                    .note = team.note()},
                   team.series(1), "no late reader", team.series(0))};
}

}  // namespace

std::vector<Experiment> arrivals() {
  return experiments_on(
      "shm", {{"creation", "from the call for a new topic, at its writer and its reader at once",
               "", creation},
              {"pause", "the longest pause of a topic at work while another one comes and goes", "",
               pause_of_others},
              {"late reader", "samples a second of a topic while late readers catch up", "",
               late_readers}});
}

}  // namespace dunlin::bench
